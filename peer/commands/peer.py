"""``distributary peer``: the daemon of a subscriber's machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from peer.home import home_of
from peer.options.resolving import add_options, resolve
from peer.output import emit

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "Run a subscriber's machine: it receives, stores, and feeds others."
_EPILOG: Final = """\
Every option can also stand in a file or in the environment (docs/configuration.md); 'distributary config show
peer' says what is in force.

examples:
  distributary peer run
  distributary peer run --home /var/lib/distributary --host 10.0.0.7 --port 7411
  distributary peer run --capacity 0         never feeds others (a machine that cannot be dialled)
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the sub-commands."""
    parser.epilog = _EPILOG
    run = parser.add_subparsers(metavar="COMMAND", required=True).add_parser(
        "run", help="run until stopped", epilog=_EPILOG, formatter_class=parser.formatter_class
    )
    add_options(run, "peer")
    run.add_argument("--json", action="store_true", help="say in one JSON line when it listens")
    run.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    settings = resolve("peer", arguments)
    from peer.daemon.controls import peer_controls
    from peer.daemon.peer_daemon import PeerDaemon
    from peer.daemon.running import start
    from peer.options.daemons import peer_settings

    def ready(daemon: Any) -> None:
        if arguments.json:
            emit({"ready": True, "site": daemon.site, "port": daemon.port})
        else:
            print(f"{daemon.site} listens on {settings['host']}:{daemon.port}.", flush=True)

    chosen = peer_settings(settings)
    start(home_of(arguments), settings["log"], lambda home: PeerDaemon(home, chosen), peer_controls, ready)
    return 0

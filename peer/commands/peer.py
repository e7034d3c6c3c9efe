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
  distributary peer run --http 8080          metrics and results over HTTP, on localhost
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
    from peer.daemon.running import Http, start
    from peer.http.pages import peer_server
    from peer.options.daemons import peer_settings

    def ready(daemon: Any) -> None:
        served = {"http_port": daemon.http_port} if daemon.http_port else {}
        if arguments.json:
            emit({"ready": True, "site": daemon.site, "port": daemon.port} | served)
        else:
            print(f"{daemon.site} listens on {settings['host']}:{daemon.port}.", flush=True)
        if served and not arguments.json:
            print(f"HTTP is served on 127.0.0.1:{daemon.http_port}.", flush=True)

    chosen = peer_settings(settings)
    http = None if settings["http"] is None else Http(settings["http"], peer_server)
    start(home_of(arguments), settings["log"], lambda home: PeerDaemon(home, chosen), peer_controls, ready, http)
    return 0

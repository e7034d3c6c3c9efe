"""``distributary peer``: the daemon of a subscriber's machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from peer.home import add_home, home_of
from peer.output import emit

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "Run a subscriber's machine: it receives, stores, and feeds others."
_EPILOG: Final = """\
examples:
  distributary peer run
  distributary peer run --home /var/lib/distributary --host 10.0.0.7 --port 7411
  distributary peer run --capacity 0         never feeds others (a machine that cannot be dialled)
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the sub-commands."""
    parser.epilog = _EPILOG
    run = parser.add_subparsers(metavar="COMMAND", required=True).add_parser("run", help="run until stopped")
    add_home(run)
    run.add_argument(
        "--host", default="127.0.0.1", help="the address to listen at, and to be reached at (127.0.0.1)"
    )
    run.add_argument("--port", type=int, default=0, help="the port to listen at (any that is free)")
    run.add_argument("--capacity", type=int, metavar="N", help="how many feeds to other machines it bears")
    run.add_argument("--log", default="warning", choices=("debug", "info", "warning", "error"), help="(warning)")
    run.add_argument("--json", action="store_true", help="say in one JSON line when it listens")
    run.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from peer.daemon.controls import peer_controls
    from peer.daemon.peer_daemon import PeerDaemon, PeerSettings
    from peer.daemon.running import start

    def ready(daemon: Any) -> None:
        if arguments.json:
            emit({"ready": True, "site": daemon.site, "port": daemon.port})
        else:
            print(f"{daemon.site} listens on {arguments.host}:{daemon.port}.", flush=True)

    settings = PeerSettings(arguments.host, arguments.port, capacity=arguments.capacity)
    start(home_of(arguments), arguments.log, lambda home: PeerDaemon(home, settings), peer_controls, ready)
    return 0

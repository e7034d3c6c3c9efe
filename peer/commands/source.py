"""``distributary source``: the daemon of the source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from peer.home import add_home, home_of
from peer.output import emit

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "Run the source: it numbers documents, keeps the log, and feeds what nobody else can."
_EPILOG: Final = """\
examples:
  distributary source run --home /var/lib/distributary --host 10.0.0.1 --port 7411 --enrolment-port 7412
  distributary source run --feeds 100        at most 100 subscriptions fed by the source itself
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the sub-commands."""
    parser.epilog = _EPILOG
    run = parser.add_subparsers(metavar="COMMAND", required=True).add_parser("run", help="run until stopped")
    add_home(run)
    run.add_argument("--host", default="127.0.0.1", help="the address to listen at (127.0.0.1)")
    run.add_argument("--port", type=int, default=7411, help="for members (7411; 0: any that is free)")
    run.add_argument("--enrolment-port", type=int, default=7412, help="for machines that join (7412; 0: any)")
    run.add_argument("--feeds", type=int, metavar="N", help="how many subscriptions the source may feed itself")
    run.add_argument("--log", default="warning", choices=("debug", "info", "warning", "error"), help="(warning)")
    run.add_argument("--json", action="store_true", help="say in one JSON line when it listens")
    run.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from peer.daemon.controls import source_controls
    from peer.daemon.running import start
    from peer.daemon.source_daemon import SourceDaemon
    from peer.daemon.source_state import SourceSettings

    def ready(daemon: Any) -> None:
        if arguments.json:
            emit({"ready": True, "port": daemon.port, "enrolment_port": daemon.enrolment_port})
        else:
            where = f"{arguments.host}:{daemon.port}"
            print(f"The source listens on {where}; machines join on port {daemon.enrolment_port}.", flush=True)

    settings = SourceSettings(arguments.host, arguments.port, arguments.enrolment_port, arguments.feeds)
    start(home_of(arguments), arguments.log, lambda home: SourceDaemon(home, settings), source_controls, ready)
    return 0

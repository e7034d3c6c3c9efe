"""``distributary source``: the daemon of the source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from peer.errors import CommandError
from peer.home import home_of
from peer.options.resolving import add_options, resolve
from peer.output import emit

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

SUMMARY: Final = "Run the source: it numbers documents, keeps the log, and feeds what nobody else can."
_EPILOG: Final = """\
Every option can also stand in a file or in the environment (docs/configuration.md); 'distributary config show
source' says what is in force.

examples:
  distributary source run --home /var/lib/distributary --host 10.0.0.1 --port 7411 --enrolment-port 7412
  distributary source run --host 0.0.0.0 --address source.example:7411      behind a name
  distributary source run --http 8080        metrics, and publishing by POST, on localhost
  distributary source run --feeds 100        at most 100 subscriptions fed by the source itself
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the sub-commands."""
    parser.epilog = _EPILOG
    run = parser.add_subparsers(metavar="COMMAND", required=True).add_parser(
        "run", help="run until stopped", epilog=_EPILOG, formatter_class=parser.formatter_class
    )
    add_options(run, "source")
    run.add_argument("--json", action="store_true", help="say in one JSON line when it listens")
    run.set_defaults(run=_run)


def _check_home(home: Path) -> None:
    if (home / "authority").exists():
        return
    if (home / "identity").exists():
        raise CommandError(
            f"{home}: this is not the source's folder; a subscriber's machine runs 'distributary peer run'"
        )
    raise CommandError(
        f"{home}: there is no network here; make one with 'distributary network init NAME --home {home}', or name "
        f"the source's folder with --home"
    )


def _run(arguments: argparse.Namespace) -> int:
    _check_home(home_of(arguments))
    settings = resolve("source", arguments)
    from peer.daemon.controls import source_controls
    from peer.daemon.running import Http, start
    from peer.daemon.source_daemon import SourceDaemon
    from peer.http.pages import source_server
    from peer.options.daemons import source_settings

    def ready(daemon: Any) -> None:
        served = {"http_port": daemon.http_port} if daemon.http_port else {}
        if arguments.json:
            ports = {"port": daemon.port, "enrolment_port": daemon.enrolment_port}
            emit({"ready": True} | ports | served)
        else:
            where = f"{settings['host']}:{daemon.port}"
            print(f"The source listens on {where}; machines join on port {daemon.enrolment_port}.", flush=True)
        if served and not arguments.json:
            print(f"HTTP is served on 127.0.0.1:{daemon.http_port}.", flush=True)

    chosen = source_settings(settings)
    http = None if settings["http"] is None else Http(settings["http"], source_server)
    start(
        home_of(arguments), settings["log"], lambda home: SourceDaemon(home, chosen), source_controls, ready, http
    )
    return 0

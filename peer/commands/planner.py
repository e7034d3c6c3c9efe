"""``distributary planner``: the service that plans anew."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from peer.home import home_of
from peer.options.resolving import add_options, resolve
from peer.output import emit

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "Run the planner: it plans anew when asked, on a schedule, and when the network has drifted."
_EPILOG: Final = """\
Runs in the source's home, or on a machine that was invited with --role planner: beside its 'peer run', or alone.
Each plan is a Spark batch (pip install 'distributary[planner]'); the source checks it and puts it into force.
'distributary replan' in the same home asks the service. Every option can also stand in a file or in the
environment (docs/configuration.md); 'distributary config show planner' says what is in force.

examples:
  distributary planner run --home /var/lib/distributary
  distributary planner run --every 1h --drift none          by the clock alone
  distributary planner run --drift 10% --master spark://host:7077
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the sub-commands."""
    parser.epilog = _EPILOG
    run = parser.add_subparsers(metavar="COMMAND", required=True).add_parser(
        "run", help="run until stopped", epilog=_EPILOG, formatter_class=parser.formatter_class
    )
    add_options(run, "planner")
    run.add_argument("--json", action="store_true", help="say in one JSON line when it runs")
    run.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    settings = resolve("planner", arguments)
    from peer.daemon.running import start
    from peer.replanning.planning import PlanOptions
    from peer.replanning.service import PLANNER_SOCKET, PlannerService, PlannerSettings

    def ready(service: Any) -> None:
        if arguments.json:
            emit({"ready": True, "site": service.site})
        else:
            print(f"The planner of {service.home} runs.", flush=True)

    chosen = PlannerSettings(
        settings["every"], settings["drift"], settings["look"],
        PlanOptions(
            settings["documents"], settings["master"], settings["time-limit"], settings["batch-limit"],
            None if settings["keep"] is None else Path(settings["keep"]),
        ),
    )  # fmt: skip
    start(
        home_of(arguments), settings["log"], lambda home: PlannerService(home, chosen),
        lambda service: {"replan": service.replan, "status": service.status}, ready, socket=PLANNER_SOCKET,
    )  # fmt: skip
    return 0

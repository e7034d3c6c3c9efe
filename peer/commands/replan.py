"""``distributary replan``: a full plan over all subscriptions, as a Spark batch, put into force by the source."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from peer.errors import CommandError
from peer.home import add_home, answers, ask, home_of
from peer.output import emit

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "Plan anew who feeds whom, over all subscriptions, and put it into force."
_EPILOG: Final = """\
Run it at the source, or on a machine that was invited with --role planner. Takes a snapshot of the catalog and a
sample of documents, runs 'distributary plan' on them, and hands the result to the source, which checks every feed,
keeps what has changed meanwhile, and signs it as a new epoch. Nothing stops while it happens: each subscription
moves when its new feeds have caught up. Where 'distributary planner run' runs in the same home, that service
plans, unless an option below asks for something else.

examples:
  distributary replan
  distributary replan --dry-run --keep plans/trial        plan, look at the report, change nothing
  distributary replan --keep plans/today --master spark://host:7077
"""
_LOCAL: Final = ("documents", "keep", "master", "time_limit", "dry_run", "no_latency")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    add_home(parser)
    parser.add_argument("--documents", type=int, metavar="N", help="how many documents to sample (40)")
    parser.add_argument("--keep", metavar="DIR", help="keep the plan and its report in a folder")
    parser.add_argument("--master", metavar="URL", help="the Spark master (local[*])")
    parser.add_argument("--time-limit", type=float, metavar="S", help="seconds for solving and improving, each")
    parser.add_argument("--no-latency", action="store_true", help="least utilization, whatever the latency")
    parser.add_argument("--dry-run", action="store_true", help="plan, and say what would hold; change nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Snapshot, plan, adopt: by the service where one runs, else here."""
    if arguments.documents is not None and not 1 <= arguments.documents <= 1000:
        raise CommandError(f"--documents {arguments.documents}: expected a number from 1 to 1,000")
    from peer.replanning.service import PLANNER_SOCKET

    home = home_of(arguments)
    is_local = any(getattr(arguments, name) for name in _LOCAL) or not answers(home, PLANNER_SOCKET)
    told = _here(arguments, home) if is_local else _by_service(home, PLANNER_SOCKET)
    if arguments.json:
        emit(told)
    else:
        _show(told)
    return 0


def _by_service(home: Path, socket: str) -> dict[str, Any]:
    for event in ask(home, "replan", socket_name=socket):
        if "stage" not in event:
            return event
        _progress(event["stage"], event["what"])
    raise CommandError("the planner has ended; its log says why")


def _here(arguments: argparse.Namespace, home: Path) -> dict[str, Any]:
    import trio

    from peer.client import Client
    from peer.replanning.planning import PlanOptions, plan_once

    usual = PlanOptions()
    options = PlanOptions(
        arguments.documents or usual.documents, arguments.master or usual.master, arguments.time_limit,
        keep=None if arguments.keep is None else Path(arguments.keep), is_dry=arguments.dry_run, is_shown=True,
        is_quick=not arguments.no_latency,
    )  # fmt: skip
    return trio.run(plan_once, Client(home).ask, options, _progress)


def _progress(stage: str, what: str) -> None:
    """Say on standard error how far it is; the batch itself shows its stages there."""
    print(f"{stage}: {what}" if what else stage, file=sys.stderr, flush=True)


def _show(told: dict[str, Any]) -> None:
    if told.get("dry_run"):
        print(f"{told['taken']:,} of the proposed feeds hold in epoch {told['epoch']}; nothing was changed.")
        print(f"The source would feed {told['source_feeds']:,}; it feeds {told['source_feeds_before']:,}.")
    else:
        print(f"Epoch {told['epoch']}: {told['changed']:,} subscriptions are fed otherwise.")
        print(f"The source feeds {told['source_feeds']:,}; it fed {told['source_feeds_before']:,}.")
    for name, reason in list(told["refused"].items())[:10]:
        print(f"not taken: {name}: {reason}")

"""``distributary check-plan``: whether a written plan keeps what it promises, found out anew."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from planner.errors import PlannerError
from spark_planner.errors import SparkPlannerError

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "Check a written plan: feeds, limits, order, covers, costs and latencies, all computed anew."
_EPILOG: Final = """\
The check shares no code with the planner. Exit status: 0 the plan keeps its promises, 1 it does not, 2 no plan.
At 100,000 subscriptions it takes about two minutes.

examples:
  distributary check-plan plan
  distributary check-plan plan --limits plan
  distributary check-plan plan --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    parser.add_argument("folder", type=Path, metavar="DIR", help="what 'distributary plan' wrote")
    parser.add_argument(
        "--limits",
        choices=("plan", "improvement", "hard"),
        default="improvement",
        help="which of the three limits must hold (improvement: a plan is made within it)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Read, verify, and say."""
    from planner.verdict import Claim
    from planner.verify import verify
    from spark_planner.plan_reading import read_plan

    try:
        written = read_plan(arguments.folder)
        totals = written.totals
        claim = Claim(totals["utilization"], totals["latency_s"], totals["paper_latency_s"])
        verdict = verify(
            written.problem, written.table, written.configuration, limits=arguments.limits, claimed=claim
        )
    except (PlannerError, SparkPlannerError) as exc:
        print(f"distributary: {exc}", file=sys.stderr)
        return 2
    if arguments.json:
        told = {
            "ok": verdict.ok,
            "faults": verdict.faults,
            "pending": verdict.pending,
            "unabsorbed": verdict.unabsorbed,
            "utilization": verdict.utilization,
            "latency_s": verdict.latency,
        }
        print(json.dumps(told))
        return 0 if verdict.ok else 1
    print(verdict)
    return 0 if verdict.ok else 1

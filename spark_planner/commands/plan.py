"""``distributary plan``: subscriptions and sample documents in, a plan with its report out."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from planner.errors import PlannerError
from spark_planner.errors import SparkPlannerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_STAGES: Final = ("start", "normalise", "statistics", "candidates", "solve", "improve", "write")
SUMMARY: Final = (
    "Plan who feeds whom: the least utilization within all limits, then lower latency (a Spark batch)."
)
_EPILOG: Final = """\
files:
  subscriptions  .parquet or .csv with the columns pattern, and optionally subscription, site, limit; or a text
                 file with a pattern per line. An example: examples/subscriptions.csv
  sites          .parquet or .csv with the columns site, and optionally limit, region, uplink_mbit, source_rtt_ms,
                 rtt_ms:REGION. An example: examples/sites.csv
  documents      a folder with sample documents (*.xml), or one document
  OUT            gets plan.parquet, sites.parquet, plan.json, report.html, report.json, and stages/, from which a
                 second run with the same input goes on where the first one ended

examples:
  distributary plan --subscriptions examples/subscriptions.csv --documents examples/documents --out /tmp/plan
  distributary plan --subscriptions subs.parquet --sites sites.csv --documents docs --out plan --source-feeds 6000
  distributary plan --subscriptions subs.txt --documents docs --out plan --max-feeds 50 --time-limit 60 --json
  distributary plan ... --master spark://host:7077      (OUT must be a folder that the driver can write)
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    parser.add_argument(
        "--subscriptions", type=Path, required=True, metavar="FILE", help="who wants what, and where"
    )
    parser.add_argument("--documents", type=Path, required=True, metavar="DIR", help="sample documents")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the plan goes")
    parser.add_argument("--sites", type=Path, metavar="FILE", help="machines, their limits and regions")
    parser.add_argument("--rewritings", type=int, default=30, metavar="K", help="candidates per pattern (30)")
    parser.add_argument(
        "--max-feeds", type=_feeds, default=30, metavar="B", help="plan limit of a subscription, or 'none' (30)"
    )
    parser.add_argument(
        "--source-feeds", type=_feeds, default=None, metavar="N", help="limit of the source (default: none)"
    )
    parser.add_argument(
        "--alpha", type=float, default=0.0, metavar="A", help="weight of utilization, per byte (0)"
    )
    parser.add_argument("--beta", type=float, default=1.0, metavar="B", help="weight of latency, per second (1)")
    parser.add_argument("--time-limit", type=float, metavar="S", help="seconds for solving, and for improving")
    parser.add_argument(
        "--link-weight", type=int, default=512, metavar="F",
        help="what a feed costs per document besides its bytes: more means fewer inputs (512)",
    )  # fmt: skip
    parser.add_argument("--no-joins", action="store_true", help="inputs are joined at the receiver only")
    parser.add_argument(
        "--no-latency", action="store_true", help="keep the least utilization, whatever the latency"
    )
    parser.add_argument("--master", default="local[*]", metavar="URL", help="Spark master (local[*])")
    parser.add_argument("--json", action="store_true", help="print the report's figures as one JSON object")


def _feeds(text: str) -> int | None:
    if text == "none":
        return None
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 up, or 'none'")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Plan, and say what came of it."""
    if arguments.rewritings < 1 or arguments.alpha < 0 or arguments.beta <= 0:
        return _refuse("--rewritings is 1 or more, --alpha 0 or more, --beta above 0")
    if arguments.time_limit is not None and arguments.time_limit <= 0:
        return _refuse("--time-limit is above 0")
    from rewriting.pricing import Weights
    from spark_planner.batch import Options, run_batch

    try:
        weights = Weights(link=arguments.link_weight, joins=not arguments.no_joins)
    except ValueError as exc:
        return _refuse(f"--link-weight {arguments.link_weight}: {exc}")
    options = Options(
        arguments.subscriptions,
        arguments.documents,
        arguments.out,
        arguments.sites,
        arguments.rewritings,
        arguments.max_feeds,
        arguments.source_feeds,
        arguments.alpha / arguments.beta,
        seconds=arguments.time_limit,
        master=arguments.master,
        weights=weights,
        is_improved=not arguments.no_latency,
    )
    made = not arguments.out.exists()
    try:
        with _progress() as told:
            found = run_batch(options, told)
    except (PlannerError, SparkPlannerError) as exc:
        if made and arguments.out.exists() and not any(arguments.out.iterdir()):
            arguments.out.rmdir()
        return _refuse(str(exc))
    if arguments.json:
        json.dump(found.figures, sys.stdout)
        print()
    else:
        _show(found.figures, arguments.out)
    return 0


def _refuse(message: str) -> int:
    print(f"distributary: {' '.join(message.split())}", file=sys.stderr)
    return 2


@contextmanager
def _progress() -> Iterator[Callable[[str, str], None]]:
    """Show stages as they end: a bar on a terminal, plain lines elsewhere; both on standard error."""
    if not sys.stderr.isatty():
        yield lambda stage, what: print(f"{stage}: {what}" if what else stage, file=sys.stderr)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting Spark", total=len(_STAGES))

        def told(stage: str, what: str) -> None:
            done = _STAGES.index(stage) + 1 if stage in _STAGES else None
            after = _STAGES[done] if done is not None and done < len(_STAGES) else stage
            bar.update(task, completed=done, description=after)
            if what:
                bar.console.print(f"{stage}: {what}")

        yield told


def _show(figures: dict[str, Any], out: Path) -> None:
    source, latency = figures["source"], figures["latency_s"]
    proof = (
        "proven optimal" if figures["outcome"] == "optimal" else f"at most {figures['gap']:.4%} above the optimum"
    )
    least, best = figures["utilization"]["ilp"], figures["utilization"]["best"]
    limit = (
        "no limit" if source["limit"] is None else f"limit {source['limit']:,}, {source['plan_limit']:,} for plans"
    )
    limits = figures["limits"]
    print(
        f"{figures['subscriptions']:,} subscriptions, {figures['patterns']:,} patterns, {figures['sites']:,} sites"
    )
    print(f"fed by the source: {source['feeds']:,} ({limit}); {figures['offloaded']:.2%} feed each other")
    print(f"limits per subscription: plan {limits['plan']}, LOGA {limits['improvement']}, hard {limits['hard']}")
    print(f"utilization: {least:,} byte equivalents per document, {proof}; {best / least - 1:+.1%} for latency")
    for reason in figures["inexact"]:
        print(f"not exact: {reason}")
    ms = {stage: f"{1000 * seconds:.0f} ms" for stage, seconds in latency.items()}
    print(
        f"mean latency: {ms['ilp']} as chosen, {ms['loga']} after LOGA, {ms['best']} after the second pass; "
        f"no plan with these source feeds can be below {ms['bound']}"
    )
    print(f"{figures['seconds']['total']:.0f} s. The plan is in {out}, pictures in {out / 'report.html'}")

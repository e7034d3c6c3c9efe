"""The planner as a Spark batch: subscriptions and sample documents in, a plan out, stage by stage.

*normalise* parses and deduplicates, *statistics* measures patterns on sample documents, *candidates* finds who
can feed whom: these run in the workers, chunk by chunk. *solve* and *improve* choose and run in the driver, with
the functions of ``planner``; so the result is the one that planning in one process gives. *write* puts the plan
beside its report.
"""

from __future__ import annotations

import resource
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from planner.choices import UNBOUNDED
from planner.planning import BUDGET, Plan, choose_plan, improve_plan
from planner.problem import MOST_FEEDS, Network, Problem
from rewriting.candidate_table import CandidateTable, Places, finish
from rewriting.graph import EmbeddingGraph
from rewriting.pricing import Weights, price
from spark_planner.errors import BadInput
from spark_planner.jobs import Parsed, measure_chunk, no_collection, parse_chunk, search_chunk
from spark_planner.plan_figures import plan_figures
from spark_planner.plan_files import candidates_from, candidates_to, statistics_from, statistics_to, write_plan
from spark_planner.report import write_report
from spark_planner.session import spark_session
from spark_planner.stages import Stages, fingerprint
from spark_planner.tables import check_documents, network_of, read_documents, read_subscriptions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark import SparkContext

    from rewriting.statistics import Statistics
    from xmlmatch import Pattern

CHUNK: Final = 2_500
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Options:
    """What to plan and how. ``max_feeds``: the plan limit where a subscription names none, None for no limit.
    ``seconds`` limits solving and improving, each. ``price``: alpha / beta, see ``improve_plan``."""

    subscriptions: Path
    documents: Path
    out: Path
    sites: Path | None = None
    rewritings: int = 30
    max_feeds: int | None = 30
    source_feeds: int | None = None
    price: float = 0.0
    budget: float = BUDGET
    seconds: float | None = None
    master: str = "local[*]"
    weights: Weights = field(default_factory=Weights)
    is_improved: bool = True
    """Whether the latency is lowered after the solver is done."""


@dataclass(slots=True, eq=False)
class Batch:
    """A finished batch: the plan, and what the report says of it."""

    plan: Plan
    figures: dict[str, Any]


def run_batch(
    options: Options,
    told: Callable[[str, str], None] = lambda *_: None,
    *,
    settings: dict[str, str] | None = None,
) -> Batch:
    """Run all stages; ``told`` hears of each. Raises ``BadInput``, or ``PlannerError``; nothing half-written is
    left."""
    started = time.monotonic()
    table = read_subscriptions(options.subscriptions, options.max_feeds)
    documents = read_documents(options.documents)
    network = _network(options, table)
    with ThreadPoolExecutor(1) as pool:
        # Spark takes seconds to start; the documents are checked meanwhile.
        session = pool.submit(spark_session, "distributary plan", master=options.master, settings=settings)
        check_documents(options.documents, documents)
        spark = session.result()
    seconds = {"start": time.monotonic() - started}
    told("start", f"{seconds['start']:.1f} s")
    try:
        found, stages = _planned(options, table, network, documents, spark.sparkContext, told)
    finally:
        spark.stop()
    seconds |= stages.seconds | {"solve": found.seconds["solve"], "improve": found.seconds["improve"]}
    begun = time.monotonic()
    write_plan(found, options.out)
    seconds["write"] = time.monotonic() - begun
    seconds["total"] = time.monotonic() - started
    figures = plan_figures(found, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    write_report(figures, options.out)
    told("write", f"{seconds['write']:.1f} s")
    return Batch(found, figures)


def _planned(
    options: Options, table: pa.Table, network: Network, documents: list[bytes], context: SparkContext,
    told: Callable[[str, str], None],
) -> tuple[Plan, Stages]:  # fmt: skip
    stages = Stages(options.out / "stages", told)
    texts = table.column("pattern").to_pylist()
    distinct = list(dict.fromkeys(texts))
    key = fingerprint(_VERSION, options.subscriptions, options.max_feeds)
    chunks = context.parallelize(
        [distinct[i : i + CHUNK] for i in range(0, len(distinct), CHUNK)], -(-len(distinct) // CHUNK)
    )
    parsed = chunks.map(parse_chunk).persist()
    by_text = _normalise(stages, key, parsed, distinct, table, options)
    patterns = [by_text[text] for text in texts]
    key = fingerprint(key, *documents)
    with no_collection():
        graph = EmbeddingGraph.build(patterns)
    known = _statistics(stages, key, parsed, graph, documents, context)
    problem = _problem(options, table, network, graph, patterns, known)
    key = fingerprint(key, options.rewritings, options.weights)
    candidates = _candidates(stages, key, problem, context)
    prices = price(graph, candidates, known, options.weights)
    found = choose_plan(problem, candidates, prices, options.seconds, told=lambda what: told(what, ""))
    told("solve", f"{found.seconds['solve']:.1f} s, {found.selection.outcome.value}")
    improve_plan(found, options.seconds, options.budget, options.price, cancelled=lambda: not options.is_improved)
    told("improve", f"{found.seconds['improve']:.1f} s")
    return found, stages


def _normalise(
    stages: Stages, key: str, parsed: Any, distinct: list[str], table: pa.Table, options: Options
) -> dict[str, Pattern]:
    """Parse every distinct text in the workers; the first row that is wrong is named."""
    import pyarrow as pa
    import pyarrow.parquet

    started = time.monotonic()
    with no_collection():
        found = [pattern for part in parsed.collect() for pattern in part.patterns]
    by_text = dict(zip(distinct, found, strict=True))
    wrong = {text for text, pattern in by_text.items() if isinstance(pattern, str)}
    if wrong:
        rows = [i for i, text in enumerate(table.column("pattern").to_pylist()) if text in wrong]
        reason = by_text[table.column("pattern")[rows[0]].as_py()]
        raise BadInput(f"{options.subscriptions}: row {table.column('row')[rows[0]]}", str(reason), len(rows) - 1)

    def compute(folder: Path) -> None:
        canonical = [by_text[text].text for text in table.column("pattern").to_pylist()]
        kept = table.drop_columns(["pattern"]).append_column("pattern", pa.array(canonical))
        pyarrow.parquet.write_table(kept, folder / "subscriptions.parquet")

    stages.run("normalise", key, compute)
    stages.seconds["normalise"] = time.monotonic() - started  # parsing is needed whether or not the stage is there
    return by_text


def _statistics(
    stages: Stages, key: str, parsed: Any, graph: EmbeddingGraph, documents: Sequence[bytes], context: SparkContext
) -> Statistics:
    def compute(folder: Path) -> None:
        sample = context.broadcast(list(documents))

        def measure(part: Parsed) -> Any:
            return measure_chunk(part, sample.value)

        statistics_to(parsed.map(measure).collect(), folder)

    return statistics_from(stages.run("statistics", key, compute), graph)


def _network(options: Options, table: pa.Table) -> Network:
    """Make the network, and refuse subscriptions at sites that are not in it."""
    sites = table.column("site").to_pylist()
    network = network_of(options.sites, list(dict.fromkeys(sites)))
    known = set(network.names)
    missing = [i for i, site in enumerate(sites) if site not in known]
    if missing:
        where = f"{options.subscriptions}: row {table.column('row')[missing[0]]}"
        raise BadInput(where, f"there is no site {sites[missing[0]]} in {options.sites}", len(missing) - 1)
    return network


def _problem(
    options: Options, table: pa.Table, network: Network, graph: EmbeddingGraph, patterns: Sequence[Pattern],
    known: Statistics,
) -> Problem:  # fmt: skip
    names, sites = table.column("subscription").to_pylist(), table.column("site").to_pylist()
    at = {name: i for i, name in enumerate(network.names)}
    limits = table.column("limit").fill_null(UNBOUNDED).to_numpy()
    return Problem(
        graph,
        names,
        np.array([graph.number(pattern) for pattern in patterns], np.int64),
        np.array([at[site] for site in sites], np.int64),
        np.where(limits >= MOST_FEEDS, UNBOUNDED, limits).astype(np.int64),
        network,
        options.source_feeds,
        options.weights,
        known,
        options.rewritings,
    )


def _candidates(stages: Stages, key: str, problem: Problem, context: SparkContext) -> CandidateTable:
    """Search in the workers, which get arrays only; what those cannot do is done here."""
    link_bytes = problem.weights.link_bytes

    def compute(folder: Path) -> None:
        places = Places.of(problem.graph, problem.statistics, problem.k, link_bytes=link_bytes)
        shared = context.broadcast(places)
        runs = places.runs()
        parts = (
            context.parallelize(runs, max(len(runs), 1)).map(lambda run: search_chunk(shared.value, run)).collect()
        )
        shared.unpersist()
        found = finish(problem.graph, parts, problem.k, statistics=problem.statistics, link_bytes=link_bytes)
        candidates_to(found, folder)

    return candidates_from(stages.run("candidates", key, compute))

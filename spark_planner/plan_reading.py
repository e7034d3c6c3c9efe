"""Reading a written plan back, whole, to check it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.choices import UNBOUNDED
from planner.configuration import Configuration, How
from planner.problem import Network, Problem
from rewriting.graph import EmbeddingGraph
from rewriting.pricing import Weights
from spark_planner.errors import BadInput
from spark_planner.jobs import no_collection, parse_chunk
from spark_planner.plan_files import PLAN, SITES, TOTALS, candidates_from, statistics_from

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from rewriting.candidate_table import CandidateTable
    from xmlmatch import Pattern


@dataclass(frozen=True, slots=True, eq=False)
class WrittenPlan:
    """A plan as it was written: the problem, the candidates, the configuration, and what it says of itself."""

    problem: Problem
    table: CandidateTable
    configuration: Configuration
    totals: dict[str, Any]


def read_plan(folder: Path) -> WrittenPlan:
    """Read a plan that ``write_plan`` wrote, with its stages."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        rows = pyarrow.parquet.read_table(folder / PLAN).combine_chunks()
        sites = pyarrow.parquet.read_table(folder / SITES)
        totals = json.loads((folder / TOTALS).read_text(encoding="utf-8"))
        table = candidates_from(folder / "stages" / "candidates")
    except (OSError, pa.ArrowInvalid, ValueError, KeyError) as exc:
        raise BadInput(str(folder), f"this is no folder with a whole plan: {' '.join(str(exc).split())}") from None
    with no_collection():
        patterns = _patterns(rows.column("pattern").to_pylist(), folder)
        graph = EmbeddingGraph.build(patterns)
    try:
        known = statistics_from(folder / "stages" / "statistics", graph)
    except (OSError, pa.ArrowInvalid, KeyError) as exc:
        raise BadInput(str(folder), f"its statistics are not those of its patterns: {exc}") from None
    network = _network(sites, totals)
    at = {name: i for i, name in enumerate(network.names)}
    problem = Problem(
        graph,
        rows.column("subscription").to_pylist(),
        np.array([graph.number(pattern) for pattern in patterns], np.int64),
        np.array([at[site] for site in rows.column("site").to_pylist()], np.int64),
        rows.column("limit").fill_null(UNBOUNDED).to_numpy(),
        network,
        totals["source_feeds"],
        Weights(**totals["weights"]),
        known,
        totals["k"],
    )
    return WrittenPlan(problem, table, _configuration(rows, problem.names, folder), totals)


def _patterns(texts: list[str], folder: Path) -> list[Pattern]:
    distinct = list(dict.fromkeys(texts))
    found = dict(zip(distinct, parse_chunk(distinct).patterns, strict=True))
    patterns: list[Pattern] = []
    for row, text in enumerate(texts, start=1):
        pattern = found[text]
        if isinstance(pattern, str):
            raise BadInput(f"{folder / PLAN}: row {row}", pattern)
        patterns.append(pattern)
    return patterns


def _network(sites: pa.Table, totals: dict[str, Any]) -> Network:
    regions = totals["regions"]
    return Network(
        sites.column("site").to_pylist(),
        sites.column("limit").fill_null(UNBOUNDED).to_numpy(),
        np.array([regions.index(region) for region in sites.column("region").to_pylist()], np.int32),
        sites.column("uplink").to_numpy(),
        regions,
        np.array(totals["rtt_s"]),
        np.array(totals["source_rtt_s"]),
        totals["source_uplink"],
    )


def _configuration(rows: pa.Table, names: list[str], folder: Path) -> Configuration:
    number = {name: i for i, name in enumerate(names)}
    inputs = [[one["subscription"] for one in row] for row in rows.column("inputs").to_pylist()]
    width = max((len(row) for row in inputs), default=1) or 1
    array = np.full((len(names), width), -1, np.int32)
    for s, row in enumerate(inputs):
        for j, name in enumerate(row):
            if name not in number:
                raise BadInput(f"{folder / PLAN}: row {s + 1}", f"it is fed by {name}, which is no subscription")
            array[s, j] = number[name]
    how = np.array([How[text.upper()] for text in rows.column("how").to_pylist()], np.int8)
    return Configuration(how, rows.column("candidate").to_numpy().astype(np.int64), array)

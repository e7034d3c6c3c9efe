"""A plan as files: what stages leave for each other, and the plan itself, as Parquet with the schemas said here.

``plan.parquet``, a row per subscription in the order given:

    subscription, site, pattern: string; limit: int64, null for none; how: rewriting, source, copy, local, pending
    plan: string       how a rewriting runs: "filter", "reduce" (some sender reduces too), "join" (at ``join_at``)
    join_at: int32     at the machine of which input the inputs are joined, -1 if at the subscription's own
    candidate: int64   its row among all candidates of ``stages/candidates``, -1 if it is no rewriting
    inputs: list of (subscription, site, reduces, columns); reduces: it also reduces the part it sends
                       columns: list of (node, view_node, carries, by_value, by_name, names): for a node of the
                       pattern, which node of the input's provides it, what travels (id, val, cont), what the
                       sender filters by; none where all results are taken as they are
    alternatives: list of (utilization, subscriptions, sites), best first; the source comes after them
    level: int32; latency_s: double; utilization: int64, byte equivalents per document

``sites.parquet``: site, limit, region, uplink (bytes/s). ``plan.json``: options and totals.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from planner.alternatives import find_alternatives
from planner.choices import UNBOUNDED
from planner.configuration import How
from planner.latency import Timing, utilizations
from rewriting.candidate_table import CandidateTable
from rewriting.pricing import JOIN, per_document
from rewriting.provisions import BY_NAME, BY_VALUE, NAMES, P_FLAGS, P_INPUT, P_PAYLOAD, P_VIEW_NODE, provisions
from rewriting.statistics import KINDS, Statistics

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

    from planner.planning import Plan
    from rewriting.graph import EmbeddingGraph

PLAN: Final = "plan.parquet"
SITES: Final = "sites.parquet"
TOTALS: Final = "plan.json"
_CARRIES: Final = ("id", "val", "cont")


def statistics_to(parts: list[tuple[list[str], NDArray[np.int64]]], folder: Path) -> None:
    """Write measured figures: a row per pattern with its text and, node by node, rows, val and cont."""
    import pyarrow as pa
    import pyarrow.parquet

    texts = [text for part, _ in parts for text in part]
    figures = np.concatenate([np.zeros((KINDS, 0), np.int64), *(f for _, f in parts)], axis=1)
    table = pa.table({"pattern": pa.array(texts, pa.string())})
    pyarrow.parquet.write_table(table, folder / "patterns.parquet")
    nodes = pa.table({name: figures[i] for i, name in enumerate(("rows", "val", "cont"))})
    pyarrow.parquet.write_table(nodes, folder / "nodes.parquet")


def statistics_from(folder: Path, graph: EmbeddingGraph) -> Statistics:
    """Read measured figures of the patterns of a graph."""
    import pyarrow.parquet

    texts = pyarrow.parquet.read_table(folder / "patterns.parquet").column("pattern").to_pylist()
    nodes = pyarrow.parquet.read_table(folder / "nodes.parquet")
    figures = np.stack([nodes.column(name).to_numpy() for name in ("rows", "val", "cont")])
    by_text = {graph.pattern(number).text: graph.pattern(number) for number in graph.numbers.tolist()}
    return Statistics.known([by_text[text] for text in texts], figures)


def candidates_to(table: CandidateTable, folder: Path) -> None:
    """Write candidates: a row per pattern (by number) with the costs and views of each."""
    import pyarrow as pa
    import pyarrow.parquet

    views = pa.ListArray.from_arrays(pa.array(table.member_first.astype(np.int32)), pa.array(table.members))
    first = pa.array(table.first.astype(np.int32))
    found = pa.table(
        {
            "costs": pa.ListArray.from_arrays(first, pa.array(table.costs)),
            "views": pa.ListArray.from_arrays(first, views),
        }
    )
    pyarrow.parquet.write_table(found, folder / "candidates.parquet")
    counts = {"edges": table.edges, "given_up": table.given_up}
    (folder / "counts.json").write_text(json.dumps(counts), encoding="utf-8")


def candidates_from(folder: Path) -> CandidateTable:
    """Read candidates."""
    import pyarrow.parquet

    found = pyarrow.parquet.read_table(folder / "candidates.parquet").combine_chunks()
    counts = json.loads((folder / "counts.json").read_text(encoding="utf-8"))
    costs, views = found.column("costs").chunk(0), found.column("views").chunk(0)
    inner = views.values
    return CandidateTable(
        costs.offsets.to_numpy().astype(np.int64),
        costs.values.to_numpy().astype(np.int64),
        inner.offsets.to_numpy().astype(np.int64),
        inner.values.to_numpy().astype(np.int32),
        counts["edges"],
        counts["given_up"],
    )


def write_plan(found: Plan, folder: Path) -> None:
    """Write a plan whole: everything is made beside its place and moved there at the end."""
    import pyarrow as pa
    import pyarrow.parquet

    fresh = folder / ".plan.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        pyarrow.parquet.write_table(plan_table(found), fresh / PLAN)
        network = found.problem.network
        sites = pa.table(
            {
                "site": network.names,
                "limit": _limits(network.limits),
                "region": [network.regions[i] for i in network.region.tolist()],
                "uplink": network.uplink,
            }
        )
        pyarrow.parquet.write_table(sites, fresh / SITES)
        (fresh / TOTALS).write_text(json.dumps(_totals(found), indent=1), encoding="utf-8")
        for name in (SITES, PLAN, TOTALS):
            os.replace(fresh / name, folder / name)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _totals(found: Plan) -> dict[str, Any]:
    problem, network = found.problem, found.problem.network
    return {
        "source_feeds": problem.source_feeds,
        "k": problem.k,
        "weights": asdict(problem.weights),
        "rtt_s": network.rtt.tolist(),
        "regions": network.regions,
        "source_rtt_s": network.source_rtt.tolist(),
        "source_uplink": network.source_uplink,
        "outcome": found.selection.outcome.value,
        "gap": found.selection.gap,
        "bound": found.selection.bound,
        "inexact": found.program.inexact,
        "utilization": found.figures["best"].utilization,
        "latency_s": found.figures["best"].latency,
        "paper_latency_s": found.figures["best"].paper_latency,
    }


def plan_table(found: Plan) -> pa.Table:
    """Make the table of a plan; see the module's text."""
    import pyarrow as pa

    problem, chosen = found.problem, found.configuration
    timing = Timing.of(problem, found.table, found.prices, chosen)
    names, sites = pa.array(problem.names), pa.array(problem.network.names).take(pa.array(problem.sites))
    texts = {number: problem.graph.pattern(number).text for number in problem.graph.numbers.tolist()}
    plans = np.where(chosen.how == How.REWRITING, np.append(found.prices.plans, 0)[chosen.candidate], 0)
    kind = np.where(plans >= JOIN, "join", np.where(plans > 0, "reduce", "filter"))
    rewritten = chosen.how == How.REWRITING
    return pa.table(
        {
            "subscription": names,
            "site": sites,
            "pattern": [texts[number] for number in problem.classes.tolist()],
            "limit": _limits(problem.limits),
            "how": [How(how).name.lower() for how in chosen.how.tolist()],
            "plan": pa.array(kind.tolist(), pa.string(), mask=~rewritten),
            "join_at": pa.array(np.where(plans >= JOIN, plans - JOIN, -1), pa.int32()),
            "candidate": chosen.candidate,
            "inputs": _inputs(found, names, sites),
            "alternatives": _alternatives(found, names, sites),
            "level": timing.levels().astype(np.int32),
            "latency_s": timing.latency,
            "utilization": utilizations(timing, problem, found.prices),
        }
    )


def _limits(limits: NDArray[np.int64]) -> pa.Array:
    import pyarrow as pa

    return pa.array(limits, pa.int64(), mask=limits >= UNBOUNDED)


def _offsets(counts: NDArray[np.int64]) -> pa.Array:
    import pyarrow as pa

    return pa.array(np.concatenate(([0], np.cumsum(counts))).astype(np.int32))


def _inputs(found: Plan, names: pa.Array, sites: pa.Array) -> pa.Array:
    import pyarrow as pa

    chosen = found.configuration
    inside = chosen.inputs >= 0
    who = pa.array(chosen.inputs[inside])
    counts = inside.sum(axis=1)
    bits = np.append(found.prices.reducing, 0)[chosen.candidate][:, None] >> np.arange(inside.shape[1]) & 1
    struct = pa.StructArray.from_arrays(
        [names.take(who), sites.take(who), pa.array(bits[inside] > 0), _columns(found, counts)],
        names=["subscription", "site", "reduces", "columns"],
    )
    return pa.ListArray.from_arrays(_offsets(counts), struct)


def _columns(found: Plan, counts: NDArray[np.int64]) -> pa.Array:
    """For every input of every subscription: what it provides."""
    import pyarrow as pa

    problem, chosen = found.problem, found.configuration
    rewritten = np.flatnonzero(chosen.how == How.REWRITING)
    told = provisions(
        problem.graph, found.table, problem.statistics, problem.classes[rewritten], chosen.candidate[rewritten]
    )
    sizes = np.diff(told.first)
    node = np.arange(len(told.rows)) - np.repeat(told.first[:-1], sizes)
    first_input = np.cumsum(counts) - counts
    which = np.repeat(first_input[rewritten], sizes) + told.rows[:, P_INPUT]
    known = told.rows[:, P_INPUT] >= 0
    order = np.lexsort((node[known], which[known]))
    rows, node, which = told.rows[known][order], node[known][order], which[known][order]
    flags = rows[:, P_FLAGS]
    struct = pa.StructArray.from_arrays(
        [
            pa.array(node.astype(np.int32)),
            pa.array(rows[:, P_VIEW_NODE]),
            pa.array(_CARRIES).take(pa.array(rows[:, P_PAYLOAD])),
            pa.array((flags & BY_VALUE) > 0),
            pa.array((flags & BY_NAME) > 0),
            pa.array((flags & NAMES) > 0),
        ],
        names=["node", "view_node", "carries", "by_value", "by_name", "names"],
    )
    return pa.ListArray.from_arrays(_offsets(np.bincount(which, minlength=int(counts.sum()))), struct)


def _alternatives(found: Plan, names: pa.Array, sites: pa.Array) -> pa.Array:
    import pyarrow as pa

    others = find_alternatives(found.problem, found.table, found.program, found.configuration)
    is_one = others.candidate >= 0
    inside = others.inputs >= 0
    who = pa.array(others.inputs[inside])
    each = _offsets(inside.sum(axis=2)[is_one])
    cost = per_document(found.prices.utilization)[others.candidate[is_one]]
    struct = pa.StructArray.from_arrays(
        [
            pa.array(cost),
            pa.ListArray.from_arrays(each, names.take(who)),
            pa.ListArray.from_arrays(each, sites.take(who)),
        ],
        names=["utilization", "subscriptions", "sites"],
    )
    return pa.ListArray.from_arrays(_offsets(is_one.sum(axis=1)), struct)

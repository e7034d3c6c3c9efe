"""Who provides what in chosen candidates, for very many at once: what a configuration tells senders.

The compiled twin of ``execution.links_of``: for each query node the input that provides it, which of that view's
nodes does, what travels, and what the sender filters by.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rewriting.conditions import NO_CONDITION, implied, is_fixed, pointers_to
from rewriting.kernels import MASK_BITS, kernel
from rewriting.pricing import O_COST, O_FIELDS, O_NODE, offers_of, row_sizes
from rewriting.table import ANY_LABEL, CONDITION, ID_LEVEL, LABEL, NEEDS, VAL_LEVEL
from rewriting.trie import Q_ROWS, forget_labels, pair_covers, query_masks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rewriting.candidate_table import CandidateTable
    from rewriting.graph import EmbeddingGraph
    from rewriting.statistics import Statistics

BY_VALUE, BY_NAME, NAMES = 1, 2, 4
P_INPUT, P_VIEW_NODE, P_PAYLOAD, P_FLAGS, P_FIELDS = range(5)


@dataclass(frozen=True, slots=True, eq=False)
class Provisions:
    """Rows ``first[i] : first[i + 1]`` tell, node by node, how the i-th query asked for is provided: which
    input, which node of that view, what travels (0 IDs, 1 values, 2 contents), and flags: filtered by value or
    name, names travel.
    """

    first: NDArray[np.int64]
    rows: NDArray[np.int32]


def provisions(
    graph: EmbeddingGraph,
    table: CandidateTable,
    statistics: Statistics,
    queries: NDArray[np.int64],
    candidates: NDArray[np.int64],
) -> Provisions:
    """Say who provides what in these candidates of these queries (by number, of at most 64 nodes each)."""
    sizes = np.diff(graph.table.first)[queries]
    first = np.concatenate(([0], np.cumsum(sizes)))
    rows = np.full((int(first[-1]), P_FIELDS), -1, np.int32)
    arrays = (graph.table.nodes, graph.table.first, graph.table.attribute, graph.table.conditions.arrays)
    most = int(np.diff(table.member_first).max(initial=1))
    _provide(
        arrays,
        row_sizes(graph, statistics),
        queries,
        candidates,
        table.member_first,
        table.members,
        most,
        first,
        rows,
    )
    return Provisions(first, rows)


@kernel
def _provide(
    table: Any, sizes: Any, queries: Any, candidates: Any, member_first: Any, members: Any, most: int, first: Any,
    rows: Any,
) -> None:  # fmt: skip
    nodes, node_first, attribute, arrays = table
    conditions = pointers_to(arrays)
    labels, masks = np.zeros(attribute.size, np.int64), np.zeros((Q_ROWS, MASK_BITS), np.int64)
    offers, at = np.zeros((most, MASK_BITS, O_FIELDS), np.int64), np.zeros(MASK_BITS, np.int64)
    for i in range(queries.size):
        q, c = queries[i], candidates[i]
        query, size = node_first[q], node_first[q + 1] - node_first[q]
        if size > MASK_BITS:
            continue
        query_masks(nodes, query, size, attribute, labels, masks)
        count = member_first[c + 1] - member_first[c]
        for k in range(count):
            u = members[member_first[c] + k]
            view, length = node_first[u], node_first[u + 1] - node_first[u]
            for n in range(size):
                offers[k, n, O_COST] = -1
            if length <= MASK_BITS:
                if pair_covers(nodes, view, length, nodes, query, conditions, labels, masks, at):
                    offers_of(nodes, conditions, sizes, view, length, at, query, size, offers[k])
        forget_labels(nodes, query, size, labels)
        for n in range(size):
            best = -1
            for k in range(count):
                cost = offers[k, n, O_COST]
                if cost >= 0 and (best < 0 or cost < offers[best, n, O_COST]):
                    best = k
            if best >= 0:
                u = members[member_first[c] + best]
                out = rows[first[i] + n]
                out[P_INPUT], out[P_VIEW_NODE] = best, offers[best, n, O_NODE]
                _describe(nodes, conditions, node_first[u] + offers[best, n, O_NODE], query + n, out)


@kernel
def _describe(nodes: Any, conditions: Any, view: int, query: int, out: Any) -> None:
    """Say what travels from a view's node to a query's and what is filtered; rows of the table."""
    needed, asked = nodes[query, NEEDS], nodes[query, CONDITION]
    star, flags = nodes[view, LABEL] == ANY_LABEL, 0
    out[P_PAYLOAD] = needed
    if asked != NO_CONDITION:
        if not implied(conditions, nodes[view, CONDITION], asked):
            flags |= BY_VALUE
        if needed == VAL_LEVEL and is_fixed(conditions, asked):
            out[P_PAYLOAD] = ID_LEVEL
    if star:
        flags |= NAMES if nodes[query, LABEL] == ANY_LABEL else BY_NAME
    out[P_FLAGS] = flags

"""What each candidate of a table costs by its cheapest physical plan, and who provides what in it.

Utilization is a weighted sum, over the machines that take part, of bytes sent and received, nodes handled when
sending and when receiving, and F per link; for the source's own resources it is multiplied by a weight of theirs.
All in *byte equivalents* per thousand documents, whole numbers, so that sums are exact.

Three physical plans. *Filter*: the sender filters the lists it provides. *Reduce*: it also reduces the part of the
query it provides; which of the two is chosen for each link. *Join*: one input's machine receives what the others
send, computes the query, and sends the finished result on (section 2.2 of the Delta paper). Estimates are those of
``Rewriting.plan_cost``.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rewriting.conditions import NO_CONDITION, implied, is_fixed, pointers_to
from rewriting.execution import Link, Rewriting, links_of
from rewriting.kernels import MASK_BITS, kernel, lowest
from rewriting.providers import feeders
from rewriting.statistics import CONT, DOCUMENTS, ID_BYTES, NAME_BYTES, ROWS, VAL, Statistics, link_cost, thinning
from rewriting.table import ANY_LABEL, CARRIES, CONDITION, ID_LEVEL, LABEL, NEEDS, PARENT, VAL_LEVEL
from rewriting.trie import Q_ROWS, forget_labels, pair_covers, query_masks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rewriting.candidate_table import CandidateTable
    from rewriting.graph import EmbeddingGraph

JOIN: Final = 1 << 30
"""In a plan's number: the inputs are joined at the machine of input ``plan - JOIN``; else a bit per link that
reduces."""
_RUN: Final = 4_000

# What a view offers for a query node: a row of numbers.
O_COST, O_LEAST, O_ROWS, O_LEAST_ROWS, O_VIEW_ROWS, O_NODE, O_FIELDS = range(7)
W_SENT, W_RECEIVED, W_SENDER, W_RECEIVER, W_LINK, W_JOINS, W_FIELDS = range(7)


@dataclass(frozen=True, slots=True)
class Weights:
    """What counts how much, in byte equivalents. ``link`` is F: more of it means fewer views per rewriting.
    ``source``: how much dearer the source's resources are; at 1 every plan just fills the source's limit.
    ``joins``: whether inputs may be joined at the machine of one of them."""

    sent: int = 1
    received: int = 1
    sender_node: int = 1
    receiver_node: int = 1
    link: int = 512
    source: int = 10
    joins: bool = True

    def __post_init__(self) -> None:
        values = (self.sent, self.received, self.sender_node, self.receiver_node, self.link, self.source)
        if min(values) < 0 or self.sent + self.received < 1 or max(values) > 1 << 20:
            raise ValueError("weights are from 0 to 1,048,576, and a byte weighs something")

    @property
    def link_bytes(self) -> int:
        """F as the search for candidates wants it: in bytes."""
        return self.link // (self.sent + self.received)

    def array(self) -> NDArray[np.int64]:
        """Return the weights for compiled code."""
        own = (self.sent, self.received, self.sender_node, self.receiver_node, self.link * DOCUMENTS, self.joins)
        return np.array(own, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Prices:
    """By candidate: ``utilization``, ``plans`` (see ``JOIN``), ``reducing`` (a bit per link that reduces, joined
    or not), ``nodes`` the receiver handles per thousand documents.

    ``link_bytes``, by member of a candidate: what travels on its link per thousand documents. By pattern: the
    bytes and nodes of its own results, and what it costs from the source or as a copy of an equal one
    (``copies``).
    """

    utilization: NDArray[np.int64]
    plans: NDArray[np.int32]
    reducing: NDArray[np.int32]
    nodes: NDArray[np.int64]
    link_bytes: NDArray[np.int64]
    result_bytes: NDArray[np.int64]
    result_nodes: NDArray[np.int64]
    sources: NDArray[np.int64]
    copies: NDArray[np.int64]


def price(
    graph: EmbeddingGraph,
    table: CandidateTable,
    statistics: Statistics | None = None,
    weights: Weights | None = None,
    *,
    threads: int | None = None,
) -> Prices:
    """Price every candidate of a table, and every pattern's own results."""
    weights = weights or Weights()
    sizes = row_sizes(graph, statistics or Statistics())
    bytes_, nodes = result_sizes(graph.table.nodes, graph.table.first, sizes, _fixed(graph))
    count = len(table)
    utilization, plans, reducing = np.zeros(count, np.int64), np.zeros(count, np.int32), np.zeros(count, np.int32)
    handled, links = np.zeros(count, np.int64), np.zeros(len(table.members), np.int64)
    arrays = (graph.table.nodes, graph.table.first, graph.table.attribute, graph.table.conditions.arrays)
    most = int(np.diff(table.first).max(initial=0)) * int(np.diff(table.member_first).max(initial=0))

    def run(start: int) -> None:
        numbers = np.arange(start, min(start + _RUN, len(table.first) - 1))
        price_runs(
            arrays, sizes, numbers, table.first, table.member_first, table.members, weights.array(),
            most + 1, utilization, plans, reducing, handled, links,
        )  # fmt: skip

    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        list(pool.map(run, range(0, len(table.first) - 1, _RUN)))
    for q, c in _large(graph, table):  # more than 64 nodes: one by one
        found = slow_price(graph, table, statistics or Statistics(), weights, q, c)
        utilization[c], plans[c], reducing[c], handled[c] = found[:4]
        links[table.member_first[c] : table.member_first[c + 1]] = found[4]
    both = weights.sent + weights.received
    reading = weights.receiver_node * 2 * nodes
    sending = weights.sender_node * nodes + weights.link * DOCUMENTS
    sources = weights.source * (weights.sent * bytes_ + sending) + weights.received * bytes_ + reading
    copies = both * bytes_ + sending + reading
    return Prices(utilization, plans, reducing, handled, links, bytes_, nodes, sources, copies)


def _large(graph: EmbeddingGraph, table: CandidateTable) -> list[tuple[int, int]]:
    """List the candidates, with their patterns, that compiled code cannot price."""
    if not graph.large:
        return []
    owner = np.repeat(np.arange(len(table.first) - 1), np.diff(table.first))
    wide = np.isin(table.members, graph.large)
    which = np.isin(owner, graph.large)
    which[np.repeat(np.arange(len(table)), np.diff(table.member_first))[wide]] = True
    return [(int(owner[c]), c) for c in np.flatnonzero(which).tolist()]


def slow_price(
    graph: EmbeddingGraph, table: CandidateTable, statistics: Statistics, weights: Weights, q: int, c: int
) -> tuple[int, int, int, int, list[int]]:
    """Price one candidate as ``price_runs`` does, of patterns of any size: its utilization, plan, which links
    reduce, the nodes that the receiver handles, and bytes by link."""
    members = table.members[table.member_first[c] : table.member_first[c + 1]].tolist()
    able = {f.view: f for f in feeders(graph.pattern(q), [graph.pattern(u) for u in members], statistics)}
    rewriting = Rewriting(
        graph.pattern(q), links_of(graph.pattern(q), [able[graph.pattern(u)] for u in members]), 0
    )
    ways = [[_link_ways(link, reduced, weights) for reduced in (False, True)] for link in rewriting.links]
    reduces = [second[0] < first[0] for first, second in ways]
    best = [pair[int(reduced)] for pair, reduced in zip(ways, reduces, strict=True)]
    total, plan = sum(b[0] for b in best), sum(1 << min(i, 29) for i, reduced in enumerate(reduces) if reduced)
    bits, nodes, sent = plan, sum(b[2] for b in best), [b[1] for b in best]
    provisions = [p for link in rewriting.links for p in link.provisions]
    least, rows = sum(p.least for p in provisions), sum(p.least_rows for p in provisions)
    if weights.joins and len(members) > 1:
        both = weights.sent + weights.received
        for i, link in enumerate(rewriting.links):
            handled = sum(p.view_rows + 2 * p.rows for p in link.provisions)
            own = both * least + weights.sender_node * handled + weights.receiver_node * 2 * rows
            joined = sum(b[0] for b in best) - best[i][0] + own + weights.link * DOCUMENTS
            if joined < total:
                total, plan, nodes = joined, JOIN + i, 2 * rows
    if plan >= JOIN:
        sent[plan - JOIN] = least
    return total, plan, bits, nodes, sent


def _link_ways(link: Link, reduced: bool, weights: Weights) -> tuple[int, int, int]:
    """Price a link by one plan: utilization, bytes, nodes that the receiver handles."""
    connected = {n for _, part in link.parts if len(part) > 1 for n in part}
    sent, handled, rows = 0, 0, 0
    for p in link.provisions:
        half = reduced and p.query_node in connected
        sent += (p.cost + p.least) // 2 if half else p.cost
        rows += (p.rows + p.least_rows) // 2 if half else p.rows
        handled += p.view_rows + (2 * p.rows if half else 0)
    both = weights.sent + weights.received
    cost = both * sent + weights.sender_node * handled + weights.receiver_node * 2 * rows
    return cost + weights.link * DOCUMENTS, sent, 2 * rows


def per_document(per_thousand: NDArray[np.int64]) -> NDArray[np.int64]:
    """Round utilization per thousand documents up to whole byte equivalents per document."""
    return -(-per_thousand // DOCUMENTS)


def row_sizes(graph: EmbeddingGraph, statistics: Statistics) -> NDArray[np.int64]:
    """Return the figures of every row of the graph's table; 0 for patterns that have left."""
    sizes = np.zeros((3, len(graph.table.nodes)), np.int64)
    numbers = graph.numbers
    if len(numbers) == len(graph.table):
        return np.ascontiguousarray(statistics.of_all([graph.pattern(number) for number in numbers.tolist()]))
    for number in numbers.tolist():
        sizes[:, graph.table.first[number] : graph.table.first[number + 1]] = statistics.of(graph.pattern(number))
    return sizes


def _fixed(graph: EmbeddingGraph) -> NDArray[np.bool_]:
    fixed: NDArray[np.bool_] = graph.table.conditions.fixed()[graph.table.nodes[:, CONDITION]] > 0
    return fixed


def result_sizes(
    nodes: NDArray[np.int32], first: NDArray[np.int64], sizes: NDArray[np.int64], fixed: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, by pattern, the bytes and nodes of its results as the source or an equal pattern would send them."""
    payload = np.where((nodes[:, NEEDS] == VAL_LEVEL) & fixed, ID_LEVEL, nodes[:, NEEDS])
    carried = np.choose(payload, [np.zeros(len(nodes), np.int64), sizes[VAL], sizes[CONT]])
    each = ID_BYTES + np.where(nodes[:, LABEL] == ANY_LABEL, NAME_BYTES, 0)
    if len(nodes) == 0:
        return np.zeros(len(first) - 1, np.int64), np.zeros(len(first) - 1, np.int64)
    return np.add.reduceat(sizes[ROWS] * each + carried, first[:-1]), np.add.reduceat(sizes[ROWS], first[:-1])


@kernel
def offers_of(
    nodes: Any, conditions: Any, sizes: Any, view: int, length: int, covers: Any, query: int, size: int, out: Any
) -> None:  # fmt: skip
    """Write what a view offers for each node of a query; the cost -1 where nothing. Rows of the table."""
    for n in range(size):
        out[n, O_COST] = -1
    for m in range(length):
        star = nodes[view + m, LABEL] == ANY_LABEL
        condition = nodes[view + m, CONDITION]
        left = covers[m]
        while left != 0:
            n = lowest(left)
            left &= left - 1
            row = query + n
            needed, asked = nodes[row, NEEDS], nodes[row, CONDITION]
            payload, by_value = needed, False
            if asked != NO_CONDITION:
                by_value = not implied(conditions, condition, asked)
                if needed == VAL_LEVEL and is_fixed(conditions, asked):
                    payload = ID_LEVEL
            if nodes[view + m, CARRIES] < max(needed, VAL_LEVEL if by_value else ID_LEVEL):
                continue
            names = star and nodes[row, LABEL] == ANY_LABEL
            carried = sizes[payload, view + m] if payload > 0 else 0
            own = sizes[payload, row] if payload > 0 else 0
            cost = link_cost(
                sizes[ROWS, view + m], carried, sizes[ROWS, row], own, by_value, star and not names, names
            )  # fmt: skip
            if out[n, O_COST] < 0 or cost < out[n, O_COST]:
                out[n, O_COST], out[n, O_NODE] = cost, m
                out[n, O_LEAST] = sizes[ROWS, row] * (ID_BYTES + (NAME_BYTES if names else 0)) + own
                shift = thinning(by_value, star and not names)
                out[n, O_ROWS] = max(sizes[ROWS, view + m] >> shift, sizes[ROWS, row])
                out[n, O_LEAST_ROWS], out[n, O_VIEW_ROWS] = sizes[ROWS, row], sizes[ROWS, view + m]


@kernel
def _shares(offers: Any, chosen: Any, count: int, size: int, provider: Any) -> bool:
    """Give every query node to the member that provides it most cheaply; False if one has none."""
    for n in range(size):
        provider[n] = -1
        for i in range(count):
            cost = offers[chosen[i], n, O_COST]
            if cost >= 0 and (provider[n] < 0 or cost < offers[chosen[provider[n]], n, O_COST]):
                provider[n] = i
        if provider[n] < 0:
            return False
    return True


@kernel
def _connected(nodes: Any, query: int, size: int, provider: Any, out: Any) -> None:
    """Mark the nodes whose provider also provides a node above or below them: reducing can thin those."""
    for n in range(size):
        out[n] = False
    for n in range(size):
        above = nodes[query + n, PARENT]
        while above >= 0:
            if provider[above] == provider[n]:
                out[n], out[above] = True, True
                break
            above = nodes[query + above, PARENT]


@kernel
def _link(
    offers: Any, view: int, member: int, provider: Any, connected: Any, size: int, reduced: bool, weights: Any,
    out: Any,
) -> int:  # fmt: skip
    """Price one link by one plan; ``out`` gets its bytes and the nodes that the receiver handles."""
    sent, handled, rows = 0, 0, 0
    for n in range(size):
        if provider[n] == member:
            half = reduced and connected[n]
            o = offers[view, n]
            sent += (o[O_COST] + o[O_LEAST]) // 2 if half else o[O_COST]
            rows += (o[O_ROWS] + o[O_LEAST_ROWS]) // 2 if half else o[O_ROWS]
            handled += o[O_VIEW_ROWS] + (2 * o[O_ROWS] if half else 0)
    out[0], out[1] = sent, 2 * rows
    both = weights[W_SENT] + weights[W_RECEIVED]
    return int(both * sent + weights[W_SENDER] * handled + weights[W_RECEIVER] * 2 * rows + weights[W_LINK])


@kernel
def _joined(
    offers: Any, chosen: Any, count: int, size: int, provider: Any, weights: Any, total: int, links: Any, out: Any
) -> int:  # fmt: skip
    """Find the input at whose machine a join is cheapest; -1 if that saves nothing. ``out``: total, bytes,
    nodes."""
    sent, rows = 0, 0
    for n in range(size):
        sent += offers[chosen[provider[n]], n, O_LEAST]
        rows += offers[chosen[provider[n]], n, O_LEAST_ROWS]
    best = -1
    out[0], out[1], out[2] = total, sent, 2 * rows
    for i in range(count):
        handled = 0
        for n in range(size):
            if provider[n] == i:
                handled += offers[chosen[i], n, O_VIEW_ROWS] + 2 * offers[chosen[i], n, O_ROWS]
        own = (weights[W_SENT] + weights[W_RECEIVED]) * sent + weights[W_SENDER] * handled
        own += weights[W_RECEIVER] * 2 * rows + weights[W_LINK]
        if total - links[i] + own < out[0]:
            best, out[0] = i, total - links[i] + own
    return best


@kernel
def price_runs(
    table: Any, sizes: Any, numbers: Any, first: Any, member_first: Any, members: Any, weights: Any, most: int,
    utilization: Any, plans: Any, reducing: Any, handled: Any, link_bytes: Any,
) -> None:  # fmt: skip
    """Price the candidates of some patterns. Nothing is written for one that is no cover: it stays at 0."""
    nodes, node_first, attribute, arrays = table
    conditions = pointers_to(arrays)
    labels, masks = np.zeros(attribute.size, np.int64), np.zeros((Q_ROWS, MASK_BITS), np.int64)
    local = np.full(node_first.size - 1, -1, np.int64)
    offers = np.zeros((most, MASK_BITS, O_FIELDS), np.int64)
    at, provider = np.zeros(MASK_BITS, np.int64), np.zeros(MASK_BITS, np.int64)
    connected = np.zeros(MASK_BITS, np.bool_)
    chosen, links, out = np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(3, np.int64)
    for q in numbers:
        query, size = node_first[q], node_first[q + 1] - node_first[q]
        if first[q] == first[q + 1] or size > MASK_BITS:
            continue
        query_masks(nodes, query, size, attribute, labels, masks)
        known = 0
        for i in range(member_first[first[q]], member_first[first[q + 1]]):
            u = members[i]
            if local[u] < 0:
                local[u] = known
                view, length = node_first[u], node_first[u + 1] - node_first[u]
                for n in range(size):
                    offers[known, n, O_COST] = -1
                if length <= MASK_BITS:
                    if pair_covers(nodes, view, length, nodes, query, conditions, labels, masks, at):
                        offers_of(nodes, conditions, sizes, view, length, at, query, size, offers[known])
                known += 1
        forget_labels(nodes, query, size, labels)
        for c in range(first[q], first[q + 1]):
            start, count = member_first[c], member_first[c + 1] - member_first[c]
            for i in range(count):
                chosen[i] = local[members[start + i]]
            if not _shares(offers, chosen, count, size, provider):
                continue
            _connected(nodes, query, size, provider, connected)
            total, plan, received = 0, 0, 0
            for i in range(count):
                plain = _link(offers, chosen[i], i, provider, connected, size, False, weights, out)
                link_bytes[start + i], nodes_in, links[i] = out[0], out[1], plain
                reduced = _link(offers, chosen[i], i, provider, connected, size, True, weights, out)
                if reduced < plain:
                    link_bytes[start + i], nodes_in, links[i] = out[0], out[1], reduced
                    plan |= 1 << min(i, 29)
                total += links[i]
                received += nodes_in
            reducing[c] = plan
            if weights[W_JOINS] and count > 1:
                joint = _joined(offers, chosen, count, size, provider, weights, total, links, out)
                if joint >= 0:
                    plan, total, received = JOIN + joint, out[0], out[2]
                    link_bytes[start + joint] = out[1]
            utilization[c], plans[c], handled[c] = total, plan, received
        for i in range(member_first[first[q]], member_first[first[q + 1]]):
            local[members[i]] = -1

"""Candidates for one pattern at a time, priced: for patterns that come when the big table is already made.

The same steps as ``rewriting.batch`` takes for many patterns, but from a list of views instead of the trie: what
each view offers, the search, the prices. About a millisecond, most of which goes into the offers. Patterns of more
than 64 nodes, and those that need more than eight views, are done the slow way; views of more than 64 nodes feed
only such patterns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rewriting.batch import find_sets, tie_hash, write_sets
from rewriting.candidates import BATCH, NEVER, Effort, candidates
from rewriting.conditions import pointers_to
from rewriting.embedding import embeds
from rewriting.feeding_order import text_hash
from rewriting.growing import grown_rows
from rewriting.kernels import MASK_BITS, kernel
from rewriting.pool import price as least_prices
from rewriting.pricing import O_COST, O_FIELDS, Weights, offers_of, price_runs, result_sizes, row_sizes
from rewriting.providers import feeder, feeders
from rewriting.scan import LABEL_SET
from rewriting.statistics import DOCUMENTS, KINDS, Statistics
from rewriting.table import CONDITION
from rewriting.trie import Q_ROWS, forget_labels, pair_covers, pair_embeds, query_masks
from rewriting.work_area import MOST_MEMBERS, pointers, scratch
from xmlmatch.pointers import int64_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rewriting.graph import EmbeddingGraph


class Priced(NamedTuple):
    """A candidate with its price: the views' numbers, and the figures of ``pricing.Prices`` (``plan``: see there).

    ``cost`` is what the search ranks by, in bytes per thousand documents; ``number`` its own in a candidate table,
    -1 if it is in none.
    """

    views: tuple[int, ...]
    cost: int
    utilization: int
    plan: int
    nodes: int
    link_bytes: tuple[int, ...]
    number: int = -1
    reducing: int = 0


class Results(NamedTuple):
    """What a pattern's own results come to per thousand documents; see ``pricing.Prices``."""

    bytes: int
    nodes: int
    source: int
    copy: int


@dataclass(slots=True, eq=False)
class Finder:
    """Finds and prices candidates of single patterns of a graph, which may grow."""

    graph: EmbeddingGraph
    statistics: Statistics
    weights: Weights
    k: int
    effort: Effort
    _sizes: NDArray[np.int64]
    _hashes: NDArray[np.int64]
    _known: int
    _area: tuple[NDArray[Any], ...]

    @classmethod
    def of(
        cls, graph: EmbeddingGraph, statistics: Statistics, weights: Weights, k: int, effort: Effort = BATCH
    ) -> Finder:
        """Make one for a graph as it is; ``take`` tells it of patterns that come later."""
        numbers = graph.numbers.tolist()
        hashes = np.zeros(len(graph.table), np.int64)
        hashes[numbers] = [text_hash(graph.pattern(number)) for number in numbers]
        sizes = row_sizes(graph, statistics)
        return cls(graph, statistics, weights, k, effort, sizes, hashes, len(graph.table), scratch())

    def take(self, number: int) -> None:
        """Note the figures of a pattern that has come; do it in the order of their numbers."""
        if number < self._known:
            return
        table, pattern = self.graph.table, self.graph.pattern(number)
        start, end = table.first[number : number + 2].tolist()
        if end > self._sizes.shape[1]:
            wider = np.zeros((KINDS, 2 * end), np.int64)
            wider[:, : self._sizes.shape[1]] = self._sizes
            self._sizes = wider
        self._sizes[:, start:end] = self.statistics.of(pattern)
        self._hashes = grown_rows(self._hashes, number + 1)
        self._hashes[number] = text_hash(pattern)
        self._known = number + 1

    def results(self, number: int) -> Results:
        """Price a pattern's own results: from the source, and as a copy of an equal one."""
        table, w = self.graph.table, self.weights
        start, end = table.first[number : number + 2].tolist()
        rows = table.nodes[start:end]
        fixed = table.conditions.fixed()[rows[:, CONDITION]] > 0
        bytes_, nodes = result_sizes(rows, np.array([0, end - start]), self._sizes[:, start:end], fixed)
        size, handled = int(bytes_[0]), int(nodes[0])
        sending = w.sender_node * handled + w.link * DOCUMENTS
        reading = w.received * size + w.receiver_node * 2 * handled
        return Results(
            size, handled, w.source * (w.sent * size + sending) + reading, w.sent * size + sending + reading
        )

    def may_feed(self, view: int, query: int) -> bool:
        """Say whether the feeding order lets one pattern feed another in which it embeds."""
        signs = self.graph.signs
        if signs[view, LABEL_SET] != signs[query, LABEL_SET] or self.graph.key(view) < self.graph.key(query):
            return True
        return not embeds(self.graph.pattern(query), self.graph.pattern(view))

    def feeders(self, number: int, views: NDArray[np.int64]) -> NDArray[np.int64]:
        """Keep, of the views that embed in a pattern, those that the feeding order lets feed it."""
        graph = self.graph
        alike = views[graph.signs[views, LABEL_SET] == graph.signs[number, LABEL_SET]]
        own = graph.key(number)
        later = np.array([u for u in alike.tolist() if graph.key(u) > own], np.int64)
        if len(later) == 0:
            return views
        if number in graph.large or np.isin(later, graph.large).any():
            query = graph.pattern(number)
            back = [u for u in later.tolist() if embeds(query, graph.pattern(u))]
            return np.setdiff1d(views, np.array(back, np.int64))
        mutual = np.zeros(len(later), np.bool_)
        _embed_back(self._arrays(), number, later, mutual)
        return np.setdiff1d(views, later[mutual])

    def find(self, number: int, views: NDArray[np.int64]) -> list[Priced]:
        """Find up to ``k`` candidates of a pattern among views that may feed it, the cheapest first."""
        graph = self.graph
        if number in graph.large:
            return self._find_slowly(number, views)
        views = np.setdiff1d(views, graph.large) if graph.large else views
        size = int(graph.table.first[number + 1] - graph.table.first[number])
        slots, ties = np.empty(len(views), np.int64), np.empty(len(views), np.int64)
        room = np.empty(len(views) * size, np.int64)
        costs, members = np.empty(self.k, np.int64), np.empty((self.k, MOST_MEMBERS), np.int32)
        effort, link = self.effort, self.weights.link_bytes * DOCUMENTS
        options = (link, effort.pool, effort.expansions, effort.width, effort.enough, self.k)
        kept = _search(
            self._arrays(), self._sizes, number, views, self._hashes, options, self._area,
            (slots, ties, room, np.empty(self.k, np.int64)), (costs, members),
        )  # fmt: skip
        if kept < 0:
            return self._find_slowly(number, views)
        sets = [tuple(v for v in row if v >= 0) for row in members[:kept].tolist()]
        return self.price(number, sets, costs[:kept].tolist())

    def _find_slowly(self, number: int, views: NDArray[np.int64]) -> list[Priced]:
        graph, query = self.graph, self.graph.pattern(number)
        able = feeders(query, [graph.pattern(u) for u in views.tolist()], self.statistics)
        options = {"effort": self.effort, "link_bytes": self.weights.link_bytes}
        found = list(candidates(query, able, self.k, **options))  # type: ignore[arg-type]  # both are as wanted
        sets = [tuple(graph.number(able[v].view) for v in c.members) for c in found]
        return self.price(number, sets, [c.cost for c in found])

    def covers(self, number: int, views: Sequence[int]) -> bool:
        """Say whether views provide all nodes of a pattern."""
        query = self.graph.pattern(number)
        found = [feeder(self.graph.pattern(u), query, self.statistics) for u in views]
        provided = {n for f in found if f is not None for n in f.provisions}
        return len(provided) == len(query.nodes)

    def price(self, number: int, sets: Sequence[tuple[int, ...]], costs: Sequence[int] = ()) -> list[Priced]:
        """Price sets of views, each of which covers the pattern."""
        sizes = [len(views) for views in sets]
        count, total = len(sets), sum(sizes)
        first = np.zeros(number + 2, np.int64)
        first[number + 1] = count
        member_first = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        members = np.array([v for views in sets for v in views], np.int32)
        utilization, plans, bits = np.zeros(count, np.int64), np.zeros(count, np.int32), np.zeros(count, np.int32)
        handled, links = np.zeros(count, np.int64), np.zeros(total, np.int64)
        price_runs(
            self._arrays(), self._sizes, np.array([number]), first, member_first, members, self.weights.array(),
            total + 1, utilization, plans, bits, handled, links,
        )  # fmt: skip
        sent, ends = links.tolist(), member_first.tolist()
        return [
            Priced(views, cost, util, plan, nodes, tuple(sent[ends[i] : ends[i + 1]]), reducing=int(bits[i]))
            for i, (views, cost, util, plan, nodes) in enumerate(
                zip(
                    sets, costs or [0] * count, utilization.tolist(), plans.tolist(), handled.tolist(), strict=True
                )
            )
        ]

    def _arrays(self) -> tuple[Any, Any, Any, Any]:
        table = self.graph.table
        return table.nodes, table.first, table.attribute, table.conditions.arrays


@kernel
def _embed_back(table: Any, query: int, views: Any, out: Any) -> None:
    """Say of each view whether the query embeds in it."""
    nodes, first, attribute, arrays = table
    conditions = pointers_to(arrays)
    labels, masks = np.zeros(attribute.size, np.int64), np.zeros((Q_ROWS, MASK_BITS), np.int64)
    at = np.empty(MASK_BITS, np.int64)
    own, length = first[query], first[query + 1] - first[query]
    for i in range(views.size):
        row, size = first[views[i]], first[views[i] + 1] - first[views[i]]
        query_masks(nodes, row, size, attribute, labels, masks)
        out[i] = pair_embeds(nodes, own, length, nodes, row, conditions, labels, masks, at)
        forget_labels(nodes, row, size, labels)


@kernel
def _search(
    table: Any, sizes: Any, query: int, views: Any, hashes: Any, options: Any, area: Any, room: Any, out: Any
) -> int:  # fmt: skip
    """Find candidates among views; return how many, -1 where it must be done the slow way.

    ``room`` comes from outside, since compiled code would free its own arrays while pointers to them are in use.
    """
    nodes, first, attribute, arrays = table
    slots, ties, costs, chosen = room
    conditions, work = pointers_to(arrays), pointers(area)
    labels, masks = np.zeros(attribute.size, np.int64), np.zeros((Q_ROWS, MASK_BITS), np.int64)
    at, offers = np.empty(MASK_BITS, np.int64), np.empty((MASK_BITS, O_FIELDS), np.int64)
    own, size = first[query], first[query + 1] - first[query]
    query_masks(nodes, own, size, attribute, labels, masks)
    count = 0
    for view in views:
        row, length = first[view], first[view + 1] - first[view]
        if not pair_covers(nodes, row, length, nodes, own, conditions, labels, masks, at):
            continue
        offers_of(nodes, conditions, sizes, row, length, at, own, size, offers)
        useful = False
        for n in range(size):
            costs[count * size + n] = offers[n, O_COST] if offers[n, O_COST] >= 0 else NEVER
            useful = useful or offers[n, O_COST] >= 0
        if useful:
            slots[count], ties[count] = view, tie_hash(hashes[query], hashes[view])
            count += 1
    if count == 0 or not least_prices(int64_at(costs.ctypes.data), size, count, options[0], work[7]):
        return 0
    at_costs, at_ties = int64_at(costs.ctypes.data), int64_at(ties.ctypes.data)
    kept = find_sets(work, at_costs, size, at_ties, count, options, chosen)
    if kept > 0:
        write_sets(work, chosen, kept, slots, out, 0)
    return int(kept)

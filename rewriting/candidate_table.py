"""Candidates for every pattern of an embedding graph at once: the rewritability graph as arrays.

Threads take turns at runs of queries (the compiled part releases the GIL) and keep only candidates. Patterns that
the compiled part cannot take (over 64 nodes, or needing more than eight views) are done one by one.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rewriting.batch import EDGES, GIVEN_UP, TOTALS, mark_changes, run
from rewriting.candidates import BATCH, Effort, candidates, check_options
from rewriting.feeding_order import text_hash
from rewriting.graph import EmbeddingGraph
from rewriting.kernels import MASK_BITS, kernel
from rewriting.providers import feeders
from rewriting.scan import LABEL_SET
from rewriting.statistics import DOCUMENTS, LINK_BYTES, Statistics
from rewriting.table import CARRIES
from rewriting.trie import T_VIEWS, T_VIEWS_END
from rewriting.work_area import MOST_MEMBERS, MOST_POOL, MOST_SETS, scratch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from rewriting.trie import Trie
    from xmlmatch import Pattern

_QUERIES_PER_RUN: Final = 2_000
_LEAST: Final = Effort(pool=1, expansions=1, width=1, enough=1, rounds=1)


@dataclass(frozen=True, slots=True, eq=False)
class CandidateTable:
    """Candidates ``first[q] : first[q + 1]`` belong to the pattern with number ``q``, the cheapest first.

    Candidate ``c`` costs ``costs[c]`` bytes per thousand documents and takes the views with the numbers
    ``members[member_first[c] : member_first[c + 1]]``. ``edges`` counts the edges of the embedding graph,
    ``given_up`` those that the feeding order forbids.
    """

    first: NDArray[np.int64]
    costs: NDArray[np.int64]
    member_first: NDArray[np.int64]
    members: NDArray[np.int32]
    edges: int
    given_up: int

    def __len__(self) -> int:
        return len(self.costs)

    @property
    def rewritable(self) -> int:
        """How many patterns have a candidate."""
        return int(np.count_nonzero(np.diff(self.first)))

    def of(self, number: int) -> list[tuple[int, tuple[int, ...]]]:
        """List the candidates of a pattern: cost, and the numbers of its views; ``KeyError`` for no number."""
        if not 0 <= number < len(self.first) - 1:
            raise KeyError(number)
        return [
            (int(self.costs[c]), tuple(self.members[self.member_first[c] : self.member_first[c + 1]].tolist()))
            for c in range(self.first[number], self.first[number + 1])
        ]


@dataclass(frozen=True, slots=True)
class Part:
    """What a run of queries gave: per query its number and how many candidates; then costs, sizes, members."""

    queries: NDArray[np.int64]
    counts: NDArray[np.int64]
    costs: NDArray[np.int64]
    sizes: NDArray[np.int64]
    members: NDArray[np.int32]
    totals: NDArray[np.int64]

    def without(self, queries: set[int]) -> Part:
        """Leave out the candidates of some queries, which are done otherwise; what was counted stays."""
        left = np.isin(self.queries, np.fromiter(queries, np.int64), invert=True)
        if left.all():
            return self
        owners = np.repeat(left, np.maximum(self.counts, 0))
        return Part(
            self.queries[left], self.counts[left], self.costs[owners], self.sizes[owners],
            self.members[np.repeat(owners, self.sizes)], self.totals,
        )  # fmt: skip


def find_candidates(
    graph: EmbeddingGraph,
    k: int = 30,
    *,
    statistics: Statistics | None = None,
    effort: Effort = BATCH,
    link_bytes: int = LINK_BYTES,
    threads: int | None = None,
    tick: Callable[[int], None] = lambda _: None,
) -> CandidateTable:
    """Find up to ``k`` candidates for every pattern, along the feeding order; ``tick`` is told how many are done.

    Each pattern gets one round of the effort, and at most 2,048 candidates.

    >>> from rewriting import EmbeddingGraph
    >>> from xmlmatch import Pattern
    >>> graph = EmbeddingGraph.build(Pattern.parse(t) for t in ["//a{cont}", "//b{val}", "//a{val}[b{val}]"])
    >>> [views for cost, views in find_candidates(graph).of(2)]
    [(0, 1)]
    """
    known = statistics or Statistics()
    places = Places.of(graph, known, k, effort=effort, link_bytes=link_bytes)
    parts = []
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        for part in pool.map(places.run, places.runs()):
            parts.append(part)
            tick(len(part.queries))
    return finish(graph, parts, k, statistics=known, effort=effort, link_bytes=link_bytes, tick=tick)


def finish(
    graph: EmbeddingGraph,
    parts: list[Part],
    k: int,
    *,
    statistics: Statistics,
    effort: Effort = BATCH,
    link_bytes: int = LINK_BYTES,
    tick: Callable[[int], None] = lambda _: None,
) -> CandidateTable:
    """Put together what the runs of ``Places`` gave, wherever they ran; do here what the compiled part left."""
    slow = {q for part in parts for q in part.queries[part.counts < 0].tolist()}
    slow |= {q for u in graph.large for q in graph.queries_of(u).tolist()} | set(graph.large)
    parts = [part.without(slow) for part in parts]
    for number in sorted(slow):
        parts.append(_one(graph, number, min(k, MOST_SETS), statistics, effort, link_bytes))
        tick(number in graph.large)
    return _joined(parts, int(graph.numbers.max(initial=-1)) + 1)


def unrewritable(patterns: Sequence[Pattern], tick: Callable[[int], None] = lambda _: None) -> list[int]:
    """List the positions of the patterns that the others cannot feed along the feeding order.

    Of equal patterns, the first feeds the others.

    >>> from xmlmatch import Pattern
    >>> texts = ["//a{cont}", "//b{val}", "//a{cont}/b{val}", "//c{val}[.='1']"]
    >>> unrewritable([Pattern.parse(text) for text in texts])
    [0, 1, 3]
    """
    graph = EmbeddingGraph.build(patterns)
    found = find_candidates(graph, 1, effort=_LEAST, tick=tick)
    firsts = {graph.number(pattern): i for i, pattern in reversed(list(enumerate(patterns)))}
    return sorted(i for number, i in firsts.items() if not found.of(number))


@dataclass(frozen=True, slots=True)
class Places:
    """What the compiled part reads, in the order of the trie: arrays only, fit to be sent to other machines."""

    trie: Trie
    table: tuple[object, ...]
    carried: NDArray[np.uint8]
    changes: NDArray[np.uint8]
    sizes: NDArray[np.int64]
    order: NDArray[np.int64]
    signatures: NDArray[np.int64]
    hashes: NDArray[np.int64]
    options: tuple[int, ...]

    @classmethod
    def of(
        cls,
        graph: EmbeddingGraph,
        statistics: Statistics,
        k: int,
        *,
        effort: Effort = BATCH,
        link_bytes: int = LINK_BYTES,
    ) -> Places:
        """Lay out a graph for a search with these options."""
        check_options(k, link_bytes)
        k = min(k, MOST_SETS)
        if not (1 <= effort.pool <= MOST_POOL - MASK_BITS and 1 <= effort.width <= effort.pool):
            raise ValueError(f"a batch takes a pool of up to {MOST_POOL - MASK_BITS}, and no wider extensions")
        trie = graph.trie
        patterns = [graph.pattern(number) for number in trie.slots.tolist()]
        table, sizes = graph.table, statistics.of_all(patterns)
        changes = np.zeros(len(patterns), np.uint8)
        mark_changes(trie.first, sizes, changes)
        return cls(
            trie,
            (trie.nodes, trie.first, table.attribute, table.conditions.arrays),
            trie.nodes[:, CARRIES].astype(np.uint8),
            changes,
            sizes,
            graph.feeding_ranks()[trie.slots],
            np.ascontiguousarray(graph.signs[trie.slots, LABEL_SET]),
            np.array([text_hash(pattern) for pattern in patterns], np.int64),
            (link_bytes * DOCUMENTS, effort.pool, effort.expansions, effort.width, effort.enough, k),
        )

    def runs(self) -> list[NDArray[np.int64]]:
        """Cut the trie nodes where views end into runs of about equally many views."""
        ends = self.trie.terminals
        upto = self.trie.trie[ends, T_VIEWS_END].astype(np.int64)
        cuts = np.searchsorted(upto, np.arange(_QUERIES_PER_RUN, len(self.order), _QUERIES_PER_RUN))
        return [run_ for run_ in np.split(ends, np.unique(cuts)) if len(run_)]

    def run(self, ends: NDArray[np.int64]) -> Part:
        """Find the candidates of the patterns that end at these nodes of the trie."""
        begin = int(self.trie.trie[ends[0], T_VIEWS])
        count = int(self.trie.trie[ends[-1], T_VIEWS_END]) - begin
        totals, counts = np.zeros(TOTALS, np.int64), np.zeros(count, np.int64)
        most = count * self.options[-1]
        costs, members = np.empty(most, np.int64), np.empty((most, MOST_MEMBERS), np.int32)
        written = run(
            self.trie.trie, self.trie.below, self.table, self.carried, self.changes, self.sizes, self.order,
            self.signatures, self.hashes, ends, self.options, scratch(), totals, counts, (costs, members),
        )  # fmt: skip
        used = members[:written]
        inside = used >= 0
        numbers = self.trie.slots.astype(np.int32)[used[inside]]
        return Part(
            self.trie.slots[begin : begin + count],
            counts,
            costs[:written].copy(),
            inside.sum(axis=1),
            numbers,
            totals,
        )


def _one(
    graph: EmbeddingGraph, number: int, k: int, statistics: Statistics, effort: Effort, link_bytes: int
) -> Part:
    """Do one pattern the slow way. Edges between small patterns were counted already."""
    query, views = graph.pattern(number), graph.feeders_of(number)
    able = feeders(query, [graph.pattern(u) for u in views.tolist()], statistics)
    found = list(candidates(query, able, k, effort=effort, link_bytes=link_bytes))
    totals = np.zeros(TOTALS, np.int64)
    uncounted = graph.views_of(number)
    if number not in graph.large:
        uncounted = np.intersect1d(uncounted, graph.large)
    totals[EDGES] = len(uncounted)
    totals[GIVEN_UP] = len(np.setdiff1d(uncounted, views))
    members = [graph.number(able[v].view) for c in found for v in c.members]
    return Part(
        np.array([number]),
        np.array([len(found)]),
        np.array([c.cost for c in found], np.int64),
        np.array([len(c.members) for c in found], np.int64),
        np.array(members, np.int32),
        totals,
    )


def _joined(parts: list[Part], numbers: int) -> CandidateTable:
    """Put the parts together in the order of the patterns' numbers."""
    counts = np.zeros(numbers + 1, np.int64)
    for part in parts:
        counts[part.queries + 1] = np.maximum(part.counts, 0)
    first = np.cumsum(counts)
    costs, sizes = np.empty(first[-1], np.int64), np.empty(first[-1], np.int64)
    for part in parts:
        _place(part.queries, part.counts, first, part.costs, costs)
        _place(part.queries, part.counts, first, part.sizes, sizes)
    member_first = np.concatenate(([0], np.cumsum(sizes)))
    members = np.empty(member_first[-1], np.int32)
    for part in parts:
        _place_members(part.queries, part.counts, first, part.sizes, member_first, part.members, members)
    totals = sum((p.totals for p in parts), np.zeros(TOTALS, np.int64))
    return CandidateTable(first, costs, member_first, members, int(totals[EDGES]), int(totals[GIVEN_UP]))


@kernel
def _place(queries: Any, counts: Any, first: Any, values: Any, out: Any) -> None:
    """Copy the values of each query's candidates to where they belong."""
    at = 0
    for i in range(queries.size):
        for k in range(counts[i]):
            out[first[queries[i]] + k] = values[at]
            at += 1


@kernel
def _place_members(
    queries: Any, counts: Any, first: Any, sizes: Any, member_first: Any, members: Any, out: Any
) -> None:  # fmt: skip
    candidate, at = 0, 0
    for i in range(queries.size):
        for k in range(counts[i]):
            to = member_first[first[queries[i]] + k]
            for j in range(sizes[candidate]):
                out[to + j] = members[at]
                at += 1
            candidate += 1

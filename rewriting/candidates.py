"""Candidates: which sets of views a query can be computed from, the cheapest first.

The cost-aware form of Algorithm 4 of the Delta paper. A set of views *covers* a query if every query node has a
provider among them. It costs, per query node, its cheapest provider in the set, and F per view. A covering set is
a candidate if leaving out any of its views breaks the cover or raises the cost. (Sets that are merely minimal as
covers would miss cheaper ones: one more selective view can save a bulky column.)

Theory of operation. The search grows sets one view at a time. A set that does not cover is extended by the
providers of its scarcest uncovered node; a set that covers, by the views that save more than F. A set with a view
whose removal would cost nothing is dropped. Nothing is lost by that: what a view saves only shrinks as a set
grows (submodularity), so every subset of a candidate passes, and some order of adding its views is always open.
Sets are extended in the order of their *promise*: what they cost so far, and for each uncovered node the least it
can cost, its share of a link included (no view can share its F among more nodes than it provides). Ties are broken
by a hash of query and views, so that equals do not all end up on the same hub. At most a third of the candidates
share their *first input*, the view that provides most of their nodes.

``Search`` is the twin of the compiled ``rewriting.search``, for queries and sets of any size.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from rewriting.feeding_order import text_hash
from rewriting.statistics import DOCUMENTS, LINK_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from rewriting.providers import Feeder
    from xmlmatch import Pattern

NEVER: Final = 1 << 50
"""The cost of what a view does not provide; 4,096 of them still fit into 63 bits."""
_MIX: Final = 0x9E3779B97F4A7C15
_MASK: Final = (1 << 64) - 1


MOST_LINK_BYTES: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Effort:
    """How far a search goes. ``pool``: the most promising feeders it looks at, beside the best one of each node;
    ``expansions``: sets extended before it ranks what it has, unless it has found ``enough``; ``width``: the most
    extensions of one set; ``rounds``: how often it goes on where too few were found. More of any finds cheaper and
    more varied candidates in more time."""

    pool: int
    expansions: int
    width: int
    enough: int
    rounds: int

    def __post_init__(self) -> None:
        if min(self.pool, self.expansions, self.width, self.enough, self.rounds) < 1:
            raise ValueError("every part of an effort is 1 or more")


THOROUGH: Final = Effort(pool=1 << 30, expansions=2_000, width=1 << 30, enough=1 << 30, rounds=8)
BATCH: Final = Effort(pool=24, expansions=8, width=10, enough=32, rounds=1)


@dataclass(frozen=True, slots=True, order=True)
class Candidate:
    """A covering set of feeders: ``cost`` in bytes per thousand documents, ``tie`` the hash that orders equals."""

    cost: int
    tie: int
    members: tuple[int, ...]


def tie_hash(query: int, view: int) -> int:
    """Mix the hashes of a query and a view to 63 bits."""
    x = (query + view * _MIX) & _MASK
    x = (x ^ x >> 31) * _MIX & _MASK
    x = (x ^ x >> 29) * _MIX & _MASK
    return x >> 1


class Search:
    """Finds candidates among the feeders of one query; ``costs`` has a row per feeder, a column per query node."""

    def __init__(self, query: Pattern, feeders: Sequence[Feeder], effort: Effort, link_bytes: int) -> None:
        self.size = len(query.nodes)
        self.link = link_bytes * DOCUMENTS
        self.effort = effort
        own = text_hash(query)
        self.hashes = [tie_hash(own, text_hash(f.view)) for f in feeders]
        self.costs = _costs(feeders, self.size)
        provided = (self.costs < NEVER).sum(axis=1, keepdims=True)
        shared = np.where(self.costs < NEVER, self.costs + self.link // np.maximum(provided, 1), NEVER)
        self.prices = shared.min(axis=0, initial=NEVER)
        self.pool = self._choose(shared)
        pooled = self.costs[self.pool]
        self.best = pooled.min(axis=0, initial=NEVER)
        self.scarce = np.argsort((pooled < NEVER).sum(axis=0), kind="stable")
        self._heap: list[tuple[int, int, tuple[int, ...]]] = []
        self._seen: set[tuple[int, ...]] = set()
        self.found: list[Candidate] = []
        if self.coverable:
            heapq.heappush(self._heap, (0, 0, ()))

    @property
    def coverable(self) -> bool:
        """True if all feeders together cover the query."""
        return bool((self.prices < NEVER).all())

    def _choose(self, shared: NDArray[np.int64]) -> list[int]:
        """Choose the pool: the most promising feeders, and the best of each node."""
        promises = np.where(self.costs < NEVER, self.costs, self.prices).sum(axis=1) + self.link
        order = sorted(range(len(self.costs)), key=lambda v: (int(promises[v]), self.hashes[v]))
        chosen = set(order[: self.effort.pool])
        if len(chosen) < len(order) and self.coverable:
            firsts = np.argmax(shared[order] == self.prices, axis=0)
            chosen |= {order[i] for i in firsts.tolist()}
        return sorted(chosen)

    def run(self) -> bool:
        """Extend sets until the effort is spent; say whether any are left to extend."""
        for _ in range(self.effort.expansions):
            if not self._heap or self._has_enough():
                break
            members = heapq.heappop(self._heap)[2]
            for _, _, v in self._extensions(members)[: self.effort.width]:
                self._generate(tuple(sorted((*members, v))))
        return bool(self._heap)

    def _has_enough(self) -> bool:
        """Say whether enough was found, and the next step is not to improve the best of it."""
        return len(self.found) >= self.effort.enough and self._heap[0][0] != min(self.found).cost

    def finish(self) -> None:
        """Complete the most promising set greedily, for when nothing was found."""
        members = heapq.heappop(self._heap)[2] if self._heap else ()
        while self._uncovered(self._current(members)) is not None:
            members = tuple(sorted((*members, self._extensions(members)[0][2])))
        while (idle := self._idle(members)) is not None:
            members = tuple(v for v in members if v != idle)
        self._generate(members)

    def take(self) -> list[Candidate]:
        """Hand over what was found since the last time, the cheapest first."""
        found, self.found = sorted(self.found), []
        return found

    def _extensions(self, members: tuple[int, ...]) -> list[tuple[int, int, int]]:
        """List the providers of a set's scarcest uncovered node, or else the views that save more than F.

        The most promising come first, each with its promise and hash.
        """
        current = self._current(members)
        n = self._uncovered(current)
        rows = self.costs[self.pool]
        after = np.minimum(rows, current)
        able = (current - after).sum(axis=1) > self.link if n is None else rows[:, n] < NEVER
        promises = self._promises(after[able], len(members) + 1)
        tie = self._tie(members)
        views = [v for v, is_able in zip(self.pool, able.tolist(), strict=True) if is_able]
        return sorted((p, tie ^ self.hashes[v], v) for p, v in zip(promises.tolist(), views, strict=True))

    def _generate(self, members: tuple[int, ...]) -> None:
        """Take up a set: as a candidate if it covers; and to be extended, if that can help."""
        if members in self._seen or self._idle(members) is not None:
            return
        self._seen.add(members)
        current, tie = self._current(members), self._tie(members)
        promise = int(self._promises(current[None], len(members))[0])
        covers = self._uncovered(current) is None
        if covers:
            self.found.append(Candidate(promise, tie, members))
        if not covers or int((current - self.best).sum()) > self.link:
            heapq.heappush(self._heap, (promise, tie, members))

    def _current(self, members: Sequence[int]) -> NDArray[np.int64]:
        """Return the cheapest cost of each node within a set."""
        least: NDArray[np.int64] = self.costs[list(members)].min(axis=0, initial=NEVER)
        return least

    def _uncovered(self, current: NDArray[np.int64]) -> int | None:
        missing = self.scarce[current[self.scarce] >= NEVER]
        return int(missing[0]) if len(missing) else None

    def _promises(self, rows: NDArray[np.int64], members: int) -> NDArray[np.int64]:
        promises: NDArray[np.int64] = np.where(rows < NEVER, rows, self.prices).sum(axis=1) + self.link * members
        return promises

    def _tie(self, members: Sequence[int]) -> int:
        tie = 0
        for v in members:
            tie ^= self.hashes[v]
        return tie

    def _idle(self, members: tuple[int, ...]) -> int | None:
        """Find a member that could be left out without breaking the cover or raising the cost."""
        if len(members) < 2:
            return None
        rows = self.costs[list(members)]
        two = np.partition(rows, 1, axis=0)[:2]
        # Left out, a member's nodes fall to the second cheapest; one that nobody else provides weighs more than F.
        losses = np.where((rows == two[0]) & (rows < NEVER), np.minimum(two[1] - two[0], self.link + 1), 0)
        idle = np.flatnonzero(losses.sum(axis=1) <= self.link)
        return members[int(idle[0])] if len(idle) else None

    def first_input(self, members: Sequence[int]) -> int:
        """Return the member that provides most nodes of the set; equals by hash."""
        ordered = sorted(members, key=self.hashes.__getitem__)
        shares = np.bincount(np.argmin(self.costs[ordered], axis=0), minlength=len(ordered))
        return ordered[int(np.argmax(shares))]


def _costs(feeders: Sequence[Feeder], size: int) -> NDArray[np.int64]:
    costs = np.full((len(feeders), size), NEVER, np.int64)
    for row, feeder in zip(costs, feeders, strict=True):
        for n, found in feeder.provisions.items():
            row[n] = found.cost
    return costs


def check_options(k: int, link_bytes: int) -> None:
    """Raise ``ValueError`` for options that make no sense."""
    if k < 1:
        raise ValueError(f"k, the number of candidates, is 1 or more, not {k}")
    if not 0 <= link_bytes <= MOST_LINK_BYTES:
        raise ValueError(f"link_bytes is from 0 to {MOST_LINK_BYTES:,}, not {link_bytes}")


def candidates(
    query: Pattern,
    feeders: Sequence[Feeder],
    k: int = 30,
    *,
    effort: Effort = THOROUGH,
    link_bytes: int = LINK_BYTES,
) -> Iterator[Candidate]:
    """Yield up to ``k`` candidates, the cheapest first among all that the effort found; then search on.

    At most a third of ``k`` share their first input. Stop whenever you have enough.
    """
    check_options(k, link_bytes)
    search = Search(query, feeders, effort, link_bytes)
    quota = -(-k // 3)
    uses = dict.fromkeys(range(len(feeders)), 0)
    given, left = 0, effort.rounds if search.coverable else 0
    while left and given < k:
        left = left - 1 if search.run() else 0
        if not (search.found or given):
            search.finish()
        for candidate in search.take():
            first = search.first_input(candidate.members)
            uses[first] += 1
            if uses[first] <= quota and given < k:
                given += 1
                yield candidate

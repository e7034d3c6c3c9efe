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

``Search`` is the twin of the compiled search in ``rewriting.batch``; here masks are Python's integers, so queries
may have any size.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from rewriting.statistics import DOCUMENTS, LINK_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rewriting.providers import Feeder
    from xmlmatch import Pattern

NEVER: Final = 1 << 60
_MIX: Final = 0x9E3779B97F4A7C15
_MASK: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Effort:
    """How far a search goes. ``pool``: the most promising feeders it looks at, beside the best one of each node;
    ``expansions``: sets extended before it ranks what it has, unless it has found ``enough``; ``width``: the most
    extensions of one set. More of any finds cheaper and more varied candidates in more time."""

    pool: int
    expansions: int
    width: int
    enough: int


THOROUGH: Final = Effort(pool=1 << 30, expansions=2_000, width=1 << 30, enough=1 << 30)
BATCH: Final = Effort(pool=32, expansions=24, width=12, enough=48)


@dataclass(frozen=True, slots=True, order=True)
class Candidate:
    """A covering set of feeders: ``cost`` in bytes per thousand documents, ``tie`` the hash that orders equals."""

    cost: int
    tie: int
    members: tuple[int, ...]


def text_hash(pattern: Pattern) -> int:
    """Hash a pattern by its text to 63 bits: the same on every machine."""
    return int.from_bytes(blake2b(pattern.text.encode(), digest_size=8).digest(), "big") >> 1


def tie_hash(query: int, view: int) -> int:
    """Mix the hashes of a query and a view to 63 bits."""
    x = (query + view * _MIX) & _MASK
    x = (x ^ x >> 31) * _MIX & _MASK
    x = (x ^ x >> 29) * _MIX & _MASK
    return x >> 1


class Search:
    """Finds candidates among the feeders of one query."""

    def __init__(self, query: Pattern, feeders: Sequence[Feeder], effort: Effort, link_bytes: int) -> None:
        self.size = len(query.nodes)
        self.link = link_bytes * DOCUMENTS
        self.effort = effort
        own = text_hash(query)
        self.hashes = [tie_hash(own, text_hash(f.view)) for f in feeders]
        self.costs = [[_cost(f, n) for n in range(self.size)] for f in feeders]
        self.prices = [min((p[n] for p in map(self._prices, self.costs)), default=NEVER) for n in range(self.size)]
        self.pool = self._choose()
        self.best = [min((self.costs[v][n] for v in self.pool), default=NEVER) for n in range(self.size)]
        providers = [sum(self.costs[v][n] < NEVER for v in self.pool) for n in range(self.size)]
        self.scarce = sorted(range(self.size), key=lambda n: (providers[n], n))
        self._heap: list[tuple[int, int, tuple[int, ...]]] = []
        self._seen: set[tuple[int, ...]] = set()
        self.found: list[Candidate] = []
        if self.coverable:
            heapq.heappush(self._heap, (0, 0, ()))

    @property
    def coverable(self) -> bool:
        """True if all feeders together cover the query."""
        return max(self.prices) < NEVER

    def _prices(self, row: Sequence[int]) -> list[int]:
        """Return what each node costs from one feeder, with its share of the link."""
        provided = sum(c < NEVER for c in row)
        return [c + self.link // provided if c < NEVER else NEVER for c in row]

    def _choose(self) -> list[int]:
        """Choose the pool: the best feeder of each node, and the most promising ones."""
        order = sorted(range(len(self.costs)), key=lambda v: (self._promise((v,)), self.hashes[v]))
        chosen = set(order[: self.effort.pool])
        for n in range(self.size):
            able = [v for v in order if self._prices(self.costs[v])[n] == self.prices[n] < NEVER]
            chosen |= set(able[:1])
        return sorted(chosen)

    def run(self) -> bool:
        """Extend sets until the effort is spent; say whether any are left to extend."""
        for _ in range(self.effort.expansions):
            if not self._heap or len(self.found) >= self.effort.enough:
                break
            self._extend(heapq.heappop(self._heap)[2])
        return bool(self._heap)

    def finish(self) -> None:
        """Complete the most promising set greedily, for when nothing was found."""
        members = heapq.heappop(self._heap)[2]
        while self._uncovered(members) is not None:
            members = self._children(members)[0][2]
        while (idle := self._idle(members)) is not None:
            members = tuple(v for v in members if v != idle)
        self._generate(members)

    def take(self) -> list[Candidate]:
        """Hand over what was found since the last time, the cheapest first."""
        found, self.found = sorted(self.found), []
        return found

    def _extend(self, members: tuple[int, ...]) -> None:
        for _, _, child in self._children(members)[: self.effort.width]:
            self._generate(child)

    def _children(self, members: tuple[int, ...]) -> list[tuple[int, int, tuple[int, ...]]]:
        """Extend a set by each provider of its scarcest uncovered node, or by each view that saves more than F.

        The most promising come first.
        """
        current, n = self._current(members), self._uncovered(members)
        found = []
        for v in self.pool:
            row = self.costs[v]
            saving = sum(max(0, a - b) for a, b in zip(current, row, strict=True))
            if saving > self.link if n is None else row[n] < NEVER:
                child = tuple(sorted((*members, v)))
                found.append((self._promise(child), self._tie(child), child))
        return sorted(found)

    def _generate(self, members: tuple[int, ...]) -> None:
        """Take up a set: as a candidate if it covers; and to be extended, if that can help."""
        if members in self._seen or self._idle(members) is not None:
            return
        self._seen.add(members)
        current, promise, tie = self._current(members), self._promise(members), self._tie(members)
        covers = self._uncovered(members) is None
        if covers:
            self.found.append(Candidate(promise, tie, members))
        if not covers or sum(current) - sum(self.best) > self.link:
            heapq.heappush(self._heap, (promise, tie, members))

    def _current(self, members: Sequence[int]) -> list[int]:
        return [min((self.costs[v][n] for v in members), default=NEVER) for n in range(self.size)]

    def _uncovered(self, members: Sequence[int]) -> int | None:
        current = self._current(members)
        return next((n for n in self.scarce if current[n] >= NEVER), None)

    def _promise(self, members: Sequence[int]) -> int:
        current = self._current(members)
        nodes = sum(p if c >= NEVER else c for c, p in zip(current, self.prices, strict=True))
        return nodes + self.link * len(members)

    def _tie(self, members: Sequence[int]) -> int:
        tie = 0
        for v in members:
            tie ^= self.hashes[v]
        return tie

    def _idle(self, members: tuple[int, ...]) -> int | None:
        """Find a member that could be left out without breaking the cover or raising the cost."""
        for v in members:
            loss = 0
            for n in range(self.size):
                rest = min((self.costs[w][n] for w in members if w != v), default=NEVER)
                loss += max(0, rest - self.costs[v][n])
            if loss <= self.link:
                return v
        return None

    def first_input(self, members: Sequence[int]) -> int:
        """Return the member that provides most nodes of the set; equals by hash."""
        shares = dict.fromkeys(members, 0)
        for n in range(self.size):
            shares[min(members, key=lambda v: (self.costs[v][n], self.hashes[v]))] += 1
        return min(members, key=lambda v: (-shares[v], self.hashes[v]))


def _cost(feeder: Feeder, n: int) -> int:
    found = feeder.provisions.get(n)
    return NEVER if found is None else found.cost


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
    search = Search(query, feeders, effort, link_bytes)
    quota = -(-k // 3)
    uses = dict.fromkeys(range(len(feeders)), 0)
    given, more = 0, search.coverable
    while more and given < k:
        more = search.run()
        if not (search.found or given):
            search.finish()
        for candidate in search.take():
            first = search.first_input(candidate.members)
            uses[first] += 1
            if uses[first] <= quota and given < k:
                given += 1
                yield candidate

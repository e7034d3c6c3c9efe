"""The cheapest plan of a few subscriptions, by trying every way to feed every one of them.

A *way* is what a subscription costs and which feeds it takes: one entry per feed, of a subscription, of a site, or
of the source. No way needs to be checked against circles: candidates follow the feeding order, and equal
subscriptions feed each other only in their own.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from rewriting.pricing import JOIN

if TYPE_CHECKING:
    from planner.problem import Problem
    from rewriting.candidate_table import CandidateTable
    from rewriting.pricing import Prices


class Way(NamedTuple):
    """What it costs to feed a subscription so, and the feeds it takes: ("of", s), ("site", i) or ("source", 0)."""

    cost: int
    feeds: tuple[tuple[str, int], ...]


def cheapest_plan(problem: Problem, table: CandidateTable, prices: Prices) -> int | None:
    """Return the least utilization of a plan that feeds everybody within the plan limits; None if none does."""
    ways = [_distinct(ways_of(problem, table, prices, s)) for s in range(len(problem))]
    limits = _limits(problem, ways)

    @cache
    def least(s: int, left: tuple[int, ...]) -> float:
        """Return what it costs to feed the subscriptions from ``s`` on with the feeds that are left."""
        if s == len(ways):
            return 0
        best = float("inf")
        for way in ways[s]:
            room = _taken(way, limits, left)
            if min(room, default=0) >= 0:
                best = min(best, way.cost + least(s + 1, room))
        return best

    total = least(0, tuple(limits.values()))
    return None if total == float("inf") else int(total)


def ways_of(problem: Problem, table: CandidateTable, prices: Prices, s: int) -> list[Way]:
    """List every way to feed a subscription."""
    own = int(problem.classes[s])
    equal = [
        u for u in range(len(problem)) if problem.classes[u] == own and _order(problem, u) < _order(problem, s)
    ]
    if any(problem.sites[u] == problem.sites[s] for u in equal):
        return [Way(0, ())]  # free and without feeds: no other way can be better
    ways = [Way(_rounded(prices.sources[own]), (("source", 0),))]
    ways += [Way(_rounded(prices.copies[own]), _feeds(problem, [(u, int(problem.sites[s]))])) for u in equal]
    for c, (_, views) in enumerate(table.of(own), int(table.first[own])):
        members = [[u for u in range(len(problem)) if problem.classes[u] == view] for view in views]
        ways += [_rewriting(problem, table, prices, s, c, inputs) for inputs in product(*members)]
    return ways


def _order(problem: Problem, s: int) -> tuple[int, int]:
    """Return the place of a subscription among its equals: by how often its limit halves, then by number."""
    halvings, limit = 0, int(problem.limits[s])
    while limit > 0:
        halvings, limit = halvings + 1, limit // 2
    return (-halvings, s)


def _rewriting(
    problem: Problem, table: CandidateTable, prices: Prices, s: int, c: int, inputs: tuple[int, ...]
) -> Way:
    """Price one candidate with one choice of subscriptions; a link within a machine is no feed, and free."""
    sites, plan = problem.sites.tolist(), int(prices.plans[c])
    if all(sites[u] == sites[s] for u in inputs):
        return Way(0, ())
    meeting = sites[inputs[plan - JOIN]] if plan >= JOIN else sites[s]
    sends = [(u, sites[s] if i == plan - JOIN else meeting) for i, u in enumerate(inputs)]
    cost = int(prices.utilization[c])
    link_bytes = prices.link_bytes[table.member_first[c] : table.member_first[c + 1]].tolist()
    for (u, to), sent in zip(sends, link_bytes, strict=True):
        if sites[u] == to:
            cost -= (problem.weights.sent + problem.weights.received) * sent + problem.weights.link * 1000
    return Way(_rounded(cost), _feeds(problem, sends))


def _feeds(problem: Problem, sends: list[tuple[int, int]]) -> tuple[tuple[str, int], ...]:
    crossing = [u for u, to in sends if problem.sites[u] != to]
    return tuple(sorted([("of", u) for u in crossing] + [("site", int(problem.sites[u])) for u in crossing]))


def _rounded(per_thousand: int) -> int:
    return -(-int(per_thousand) // 1000)


def _distinct(ways: list[Way]) -> list[Way]:
    """Keep the cheapest of the ways that take the same feeds."""
    cheapest: dict[tuple[tuple[str, int], ...], Way] = {}
    for way in sorted(ways):
        cheapest.setdefault(way.feeds, way)
    return sorted(cheapest.values())


def _limits(problem: Problem, ways: list[list[Way]]) -> dict[tuple[str, int], int]:
    """Return the limits that can be exceeded at all: leaving out the others keeps what is left in few variants."""
    limits = {("of", s): int(limit) for s, limit in enumerate(problem.limits)}
    limits |= {("site", i): int(limit) for i, limit in enumerate(problem.network.limits)}
    limits["source", 0] = problem.source_limit
    most: Counter[tuple[str, int]] = Counter()
    for own in ways:
        for what in limits:
            most[what] += max(way.feeds.count(what) for way in own)
    return {what: limit for what, limit in limits.items() if most[what] > limit}


def _taken(way: Way, limits: dict[tuple[str, int], int], left: tuple[int, ...]) -> tuple[int, ...]:
    """Return what is left when a way is taken; negative where that is too much."""
    return tuple(room - way.feeds.count(what) for what, room in zip(limits, left, strict=True))

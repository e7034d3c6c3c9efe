"""A live plan for a source that runs for years: it starts empty, and is made again from feeds that were stored.

Feeds run from the inputs straight to the receiver, so joins at an input's machine are not priced. A change of
limit keeps a subscription's place among its equals; in ``planner.incremental`` it gets a new one, so that old and
new configurations could form a circle. Candidates are searched when they are needed: making a plan again lists
only those that are in use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from peer.steering.levels import feeders_first
from peer.steering.weights import LIVE
from planner.choices import UNBOUNDED, Choices
from planner.configuration import Configuration, How
from planner.incremental import LivePlan, Placement
from planner.newcomer import Feed, Member
from planner.planning import Plan
from planner.problem import Network, Problem, Subscription, check, hard_limit, limit_of
from planner.rewritability import Program
from planner.selection import Selection
from planner.solver import Outcome
from rewriting.candidate_table import CandidateTable
from rewriting.graph import EmbeddingGraph
from rewriting.pricing import Prices
from rewriting.statistics import DOCUMENTS
from xmlmatch import Pattern

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from peer.steering.entries import Entry
    from rewriting.statistics import Statistics


def plan_of_nothing(source_feeds: int | None, statistics: Statistics) -> Plan:
    """Return the plan without subscriptions and sites; it takes no solver."""
    none, one, none32 = np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int32)
    problem = Problem(EmbeddingGraph(), [], none, none, none, Network.of([]), source_feeds, LIVE, statistics)
    capacity = np.array([problem.source_limit], np.int64)
    choices = Choices(one, none, one, none32, none, none, none, none, capacity)
    configuration = Configuration(np.zeros(0, np.int8), none, np.zeros((0, 1), np.int32))
    return Plan(
        problem,
        CandidateTable(one, none, one, none32, 0, 0),
        Prices(none, none32, none32, none, none, none, none, none, none),
        Program(choices, none, one, np.zeros(0, np.int8), none, none, none),
        Selection(Outcome.UNKNOWN, None, None, 0.0, np.zeros(1)),
        configuration, configuration, configuration.copy(), {}, 0.0,
    )  # fmt: skip


class SteadyPlan(LivePlan):
    """See the module's text."""

    graph: EmbeddingGraph

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self._fresh: set[int] = set()

    @classmethod
    def of_nothing(cls, source_feeds: int | None, statistics: Statistics) -> SteadyPlan:
        """Start without subscriptions and sites."""
        return cls(plan_of_nothing(source_feeds, statistics))

    # Making it again.

    def enter(self, entries: Iterable[Entry], down: Collection[str] = ()) -> None:
        """Take subscriptions in, in catalog order, none of them fed; these sites are down."""
        self._down.update(self._site_number(name) for name in down)
        for entry in entries:
            pattern = Pattern.parse(entry.pattern)
            check(
                Subscription(entry.subscription, pattern, entry.site, entry.limit),
                self._site_numbers, set(self._members.keys() & {entry.subscription}),
            )  # fmt: skip
            number = self.graph.enter(pattern)
            if number == len(self.ledger.sources):
                self._price_results(number)
            m = Member(entry.subscription, number, self._site_numbers[entry.site], self._joined, 0)
            _limit(m, limit_of(entry.limit, ""), entry.joined_tier)
            self._joined += 1
            self._members[m.name] = m
            self.ledger.join(m)
        self.graph.finish()

    def _price_results(self, number: int) -> None:
        self.finder.take(number)
        results = self.finder.results(number)
        self._results.append(results)
        self.ledger.sources.append(-(-results.source // DOCUMENTS))
        self.ledger.copies.append(-(-results.copy // DOCUMENTS))
        self.bound.open(number, self.ledger.sources[-1], self.ledger.copies[-1])

    def take(self, wishes: Mapping[str, Sequence[tuple[str, ...]]], pending: Collection[str] = ()) -> None:
        """Feed those that were entered: each by the first of its wishes (inputs; none is the source) that can be.

        All first wishes come before any second one, and those who are to feed others before those who are not.
        Whoever has no possible wish is placed anew, but for those that are known to be ``pending``: they wait for
        the next change.
        """
        self._begin()
        firsts = {name: wishes[name][0] if wishes.get(name) else () for name in self._members}
        feeding = {u for inputs in firsts.values() for u in inputs}
        order = sorted(feeders_first(firsts), key=lambda name: name not in feeding)
        for place in range(max(map(len, wishes.values()), default=0)):
            for m in (self._members[name] for name in order):
                wished = wishes.get(m.name, ()) if m.name in feeding or m.name not in pending else ()
                if m.feed is None and m.site not in self._down and place < len(wished):
                    feed = self._wished(m, wished[place])
                    if feed is not None and self.ledger.fits(m, feed):
                        self.ledger.feed(m, feed)
        unfed = [m for m in self._online() if m.feed is None]
        waiting = {m.name: m for m in unfed if m.name in pending and not m.consumers}
        self._replace([m for m in unfed if m.name not in waiting])
        for name, m in waiting.items():
            self.list_candidates(m.pattern)  # the reason says whether there are any
            self.pending[name] = self._reason(m)
        for m in self._online():
            self._count(m, 1)
            if m.feed is not None and m.feed.how is How.SOURCE:
                self._unsearched[m] = None
        self.bound.start(self.ledger.utilization)
        self._end()

    def _wished(self, m: Member, names: tuple[str, ...]) -> Feed | None:
        """Return the feed by these inputs, within the limits or not; None where they cannot feed it."""
        inputs = tuple(u for u in map(self._members.get, names) if u is not None)
        if len(inputs) < len(names) or any(u.site in self._down for u in inputs):
            return None
        if not names:
            delay = self.ledger.source_rtt[self.ledger.regions[m.site]] / 2
            return Feed(How.SOURCE, self.ledger.sources[m.pattern], delay)
        if inputs[0].pattern == m.pattern:
            return self._copied(m, inputs)
        views = tuple(u.pattern for u in inputs)
        if len(set(views)) < len(views) or not all(self.finder.may_feed(u, m.pattern) for u in views):
            return None
        (candidate,) = self.finder.price(m.pattern, [views])
        # Views that are not enough have no price; nor have patterns too large for the kernel.
        if candidate.utilization == 0 and not self.finder.covers(m.pattern, views):
            return None
        self._list(m.pattern, [candidate])
        return self.ledger.priced(m, candidate, inputs)

    def _copied(self, m: Member, inputs: tuple[Member, ...]) -> Feed | None:
        u = inputs[0]
        if len(inputs) > 1 or u.rank >= m.rank:
            return None
        if u.site != m.site:
            return self.ledger.copied(m, u)
        return Feed(How.LOCAL, 0, 0.0 if u.feed is None else u.feed.delay, (u,))

    # Changes.

    def limit_changed(self, name: str, limit: int | None) -> list[Placement]:
        """Give a subscription another plan limit; it keeps its place among its equals."""
        m, limit_ = self._members[name], limit_of(limit, f"subscription {name}")
        self._begin()
        is_up = m.site not in self._down
        if is_up:
            self._count(m, -1)
        _limit(m, limit_, m.limit.bit_length())
        self.ledger.reopen(m)
        crossing = [c for c in m.consumers if c.feed is not None and m in self.ledger.crossing(c, c.feed)]
        self._replace(sorted(crossing, key=lambda c: c.number)[m.hard :])
        if is_up:
            self._count(m, 1)
        self._retry()
        return self._end()

    def list_candidates(self, pattern: int) -> None:
        """Search candidates of a pattern among all views there are, unless the last change did; it takes a
        millisecond or two."""
        if pattern not in self._fresh:
            self._fresh.add(pattern)
            views = self.finder.feeders(pattern, self.graph.views_of(pattern))
            self._list(pattern, self.finder.find(pattern, views))

    def _begin(self) -> None:
        super()._begin()
        self._fresh = set()

    def _learn(self, pattern: int, views: NDArray[np.int64]) -> None:
        super()._learn(pattern, views)
        self._fresh.add(pattern)

    # What is the case.

    def member(self, name: str) -> Member:
        """Return what is known of a subscription; ``KeyError`` for no such name."""
        return self._members[name]

    def members(self) -> Mapping[str, Member]:
        """Return everybody by name, in the order they joined."""
        return self._members

    def pattern_of(self, m: Member) -> Pattern:
        """Return a subscription's pattern."""
        return self.graph.pattern(m.pattern)

    def site_of(self, m: Member) -> str:
        """Return the name of a subscription's machine."""
        return self._sites[m.site].name

    def is_offline(self, m: Member) -> bool:
        """Say whether a subscription's machine is down."""
        return m.site in self._down

    def sites(self) -> list[tuple[str, int, bool]]:
        """List the machines: name, plan limit, whether it is down."""
        limits = self.ledger.site_limits
        return [(site.name, limits[i], i in self._down) for i, site in enumerate(self._sites)]


def _limit(m: Member, limit: int, tier: int) -> None:
    """Set a limit without changing the tier, from which a member's place among its equals follows."""
    least, most = (1 << tier) >> 1, (1 << tier) - 1
    m.limit_to(min(max(limit, least), most, UNBOUNDED))
    m.hard = hard_limit(limit)

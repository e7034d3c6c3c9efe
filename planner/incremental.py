"""A plan kept up to date between full plans: one subscription comes, goes, changes its limit, or a site fails.

Section 3.5 of the Delta paper. A newcomer gets the cheapest feed within the hard limits, which leave room above
what plans use; whoever loses a feed is treated as new, and keeps those it feeds. Where the best feeder is full, a
newcomer may *take over* one of its consumers: the feeder feeds the newcomer, which feeds the consumer. Whoever
finds no feed is pending, with all that could only be fed by it, and is tried again at every change. Nothing here
needs a solver; all of it follows the feeding order, so every state mixes with every other without circles.

``LivePlan`` also knows when a full plan is due: when the utilization has drifted from what the prices of the plan
prove to be needed, when somebody is pending, or when the source's reserve is running out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from planner.configuration import Configuration, How
from planner.drift import Bound
from planner.errors import BadProblem
from planner.latency import Timing
from planner.newcomer import Feed, Ledger, Member
from planner.placing import Placing
from planner.problem import RTT_S, Network, Problem, Site, Subscription, check, limit_of
from planner.snapshots import Snapshot, with_more
from rewriting.newcomer import Finder, Results
from rewriting.pricing import per_document
from rewriting.statistics import DOCUMENTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.planning import Plan

MOST_DRIFT: Final = 0.05
"""A full plan is due when this share more is spent than the plan itself spent, compared with what is needed."""
RESERVE_SHARE: Final = 0.5
"""A full plan is due when more than this share of what plans leave of the source is used."""
_SEARCHES: Final = 2
"""How many searches for new candidates one change may take, a millisecond or two each. Those that had to go to the
source without one get theirs at the next changes, or by ``settle``; nobody is left pending without one."""


@dataclass(frozen=True, slots=True)
class Placement:
    """How a subscription is fed now, by whom, at what cost per document; for one that is not, the reason."""

    name: str
    how: How
    inputs: tuple[str, ...] = ()
    utilization: int = 0
    reason: str = ""


class LivePlan(Placing):
    """A plan that changes; see the module's text. It takes over the plan's graph: do not use the plan besides.

    ``pending`` says by name why somebody is not fed. ``changed`` lists all whose feeds the last change changed.

    >>> from planner import plan
    >>> from xmlmatch import Pattern
    >>> texts = ["//a{cont}", "//b{val}", "//a{cont}//b{val}"]
    >>> found = plan(Problem.of(Subscription(f"s{i}", Pattern.parse(t), f"m{i}", 2) for i, t in enumerate(texts)))
    >>> live = LivePlan.of(found)
    >>> live.add_site(Site("m3"))
    >>> live.add(Subscription("s3", Pattern.parse("//a{cont}/b{val}"), "m3")).inputs
    ('s2',)
    >>> [(moved.name, moved.how.name, moved.inputs) for moved in live.withdraw("s2")]
    [('s3', 'REWRITING', ('s0', 's1'))]
    """

    def __init__(self, plan: Plan) -> None:
        problem, prices = plan.problem, plan.prices
        self.plan = plan
        self.graph = problem.graph
        self.finder = Finder.of(problem.graph, problem.statistics, problem.weights, problem.k)
        self.ledger = Ledger.of(plan, per_document(prices.sources).tolist(), per_document(prices.copies).tolist())
        self.bound = Bound(plan)
        self.pending: dict[str, str] = {}
        self.changed: list[Placement] = []
        self._results: list[Results] = []
        network = problem.network
        self._sites = [
            Site(name, limit, network.regions[region], uplink)
            for name, limit, region, uplink in zip(
                network.names,
                network.limits.tolist(),
                network.region.tolist(),
                network.uplink.tolist(),
                strict=True,
            )
        ]
        self._regions = list(network.regions)
        self._site_numbers = {site.name: i for i, site in enumerate(self._sites)}
        self._down: set[int] = set()
        self._members: dict[str, Member] = {}
        self._joined = 0
        self._searches = 0
        self._unsearched: dict[Member, None] = {}
        self._touched: dict[Member, None] = {}

    @classmethod
    def of(cls, plan: Plan) -> LivePlan:
        """Start from a finished plan."""
        live, problem, configuration = cls(plan), plan.problem, plan.configuration
        delays = Timing.of(problem, plan.table, plan.prices, configuration.copy()).latency.tolist()
        columns = (problem.names, problem.classes.tolist(), problem.sites.tolist(), problem.limits.tolist())
        everybody = [
            Member(n, q, site, i, limit) for i, (n, q, site, limit) in enumerate(zip(*columns, strict=True))
        ]
        for m in everybody:
            live.ledger.join(m)
            live._members[m.name] = m
        live._joined = len(everybody)
        ways = zip(configuration.how.tolist(), configuration.candidate.tolist(), delays, strict=True)
        for m, (how, c, delay) in zip(everybody, ways, strict=True):
            inputs = tuple(everybody[u] for u in configuration.inputs_of(m.number))
            live.ledger.feed(m, live._planned(m, How(how), c, delay, inputs))
        for m in everybody:
            live._count(m, 1)
        live.bound.start(live.ledger.utilization)
        return live

    def _planned(self, m: Member, how: How, c: int, delay: float, inputs: tuple[Member, ...]) -> Feed:
        if how is How.REWRITING:
            return self.ledger.priced(m, self.ledger.planned(c), inputs)._replace(delay=delay)
        cost = {How.SOURCE: self.ledger.sources, How.COPY: self.ledger.copies}.get(how)
        return Feed(how, 0 if cost is None else cost[m.pattern], delay, inputs)

    # What can happen.

    def add(self, subscription: Subscription) -> Placement:
        """Take a newcomer in; ``BadProblem`` for a name that is there already or a site that is not.

        Others may have changed too: see ``changed``.
        """
        if subscription.name in self._members:
            raise BadProblem(f"subscription {subscription.name}", "the name is there already; withdraw it first")
        check(subscription, self._site_numbers, set())
        self._begin()
        change = self.graph.add(subscription.pattern)
        limit, site = limit_of(subscription.limit, ""), self._site_numbers[subscription.site]
        m = Member(subscription.name, change.number, site, self._joined, limit)
        self._joined += 1
        self._members[m.name] = m
        if change.number == len(self.ledger.sources):
            self._learn(change.number, change.views)
        self.ledger.join(m)
        if site not in self._down:
            self._replace([m])
            self._count(m, 1)
            self._retry()
        self._end()
        return self.placement(m.name)

    def withdraw(self, name: str) -> list[Placement]:
        """Let a subscription go; return how those are fed whose feeds have changed.

        ``KeyError`` for no such name.
        """
        m = self._members[name]
        self._begin()
        if m.site not in self._down:
            self._count(m, -1)
        orphans = list(m.consumers)
        self.ledger.release(m)
        self.pending.pop(name, None)
        self._unsearched.pop(m, None)
        for orphan in orphans:
            self.ledger.release(orphan)
        self.ledger.leave(m)
        del self._members[name]
        self.graph.remove(self.graph.pattern(m.pattern))
        self._replace(orphans)
        self._retry()
        return self._end()

    def limit_changed(self, name: str, limit: int | None) -> list[Placement]:
        """Give a subscription another plan limit; return how those are fed whose feeds have changed.

        One that gets into another tier takes its place among its equals anew, as the last of its tier.
        """
        m, limit_ = self._members[name], limit_of(limit, f"subscription {name}")
        self._begin()
        is_up = m.site not in self._down
        if is_up:
            self._count(m, -1)
        if limit_.bit_length() != m.limit.bit_length():
            m.number = self._joined
            self._joined += 1
        m.limit_to(limit_)
        self.ledger.reopen(m)
        crossing = [c for c in m.consumers if c.feed is not None and m in self.ledger.crossing(c, c.feed)]
        shed = sorted(crossing, key=lambda c: c.number)[m.hard :]
        equal = [c for c in m.consumers if c.pattern == m.pattern and c.rank < m.rank]
        own = (
            [m]
            if m.feed is not None and any(u.pattern == m.pattern and u.rank > m.rank for u in m.feed.inputs)
            else []
        )
        self._replace(dict.fromkeys((*own, *equal, *shed)))
        if is_up:
            self._count(m, 1)
        self._retry()
        return self._end()

    def site_failed(self, name: str) -> list[Placement]:
        """Do without a site: its subscriptions are offline; return how those are fed whose feeds have changed."""
        site = self._site_number(name)
        self._begin()
        if site not in self._down:
            lost = self._on_site(site)
            for m in lost:
                self._count(m, -1)
            self._down.add(site)
            orphans = dict.fromkeys(c for m in lost for c in m.consumers if c.site != site)
            for m in lost:
                self.ledger.release(m)
                self.pending.pop(m.name, None)
            self._replace(orphans)
            self._retry()
        return self._end()

    def site_returned(self, name: str) -> list[Placement]:
        """Take a site that failed back in, with its subscriptions."""
        site = self._site_number(name)
        self._begin()
        if site in self._down:
            self._down.remove(site)
            back = self._on_site(site)
            self._replace(back)
            for m in back:
                self._count(m, 1)
            self._retry()
        return self._end()

    def settle(self) -> list[Placement]:
        """Search for some of those who had to go to the source without a search; call it when there is time."""
        self._begin()
        self._retry()
        return self._end()

    def add_site(self, site: Site) -> None:
        """Take a machine in; ``BadProblem`` if its name is there already."""
        limit = limit_of(site.limit, f"site {site.name}")
        if site.name in self._site_numbers:
            raise BadProblem(f"site {site.name}", "the name is there twice")
        ledger = self.ledger
        if site.region not in self._regions:
            self._regions.append(site.region)
            ledger.rtt = [[*row, RTT_S] for row in ledger.rtt] + [[RTT_S] * len(self._regions)]
            ledger.source_rtt.append(RTT_S)
        self._site_numbers[site.name] = len(self._sites)
        self._sites.append(site)
        ledger.site_limits.append(limit)
        ledger.regions.append(self._regions.index(site.region))
        ledger.site_feeds.append(0)

    # What is the case.

    def __len__(self) -> int:
        return len(self._members)

    @property
    def offline(self) -> list[str]:
        """The subscriptions on sites that are down."""
        return [m.name for site in sorted(self._down) for m in self._on_site(site)]

    @property
    def utilization(self) -> int:
        """What everything costs per document."""
        return self.ledger.utilization

    @property
    def drift(self) -> float:
        """How much more is spent than needed, compared with the plan itself, as a share; see ``Bound``."""
        return self.bound.drift(self.ledger.utilization)

    @property
    def should_replan(self) -> str:
        """Why a full plan is due; empty if none is."""
        if self.pending:
            return f"{len(self.pending):,} pending: {next(iter(self.pending.values()))}"
        ledger, planned = self.ledger, self.plan.problem.source_limit
        if ledger.source_feeds > planned + (ledger.source_limit - planned) * RESERVE_SHARE:
            return (
                f"the source has {ledger.source_feeds:,} feeds; plans use {planned:,} of {ledger.source_limit:,}"
            )
        if self.drift > MOST_DRIFT:
            return f"the utilization has drifted by {self.drift:.1%}; {MOST_DRIFT:.0%} are allowed"
        return ""

    def placement(self, name: str) -> Placement:
        """Say how a subscription is fed; ``KeyError`` for no such name."""
        m = self._members[name]
        if m.feed is None:
            down = f"site {self._sites[m.site].name} is down"
            return Placement(name, How.PENDING, reason=down if m.site in self._down else self.pending[name])
        return Placement(name, m.feed.how, tuple(u.name for u in m.feed.inputs), m.feed.cost)

    def subscriptions(self) -> list[Subscription]:
        """List the subscriptions on sites that are up, by number: what a full plan starts from."""
        return [
            Subscription(m.name, self.graph.pattern(m.pattern), self._sites[m.site].name, m.limit)
            for m in self._online()
        ]

    def network(self) -> Network:
        """Return the sites, those that are down too, as a full plan has them."""
        old = self.plan.problem.network
        return Network(
            [site.name for site in self._sites], np.array(self.ledger.site_limits, np.int64),
            np.array(self.ledger.regions, np.int32), np.array([site.uplink for site in self._sites]),
            self._regions, np.array(self.ledger.rtt), np.array(self.ledger.source_rtt), old.source_uplink,
        )  # fmt: skip

    def snapshot(self) -> Snapshot:
        """Write the present state as arrays; takes as long as it has candidates."""
        old, members = self.plan.problem, self._online()
        at = {m: i for i, m in enumerate(members)}
        more = [(q, c) for q, found in sorted(self.ledger.more.items()) for c in found]
        table, prices, moved = with_more(self.plan.table, self.plan.prices, more, self._results)
        new = {id(c): int(moved[len(self.plan.table) + i]) for i, (_, c) in enumerate(more)}
        width = max((len(m.feed.inputs) for m in members if m.feed is not None), default=1)
        configuration = Configuration(
            np.full(len(members), How.PENDING, np.int8),
            np.full(len(members), -1),
            np.full((len(members), max(width, 1)), -1, np.int32),
        )
        for i, m in enumerate(members):
            if m.feed is not None:
                configuration.how[i] = m.feed.how
                configuration.inputs[i, : len(m.feed.inputs)] = [at[u] for u in m.feed.inputs]
                c = m.feed.candidate
                if c is not None:
                    configuration.candidate[i] = moved[c.number] if c.number >= 0 else new[id(c)]
        columns = np.array([(m.pattern, m.site, m.limit) for m in members], np.int64).reshape(-1, 3).T.copy()
        problem = Problem(
            self.graph, [m.name for m in members], columns[0], columns[1], columns[2],
            self.network(), old.source_feeds, old.weights, old.statistics, old.k,
        )  # fmt: skip
        return Snapshot(problem, table, prices, configuration)

    # How it is done.

    def _begin(self) -> None:
        self._searches, self._touched = _SEARCHES, {}

    def _end(self) -> list[Placement]:
        names = [m.name for m in self._touched if self._members.get(m.name) is m]
        self.changed = [self.placement(name) for name in names]
        return self.changed

    def _site_number(self, name: str) -> int:
        if name not in self._site_numbers:
            raise BadProblem(f"site {name}", "there is no such site")
        return self._site_numbers[name]

    def _on_site(self, site: int) -> list[Member]:
        groups = self.ledger.here.get(site, {}).values()
        return sorted((m for group in groups for m in group), key=lambda m: m.number)

    def _online(self) -> list[Member]:
        return sorted((m for m in self._members.values() if m.site not in self._down), key=lambda m: m.number)

    def _learn(self, pattern: int, views: NDArray[np.int64]) -> None:
        """Price a pattern that is new, and list its candidates."""
        finder = self.finder
        finder.take(pattern)
        results = finder.results(pattern)
        self._results.append(results)
        self.ledger.sources.append(-(-results.source // DOCUMENTS))
        self.ledger.copies.append(-(-results.copy // DOCUMENTS))
        self.bound.open(pattern, self.ledger.sources[-1], self.ledger.copies[-1])
        self._list(pattern, finder.find(pattern, finder.feeders(pattern, views)))

    def _count(self, m: Member, sign: int) -> None:
        """Count a subscription in (after it was fed) or out (while it is there) where the bound hangs on it."""
        alone = len(self.ledger.here[m.site][m.pattern]) == 1
        self.bound.count(m, sign, min(m.limit, self.ledger.site_limits[m.site]), alone=alone)

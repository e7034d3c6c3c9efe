"""How a newcomer is best fed: who feeds whom now, who has room, and the cheapest feed within the hard limits.

The *ledger* holds every subscription with its feed as plain objects, for single changes; a plan is arrays. A feed
is the cheapest of an equal one on the same machine (free), a copy of an equal one, the candidates listed for the
pattern, and the source; equally cheap ones by an estimate of latency that is made when somebody is fed and not
kept up. Everything follows the feeding order: candidates do by themselves, equal ones by tier, then number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import merge
from typing import TYPE_CHECKING, Final, NamedTuple

from planner.choices import UNBOUNDED
from planner.configuration import How
from planner.latency import HANDLING_S
from planner.problem import hard_limit
from rewriting.newcomer import Priced
from rewriting.pricing import JOIN
from rewriting.statistics import DOCUMENTS

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from planner.planning import Plan

_COMPARED: Final = 8
"""How many subscriptions to a view are compared by latency before one is taken."""
_EQUALS: Final = 2
"""How many equally cheap candidates are compared by latency."""
_LOOKED_AT: Final = 500
"""How many equal ones are looked at for one that is earlier and has room, unless there is no other way."""


class Feed(NamedTuple):
    """A way to be fed: by which ``inputs`` (in the order of the candidate's views), at what cost per document, and
    after how many seconds, by estimate."""

    how: How
    cost: int
    delay: float
    inputs: tuple[Member, ...] = ()
    candidate: Priced | None = None


@dataclass(slots=True, eq=False)
class Member:
    """A subscription: its pattern's number, the numbers of its site and of itself in the catalog, its plan limit.

    ``feed``: how it is fed, None if it is not. ``feeds``: how many it gives to other machines, ``hard`` at most;
    ``consumers``: all whom it feeds.
    """

    name: str
    pattern: int
    site: int
    number: int
    limit: int
    feed: Feed | None = None
    feeds: int = 0
    consumers: dict[Member, None] = field(default_factory=dict)
    hard: int = field(init=False)

    def __post_init__(self) -> None:
        self.hard = hard_limit(self.limit)

    def limit_to(self, limit: int) -> None:
        """Give it another plan limit."""
        self.limit, self.hard = limit, hard_limit(limit)

    @property
    def rank(self) -> tuple[int, int]:
        """Its place among its equals: only those before it may feed it. A tier is one more per doubling."""
        return -self.limit.bit_length(), self.number

    @property
    def cost(self) -> int:
        """What feeding it costs per document."""
        return 0 if self.feed is None else self.feed.cost

    @property
    def is_free(self) -> bool:
        """Whether it is computed from what its own machine gets anyway."""
        feed = self.feed
        return feed is not None and feed.how is How.REWRITING and all(u.site == self.site for u in feed.inputs)


@dataclass(slots=True, eq=False)
class Ledger:
    """Who feeds whom, by subscription; and what is needed to choose.

    ``here``: by site and pattern its subscriptions; ``open``: by pattern those that are fed and below their hard
    limit; ``more``: by pattern the candidates found since the plan, the cheapest first. ``sources``, ``copies``:
    what a pattern's results cost per document from the source and from an equal one.
    """

    plan: Plan
    sources: list[int]
    copies: list[int]
    site_limits: list[int]
    regions: list[int]
    site_feeds: list[int]
    rtt: list[list[float]]
    source_rtt: list[float]
    source_limit: int
    source_feeds: int = 0
    utilization: int = 0
    here: dict[int, dict[int, dict[Member, None]]] = field(default_factory=dict)
    members: dict[int, dict[Member, None]] = field(default_factory=dict)
    open: dict[int, dict[Member, None]] = field(default_factory=dict)
    more: dict[int, list[Priced]] = field(default_factory=dict)
    count: int = 0

    @classmethod
    def of(cls, plan: Plan, sources: list[int], copies: list[int]) -> Ledger:
        """Make one without subscriptions."""
        network, given = plan.problem.network, plan.problem.source_feeds
        return cls(
            plan, sources, copies, network.limits.tolist(), network.region.tolist(), [0] * len(network.names),
            network.rtt.tolist(), network.source_rtt.tolist(), UNBOUNDED if given is None else given,
        )  # fmt: skip

    def join(self, m: Member) -> None:
        """Enter a subscription, not yet fed."""
        self.here.setdefault(m.site, {}).setdefault(m.pattern, {})[m] = None
        self.members.setdefault(m.pattern, {})[m] = None
        self.count += 1

    def leave(self, m: Member) -> None:
        """Strike out a subscription that is not fed."""
        at = self.here[m.site]
        for group, key in ((at, m.pattern), (self.members, m.pattern)):
            del group[key][m]
            if not group[key]:
                del group[key]
        if not at:
            del self.here[m.site]
        self.count -= 1

    def feed(self, m: Member, feed: Feed) -> None:
        """Let a subscription that is not fed be fed so."""
        m.feed = feed
        self.utilization += feed.cost
        self.source_feeds += feed.how is How.SOURCE
        for u in feed.inputs:
            u.consumers[m] = None
        for u in self.crossing(m, feed):
            self._count(u, 1)
        self.reopen(m)

    def release(self, m: Member) -> None:
        """Take a subscription's feed away, if it has one; those it feeds stay."""
        feed = m.feed
        if feed is None:
            return
        m.feed = None
        self.utilization -= feed.cost
        self.source_feeds -= feed.how is How.SOURCE
        for u in feed.inputs:
            del u.consumers[m]
        for u in self.crossing(m, feed):
            self._count(u, -1)
        self.reopen(m)

    def _count(self, u: Member, sign: int) -> None:
        u.feeds += sign
        self.site_feeds[u.site] += sign
        self.reopen(u)

    def reopen(self, m: Member) -> None:
        """Note whether a subscription has room, after what that hangs on has changed."""
        if m.feed is not None and m.feeds < m.hard:
            self.open.setdefault(m.pattern, {})[m] = None
        elif m.pattern in self.open:
            group = self.open[m.pattern]
            group.pop(m, None)
            if not group:
                del self.open[m.pattern]

    def crossing(self, m: Member, feed: Feed) -> list[Member]:
        """List the inputs that send to another machine than their own: each gives a feed."""
        if feed.how is How.COPY:
            return list(feed.inputs)
        if feed.candidate is None:
            return []
        return [
            u for u, to in zip(feed.inputs, _targets(m, feed.candidate, feed.inputs), strict=True) if u.site != to
        ]

    def fits(self, m: Member, feed: Feed) -> bool:
        """Say whether a feed keeps all hard limits, for a subscription that is not fed."""
        if feed.how is How.SOURCE:
            return self.source_feeds < self.source_limit
        crossing = self.crossing(m, feed)
        if any(u.feeds >= u.hard for u in crossing):
            return False
        sites = [u.site for u in crossing]
        return all(self.site_feeds[i] + sites.count(i) <= hard_limit(self.site_limits[i]) for i in sites)

    def has_room(self, u: Member) -> bool:
        """Say whether a subscription that is fed can give one more feed."""
        return u.feeds < u.hard and self.site_feeds[u.site] < hard_limit(self.site_limits[u.site])

    def candidates(self, pattern: int, able: Container[int] | None = None) -> Iterator[Priced]:
        """Yield a pattern's candidates, those of least utilization first; ``able``: only those of these views."""
        more = self.more.get(pattern, [])
        first = self.plan.table.first
        if pattern >= len(first) - 1 or first[pattern] == first[pattern + 1]:
            return iter(more)
        known = self._planned(pattern, able)
        return merge(known, more, key=lambda c: c.utilization) if more else known

    def _planned(self, pattern: int, able: Container[int] | None) -> Iterator[Priced]:
        table, choices = self.plan.table, self.plan.program.choices
        start, end = table.first[pattern : pattern + 2].tolist()
        ends = table.member_first[start : end + 1].tolist()
        views = table.members[ends[0] : ends[-1]].tolist()
        begin = ends[0]
        for c in choices.candidate[choices.first[pattern] : choices.first[pattern + 1]].tolist():  # by cost
            if c < 0:
                continue
            if able is not None:
                for k in range(ends[c - start] - begin, ends[c - start + 1] - begin):
                    if views[k] not in able:
                        break
                else:
                    yield self.planned(c)
            else:
                yield self.planned(c)

    def planned(self, c: int) -> Priced:
        """Return a candidate of the plan's table."""
        table, prices = self.plan.table, self.plan.prices
        start, end = table.member_first[c : c + 2].tolist()
        return Priced(
            tuple(table.members[start:end].tolist()), int(table.costs[c]), int(prices.utilization[c]),
            int(prices.plans[c]), int(prices.nodes[c]), tuple(prices.link_bytes[start:end].tolist()), c,
        )  # fmt: skip

    def list_more(self, pattern: int, found: Iterable[Priced]) -> list[Priced]:
        """List more candidates of a pattern; return those that were new."""
        known = {c.views for c in self.candidates(pattern)}
        new = [c for c in found if c.views not in known]
        if new:
            self.more[pattern] = sorted([*self.more.get(pattern, []), *new], key=lambda c: c.utilization)
        return new

    def best(self, m: Member) -> Feed | None:
        """Return the cheapest feed that keeps all hard limits for one that is not fed; None if none does."""
        near = self.here[m.site]
        for u in sorted(near[m.pattern], key=_rank):
            if u.feed is not None and u.rank < m.rank:
                return Feed(How.LOCAL, 0, u.feed.delay, (u,))
        found = self._cheaper(self._source(m), self.copy(m, _LOOKED_AT))
        crowded = self.count > len(self.here)
        # Where nobody shares a machine, only views with room can be of use.
        equals = 0
        for c in self.candidates(m.pattern, None if crowded else self.open):
            cost = -(-c.utilization // DOCUMENTS)
            if found is not None and cost >= found.cost:
                equals += cost == found.cost
                if not crowded and (cost > found.cost or equals == _EQUALS):
                    break
                # Dearer ones can only win by what is saved where two of them share a machine.
                if cost > found.cost and c.plan < JOIN and near.keys().isdisjoint(c.views):
                    continue
            found = self._cheaper(found, self.computed(m, c))
        return found or self.copy(m, self.count)

    def _cheaper(self, a: Feed | None, b: Feed | None) -> Feed | None:
        if a is None or b is None:
            return a or b
        return a if (a.cost, a.delay) <= (b.cost, b.delay) else b

    def _source(self, m: Member) -> Feed | None:
        delay = self.source_rtt[self.regions[m.site]] / 2 + HANDLING_S
        feed = Feed(How.SOURCE, self.sources[m.pattern], delay)
        return feed if self.fits(m, feed) else None

    def copy(self, m: Member, looked_at: int) -> Feed | None:
        """Return a feed by an equal one on another machine, looking at so many of them."""
        if m.pattern not in self.open:
            return None
        rank, best, found = m.rank, None, 0
        for _, u in zip(range(looked_at), self.open[m.pattern], strict=False):
            if u.rank < rank and u.site != m.site and self.has_room(u):
                found += 1
                if best is None or _delay(u) < _delay(best):
                    best = u
                if found == _COMPARED:
                    break
        return None if best is None else self.copied(m, best)

    def copied(self, m: Member, u: Member) -> Feed:
        """Return the feed by this equal one on another machine."""
        return Feed(How.COPY, self.copies[m.pattern], _delay(u) + self._way(u.site, m.site) + HANDLING_S, (u,))

    def computed(self, m: Member, c: Priced, given: Member | None = None) -> Feed | None:
        """Return the feed by a candidate if it keeps the limits; ``given``: take this one for its view."""
        inputs: list[Member | None] = [None] * len(c.views)
        joint, to = c.plan - JOIN, m.site
        if joint >= 0:
            hub = self.provider(c.views[joint], m.site, given)
            if hub is None:
                return None
            inputs[joint], to = hub, hub.site
        for j, view in enumerate(c.views):
            if j != joint:
                inputs[j] = self.provider(view, to, given)
                if inputs[j] is None:
                    return None
        feed = self.priced(m, c, tuple(u for u in inputs if u is not None))
        # Whoever was chosen has room for one feed; two of them on one machine may need two of its feeds.
        alone = given is None and len(inputs) == 1
        return feed if alone or self.fits(m, feed) else None

    def provider(self, view: int, site: int, given: Member | None = None) -> Member | None:
        """Choose a subscription to a view that can send to a site: one that is there, else one with room."""
        if given is not None and given.pattern == view:
            return given
        for u in self.here.get(site, {}).get(view, ()):
            if u.feed is not None:
                return u
        best, found = None, 0
        for u in self.open.get(view, ()):
            if self.has_room(u):
                found += 1
                if best is None or _delay(u) < _delay(best):
                    best = u
                if found == _COMPARED:
                    break
        return best

    def priced(self, m: Member, c: Priced, inputs: tuple[Member, ...]) -> Feed:
        """Return the feed by a candidate from these inputs, within the limits or not."""
        if len(inputs) == 1:
            (u,) = inputs
            delay = _delay(u) + self._way(u.site, m.site) + HANDLING_S
            return Feed(How.REWRITING, 0 if u.site == m.site else -(-c.utilization // DOCUMENTS), delay, inputs, c)
        to = _targets(m, c, inputs)
        delay = max(_delay(u) + self._way(u.site, site) for u, site in zip(inputs, to, strict=True)) + HANDLING_S
        if c.plan >= JOIN:
            delay += self._way(inputs[c.plan - JOIN].site, m.site) + HANDLING_S
        if all(u.site == m.site for u in inputs):
            return Feed(How.REWRITING, 0, delay, inputs, c)
        w = self.plan.problem.weights
        saved = sum(
            (w.sent + w.received) * sent + w.link * DOCUMENTS
            for u, site, sent in zip(inputs, to, c.link_bytes, strict=True)
            if u.site == site
        )
        return Feed(How.REWRITING, -(-(c.utilization - saved) // DOCUMENTS), delay, inputs, c)

    def _way(self, site: int, to: int) -> float:
        """Half a round trip between two machines; what the bytes take is left out."""
        return 0.0 if site == to else self.rtt[self.regions[site]][self.regions[to]] / 2


def _targets(m: Member, c: Priced, inputs: tuple[Member, ...]) -> list[int]:
    """Return the site to which each input sends: the receiver's, or that of the input where all are joined."""
    if c.plan < JOIN:
        return [m.site] * len(inputs)
    joint = c.plan - JOIN
    return [m.site if j == joint else inputs[joint].site for j in range(len(inputs))]


def _delay(u: Member) -> float:
    return 0.0 if u.feed is None else u.feed.delay


def _rank(u: Member) -> tuple[int, int]:
    return u.rank

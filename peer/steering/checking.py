"""What is wrong with a proposal, found by simple means from the catalog: it shares no code with planning.

A feed is taken only if its inputs are there, on the machines named, and up; if their patterns are enough to
compute the subscription's; if the feeding order lets them feed it; and if neither they nor their machines nor the
source exceed their hard limits by it, counting those taken before.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from peer.hosting.results import BadLink, Joining
from planner.configuration import How
from planner.problem import hard_limit
from rewriting.feeding_order import may_feed

if TYPE_CHECKING:
    from peer.steering.proposal import At, Proposal, ProposedFeed
    from peer.steering.steady_plan import SteadyPlan
    from planner.newcomer import Member


@dataclass(slots=True, eq=False)
class Checked:
    """What holds of a proposal: the feeds by input, none for the source, and the alternatives.

    ``refused``: why the others do not; ``since``: those of them whose inputs are gone or down.
    """

    feeds: dict[str, tuple[str, ...]] = field(default_factory=dict)
    alternatives: dict[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    since: list[str] = field(default_factory=list)


def check_proposal(live: SteadyPlan, proposal: Proposal) -> Checked:
    """Check every feed that is proposed for a subscription that is still there and up."""
    found, check = Checked(), _Check(live)
    for name, m in live.members().items():
        proposed = proposal.feeds.get(name)
        if proposed is None or proposed.how is How.PENDING or live.is_offline(m):
            continue
        gone = check.gone(proposed.inputs)
        wrong = gone or check.wrong(m, proposed)
        if wrong:
            found.refused[name] = wrong
            if gone:
                found.since.append(name)
            continue
        found.feeds[name] = tuple(u.subscription for u in proposed.inputs)
        good = [way for way in proposed.alternatives if not check.gone(way) and not check.unable(m, way)]
        found.alternatives[name] = tuple(
            tuple(u.subscription for u in way) for way in good if way != proposed.inputs
        )
    return found


class _Check:
    """Checks feeds one after the other, and counts those that were good."""

    def __init__(self, live: SteadyPlan) -> None:
        self._live = live
        self._site_limits = {name: hard_limit(limit) for name, limit, _ in live.sites()}
        self._feeds: Counter[str] = Counter()
        self._site_feeds: Counter[str] = Counter()
        self._by_source = 0
        self._known: dict[tuple[int, tuple[int, ...]], str] = {}

    def gone(self, inputs: tuple[At, ...]) -> str:
        """Say which input is not there any more, or down."""
        for u in inputs:
            m = self._live.members().get(u.subscription)
            if m is None:
                return f"its input {u.subscription} is no subscription, or no longer one"
            if self._live.is_offline(m):
                return f"its input {u.subscription} is on {self._live.site_of(m)}, which is down"
        return ""

    def wrong(self, m: Member, proposed: ProposedFeed) -> str:
        """Say what is wrong with a feed whose inputs are there; empty if nothing is, and then count it."""
        if proposed.pattern != self._live.pattern_of(m).text:
            return f"its pattern is {self._live.pattern_of(m)}, not {proposed.pattern}"
        if proposed.at.site != self._live.site_of(m):
            return f"it is on {self._live.site_of(m)}, not on {proposed.at.site}"
        return self.unable(m, proposed.inputs) or self._count(m, proposed.inputs)

    def unable(self, m: Member, inputs: tuple[At, ...]) -> str:
        """Say why inputs that are there cannot feed a subscription, whatever the limits."""
        feeders = [self._live.member(u.subscription) for u in inputs]
        for u, feeder in zip(inputs, feeders, strict=True):
            if self._live.site_of(feeder) != u.site:
                return f"its input {u.subscription} is on {self._live.site_of(feeder)}, not on {u.site}"
        if [u.pattern for u in feeders] == [m.pattern]:
            return "" if feeders[0].rank < m.rank else f"{feeders[0].name}, its equal, comes after it"
        key = (m.pattern, tuple(u.pattern for u in feeders))
        if feeders and key not in self._known:
            self._known[key] = self._unfit(m, feeders)
        return self._known[key] if feeders else ""

    def _unfit(self, m: Member, feeders: list[Member]) -> str:
        query, views = self._live.pattern_of(m), tuple(map(self._live.pattern_of, feeders))
        if len(set(views)) < len(views):
            return "two of its inputs are equal"
        for u, view in zip(feeders, views, strict=True):
            if not may_feed(view, query):
                return f"the feeding order does not let {u.name} feed it"
        try:
            Joining(query, views).cuts()
        except BadLink as exc:
            return str(exc)
        return ""

    def _count(self, m: Member, inputs: tuple[At, ...]) -> str:
        own, most = self._live.site_of(m), self._live.ledger.source_limit
        if not inputs:
            self._by_source += 1
            return f"the source feeds {most:,} already" if self._by_source > most else ""
        crossing = [u for u in inputs if u.site != own]
        sites = Counter(u.site for u in crossing)
        for u in crossing:
            if self._feeds[u.subscription] >= self._live.member(u.subscription).hard:
                return f"its input {u.subscription} has as many feeds as it may"
            if self._site_feeds[u.site] + sites[u.site] > self._site_limits[u.site]:
                return f"the machine {u.site} of its input {u.subscription} has as many feeds as it may"
        self._feeds.update(u.subscription for u in crossing)
        self._site_feeds.update(sites)
        return ""

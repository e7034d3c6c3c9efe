"""What the loss of each site would leave without a feed, for the verifier.

Those that a lost site fed are fed again in the order of their numbers, each by an equal one, a candidate of its
pattern or the source, with what is free up to the hard limits. No circle can come of that, for candidates follow
the feeding order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from planner.configuration import How
from planner.problem import hard_limit

if TYPE_CHECKING:
    from planner.verify import Case, Flow

_NO_END: Final = 1 << 40


def crossing(flow: Flow, sites: list[int]) -> list[int]:
    """List the inputs that send to another machine than their own: each is a feed."""
    return [link.feeder for link in flow.links if sites[link.feeder] != link.site]


@dataclass(slots=True)
class Losses:
    """The loss of one site at a time. ``spare``, ``site_spare``: what is free up to the hard limits.

    ``members``: those that are fed and may feed, by class in feeding order; ``near``: those that are fed, by class
    and site. Of the loss at hand: ``lost``, the site; ``undo``, what has changed; ``unfed``, who was not absorbed.
    """

    case: Case
    fed: dict[int, Flow]
    spare: list[int]
    site_spare: list[int]
    source_spare: int
    members: dict[int, list[int]] = field(default_factory=dict)
    near: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    on_site: dict[int, list[int]] = field(default_factory=dict)
    fed_by: dict[int, list[int]] = field(default_factory=dict)
    lost: int = -1
    undo: list[tuple[int, int]] = field(default_factory=list)
    unfed: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, case: Case, fed: dict[int, Flow], feeds: list[int]) -> Losses:
        site_spare = [hard_limit(limit) for limit in case.problem.network.limits.tolist()]
        for s, count in enumerate(feeds):
            site_spare[case.sites[s]] -= count
        given = case.problem.source_feeds
        by_source = sum(flow.how == How.SOURCE for flow in fed.values())
        spare = [hard_limit(limit) - count for limit, count in zip(case.limits, feeds, strict=True)]
        losses = cls(case, fed, spare, site_spare, _NO_END if given is None else given - by_source)
        for s in sorted(fed, key=case.places.__getitem__):
            if case.limits[s] > 0:
                losses.members.setdefault(case.classes[s], []).append(s)
            losses.near.setdefault((case.classes[s], case.sites[s]), []).append(s)
            losses.on_site.setdefault(case.sites[s], []).append(s)
            for link in fed[s].links:
                losses.fed_by.setdefault(link.feeder, []).append(s)
        return losses

    def unabsorbed(self) -> list[tuple[str, int]]:
        names = self.case.problem.network.names
        counts = [(names[site], self._lose(site)) for site in sorted(self.on_site)]
        return [(name, count) for name, count in counts if count]

    def _lose(self, site: int) -> int:
        """Return how many of those that a site feeds find no other feed."""
        self.lost, self.unfed, before = site, set(), self.source_spare
        gone = self.on_site[site]
        orphans = sorted({s for u in gone for s in self.fed_by.get(u, []) if self.case.sites[s] != site})
        for s in gone:
            self._release(s)
        for s in orphans:
            self._release(s)
            if not self._feed_again(s):
                self.unfed.add(s)
        self._undo_to(0)
        self.source_spare = before
        return len(self.unfed)

    def _release(self, s: int) -> None:
        self.source_spare += self.fed[s].how == How.SOURCE
        for u in crossing(self.fed[s], self.case.sites):
            self._give(u, 1)

    def _give(self, u: int, count: int) -> None:
        self.spare[u] += count
        self.site_spare[self.case.sites[u]] += count
        self.undo.append((u, count))

    def _undo_to(self, length: int) -> None:
        while len(self.undo) > length:
            u, count = self.undo.pop()
            self.spare[u] -= count
            self.site_spare[self.case.sites[u]] -= count

    def _feed_again(self, s: int) -> bool:
        """Take the feeds of the first way that is free: an equal one, a candidate, the source."""
        number, first, mark = self.case.classes[s], self.case.table.first, len(self.undo)
        ways = [[number], *map(self.case.views, range(first[number], first[number + 1]))]
        for views in ways:
            if all(self._take(view, s) for view in views):
                return True
            self._undo_to(mark)
        self.source_spare -= 1
        return self.source_spare >= 0  # once below 0, it is for all that follow

    def _take(self, view: int, s: int) -> bool:
        """Take a feed of the first subscription with this pattern that has one left; on one machine it is free."""
        places, sites = self.case.places, self.case.sites
        end = places[s] if view == self.case.classes[s] else len(places)
        if any(places[u] < end and u not in self.unfed for u in self.near.get((view, sites[s]), [])):
            return True
        for u in self.members.get(view, []):
            if places[u] >= end:
                return False
            free = min(self.spare[u], self.site_spare[sites[u]])
            if free > 0 and sites[u] != self.lost and u not in self.unfed:
                self._give(u, -1)
                return True
        return False

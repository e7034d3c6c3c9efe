"""The network as the source has planned it: levels, and what each machine gets and gives."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from peer.steering.steering import Steering
    from peer.storage.log_values import SiteRecord


def overview_of(steering: Steering, sites: Mapping[str, SiteRecord], connected: Collection[str]) -> dict[str, Any]:
    """Say how many subscriptions are how far from the source, and how each machine stands.

    A feed is counted where it crosses machines; ``from_source``: subscriptions that the source feeds.
    """
    own: Counter[str] = Counter()
    from_source: Counter[str] = Counter()
    given: Counter[str] = Counter()
    feeders: dict[str, set[str]] = {}
    for one in steering.configurations():
        own[one.site] += 1
        inputs = one.choices[0] if one.choices else ()
        if not inputs:
            from_source[one.site] += 1
        for site in {i.site for i in inputs} or {steering.source_site}:
            if site != one.site:
                feeders.setdefault(one.site, set()).add(site)
        given.update(i.site for i in inputs if i.site != one.site)
    levels = Counter(steering.levels().values())
    return {
        "levels": {str(level): levels[level] for level in sorted(levels)},
        "pending": len(steering.pending),
        "should_replan": steering.should_replan,
        "machines": [
            {
                "site": name, "is_connected": name in connected, "capacity": record.capacity,
                "last_seen": record.last_seen, "subscriptions": own[name], "from_source": from_source[name],
                "feeds_given": given[name], "fed_by_machines": sorted(feeders.get(name, ())),
            }
            for name, record in sorted(sites.items())
        ],
    }  # fmt: skip

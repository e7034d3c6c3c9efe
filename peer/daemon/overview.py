"""The network as the source has planned it: levels, and what each machine gets and gives.

Machines that have whole documents match what is subscribed there; how that is planned is only what they fall back
to, and does not count here.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from peer.hosting.relay import may_be_relayed
from peer.hosting.results import DOCUMENTS
from xmlmatch import Pattern

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from peer.steering.steering import Steering
    from peer.storage.log_values import SiteRecord


def overview_of(steering: Steering, sites: Mapping[str, SiteRecord], connected: Collection[str]) -> dict[str, Any]:
    """Say how many subscriptions are how far from the source, and how each machine stands.

    A feed is counted where it crosses machines; ``from_source``: subscriptions that the source feeds; ``matched``:
    those that their machine matches on whole documents.
    """
    own: Counter[str] = Counter()
    from_source: Counter[str] = Counter()
    given: Counter[str] = Counter()
    matched: Counter[str] = Counter()
    feeders: dict[str, set[str]] = {}
    configurations, levels = steering.configurations(), steering.levels()
    relays = {one.site: one.subscription for one in configurations if one.pattern == DOCUMENTS.text}
    pending = set(steering.pending)
    for one in configurations:
        own[one.site] += 1
        relay = relays.get(one.site, one.subscription)
        if relay != one.subscription and _may_be_relayed(one.pattern):
            matched[one.site] += 1
            levels[one.subscription] = levels[relay]
            pending.discard(one.subscription)
            continue
        inputs = one.choices[0] if one.choices else ()
        if not inputs:
            from_source[one.site] += 1
        for site in {i.site for i in inputs} or {steering.source_site}:
            if site != one.site:
                feeders.setdefault(one.site, set()).add(site)
        given.update(i.site for i in inputs if i.site != one.site)
    counted = Counter(levels.values())
    is_only_relayed = bool(steering.pending) and not pending
    return {
        "levels": {str(level): counted[level] for level in sorted(counted)},
        "pending": len(pending),
        "matched": matched.total(),
        "should_replan": "" if is_only_relayed else steering.should_replan,
        "machines": [
            {
                "site": name, "is_connected": name in connected, "capacity": record.capacity,
                "last_seen": record.last_seen, "subscriptions": own[name], "from_source": from_source[name],
                "matched": matched[name], "feeds_given": given[name],
                "fed_by_machines": sorted(feeders.get(name, ())),
            }
            for name, record in sorted(sites.items())
        ],
    }  # fmt: skip


@lru_cache(maxsize=100_000)
def _may_be_relayed(text: str) -> bool:
    return may_be_relayed(Pattern.parse(text))

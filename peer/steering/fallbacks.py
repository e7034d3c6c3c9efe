"""What a subscription of a live plan falls back to: other ways to be fed, on other machines than its first choice.

As ``planner.alternatives`` does it for full plans: of the cheapest ways that share no machine with the first
choice nor with the subscription, up to three are kept, from a place on that is spread over subscriptions by hash;
so the consumers of a machine that fails do not all turn to the same one. Which of several equal subscriptions is
asked is spread likewise. Where there are too few, others follow that do without one of the first choice's machines
each. Equal subscriptions count as ways too. All of them follow the feeding order; none reserves capacity.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Final
from zlib import crc32

from planner.alternatives import ALTERNATIVES

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from peer.steering.steady_plan import SteadyPlan
    from planner.newcomer import Member

_WAYS: Final = 6
"""Among how many ways the alternatives are spread; more spread further, to dearer ones."""
_LOOKED_AT: Final = 32
"""How many equal subscriptions are looked at for one that is on no machine to avoid."""


def fallbacks(plan: SteadyPlan, m: Member, first: tuple[Member, ...]) -> list[tuple[Member, ...]]:
    """List the ways to feed a subscription if its first choice fails, in order of preference."""
    near = [u.site for u in first]
    found = _apart(plan, m, {m.site, *near})
    start = _spread(m.name, "") % max(len(found), 1)
    kept = [*found[start:], *found[:start]][:ALTERNATIVES]
    for site in dict.fromkeys(near):
        if len(kept) == ALTERNATIVES:
            break
        more = (way for way in _ways(plan, m, {site}) if way != first and way not in kept)
        kept.extend(islice(more, 1))
    return kept


def _apart(plan: SteadyPlan, m: Member, avoid: set[int]) -> list[tuple[Member, ...]]:
    """List ways that avoid some machines; where there are few candidates, the same ones by others too."""
    found: list[tuple[Member, ...]] = []
    for _ in range(ALTERNATIVES):
        taken = {u.site for way in found for u in way}
        more = list(islice(_ways(plan, m, avoid | taken), _WAYS - len(found)))
        found += more
        if not more or len(found) >= ALTERNATIVES:
            break
    return found


def _ways(plan: SteadyPlan, m: Member, avoid: set[int]) -> Iterator[tuple[Member, ...]]:
    """Yield ways to feed a subscription that avoid some machines: by equal ones, then by candidates."""
    used = set(avoid)
    for u in islice(_equals(plan, m), ALTERNATIVES):
        if u.site not in used:
            used.add(u.site)
            yield (u,)
    for candidate in plan.ledger.candidates(m.pattern):
        inputs = [_provider(plan, m, view, avoid) for view in candidate.views]
        chosen = tuple(u for u in inputs if u is not None)
        if len(chosen) == len(inputs):
            yield chosen


def _equals(plan: SteadyPlan, m: Member) -> Iterator[Member]:
    return (u for u in _spread_over(plan, m, m.pattern) if u.rank < m.rank and u.site != m.site)


def _provider(plan: SteadyPlan, m: Member, view: int, avoid: Container[int]) -> Member | None:
    return next((u for u in _spread_over(plan, m, view) if u.site not in avoid), None)


def _spread_over(plan: SteadyPlan, m: Member, view: int) -> Iterator[Member]:
    """Yield subscriptions to a view that are fed and may feed, from a place on that is spread by hash."""
    members = plan.ledger.members.get(view, {})
    if members:
        start = _spread(m.name, plan.graph.pattern(view).text) % len(members)
        for u in islice(chain(islice(members, start, None), islice(members, start)), _LOOKED_AT):
            if u.feed is not None and u.hard > 0:
                yield u


def _spread(name: str, text: str) -> int:
    """Mix two texts to a number that looks random and is the same on every machine."""
    return crc32(f"{name}\n{text}".encode())

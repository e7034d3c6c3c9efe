"""The choices of a configuration: the live plan's feed, then what to fall back to.

Choices that still hold are kept as they are, so that a change touches few configurations and a restart none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from peer.hosting.configuration import Input
from peer.steering.fallbacks import fallbacks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peer.steering.checking import Checked
    from peer.steering.steady_plan import SteadyPlan
    from planner.newcomer import Member

Choices: TypeAlias = tuple[tuple[Input, ...], ...]


def kept_choices(plan: SteadyPlan, m: Member, old: Choices) -> Choices | None:
    """Return the choices of before as far as they hold; None if the subscription needs others.

    One whose machine is down keeps those whose inputs are still there, for its return.
    """
    there = tuple(choice for choice in old if all(u.subscription in plan.members() for u in choice))
    if plan.is_offline(m):
        return there
    inputs = inputs_of(m)
    if not inputs:
        return ()
    return old if old and names(old[0]) == inputs and there == old else None


def fresh_choices(plan: SteadyPlan, m: Member) -> Choices:
    """Return the present feed of a subscription that has inputs, and alternatives from what is listed."""
    first = () if m.feed is None else m.feed.inputs
    return _choices(plan, [first, *fallbacks(plan, m, first)])


def proposed_choices(plan: SteadyPlan, m: Member, checked: Checked) -> Choices | None:
    """Return the feed that was proposed with its alternatives; None if it is not fed so, or there are none."""
    first, others = inputs_of(m), checked.alternatives.get(m.name, ())
    if not first or not others or checked.feeds[m.name] != first:
        return None
    return _choices(plan, [map(plan.member, way) for way in (first, *others)])


def inputs_of(m: Member) -> tuple[str, ...]:
    """Return the names of those that feed a subscription; none for the source."""
    return () if m.feed is None else tuple(u.name for u in m.feed.inputs)


def names(choice: Iterable[Input]) -> tuple[str, ...]:
    """Return the subscriptions of a choice."""
    return tuple(one.subscription for one in choice)


def _choices(plan: SteadyPlan, ways: Iterable[Iterable[Member]]) -> Choices:
    return tuple(tuple(Input(u.name, plan.site_of(u), plan.pattern_of(u).text) for u in way) for way in ways)

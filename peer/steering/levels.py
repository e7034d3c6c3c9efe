"""How deep subscriptions hang below the source, and what is told of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.configuration import How

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from planner.newcomer import Member


@dataclass(frozen=True, slots=True)
class Description:
    """How a subscription is fed: by which others on which machines (the source's if by the source), at which level
    (0 if it is not), and what that is expected to cost per document, in byte equivalents.

    ``reason``: why it is not fed. ``alternatives``: how many it has to fall back to.
    """

    subscription: str
    how: How
    inputs: tuple[str, ...]
    sites: tuple[str, ...]
    level: int
    utilization: int
    alternatives: int
    reason: str = ""


def feeders_first(inputs: Mapping[str, Sequence[str]]) -> list[str]:
    """List subscriptions so that whoever feeds comes before those it feeds, but for circles.

    >>> feeders_first({"c": ["b", "a"], "b": ["a"], "a": []})
    ['a', 'b', 'c']
    """
    done: dict[str, None] = {}
    begun: set[str] = set()
    for root in inputs:
        stack = [root]
        while stack:
            name = stack[-1]
            if name in begun:
                stack.pop()
                done[name] = None
                continue
            begun.add(name)
            stack += [u for u in reversed(inputs[name]) if u in inputs and u not in begun]
    return list(done)


def levels(members: Iterable[Member]) -> dict[str, int]:
    """Return how many links are between the source and each subscription; 0 for those that are not fed."""
    found: dict[str, int] = {}
    for member in members:
        stack = [member]
        while stack:
            m = stack[-1]
            inputs = m.feed.inputs if m.feed is not None else ()
            above = [u for u in inputs if u.name not in found]
            if above:
                stack += above
                continue
            stack.pop()
            deepest = max((found[u.name] for u in inputs), default=0)
            found[m.name] = 0 if m.feed is None else deepest + (m.feed.how is not How.LOCAL)
    return found

"""How a subscription stands: what ``status`` and ``subscriptions`` show of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from peer.daemon.questions import NoAnswer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peer.daemon.questions import Questions
    from peer.hosting.hosted import Hosted

_LAG_S: Final = 2.0


def standing_of(hosted: Hosted, source: str) -> dict[str, Any]:
    """Say who feeds a subscription, how far it is, and how many it feeds, ``crossing`` on other machines."""
    current = hosted.feeding.current
    inputs = [] if current is None else [one.subscription for one in current.inputs] or [source]
    return {
        "subscription": hosted.name,
        "pattern": hosted.configuration.pattern,
        "fed_by": inputs,
        "is_live": current is not None and current.is_live,
        "is_as_configured": hosted.feeding.is_as_configured,
        "level": hosted.feeding.level,
        "frontier": hosted.frontier,
        "committed": hosted.committed,
        "feeds": len(hosted.outlet.feeds),
        "crossing": len(hosted.outlet.crossing),
        "failovers": hosted.feeding.failovers,
        "circles": hosted.feeding.circles,
    }


async def lag_of(subscriptions: Iterable[Hosted], questions: Questions, source: str) -> int | None:
    """Return how many entries of the log the slowest of some subscriptions is behind; None if nobody can say."""
    with trio.move_on_after(_LAG_S):
        try:
            last = int(await questions.ask(source, "last", None))
        except NoAnswer:
            return None
        return max((last - one.committed for one in subscriptions), default=0)
    return None

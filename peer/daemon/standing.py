"""How a subscription stands: what ``status`` and ``subscriptions`` show of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from peer.hosting.hosted import Hosted


def standing_of(hosted: Hosted, source: str) -> dict[str, Any]:
    """Say who feeds a subscription, how far it is, and how many it feeds."""
    current = hosted.feeding.current
    inputs = [] if current is None else [one.subscription for one in current.inputs] or [source]
    return {
        "subscription": hosted.name,
        "pattern": hosted.configuration.pattern,
        "fed_by": inputs,
        "is_live": current is not None and current.is_live,
        "level": hosted.feeding.level,
        "frontier": hosted.frontier,
        "committed": hosted.committed,
        "feeds": len(hosted.outlet.feeds),
        "failovers": hosted.feeding.failovers,
        "circles": hosted.feeding.circles,
    }

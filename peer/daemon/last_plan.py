"""What the source remembers of the last full plan: to say how far the network has moved from it since."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Collection

    from peer.daemon.one_writer import OneWriter
    from peer.storage.source_log import SourceLog

_STATE: Final = "last_plan"


class _Plan(msgspec.Struct, frozen=True):
    at: float
    epoch: int
    feeds: int
    names: list[str]


class LastPlan:
    """The last plan, on disk."""

    def __init__(self, log: SourceLog, alone: OneWriter) -> None:
        self._log, self._alone = log, alone
        kept = log.get_state(_STATE)
        self._take(None if kept is None else msgspec.msgpack.decode(kept, type=_Plan))

    def _take(self, plan: _Plan | None) -> None:
        self._plan, self._names = plan, frozenset(() if plan is None else plan.names)

    def adopted(self, epoch: int, feeds: int, names: Collection[str]) -> None:
        """A plan is in force: so many feeds of the source, for these subscriptions."""
        plan = _Plan(time.time(), epoch, feeds, sorted(names))
        self._alone(self._log.put_state, _STATE, msgspec.msgpack.encode(plan))
        self._take(plan)

    def shown(self) -> dict[str, Any] | None:
        """What ``status`` shows of it."""
        plan = self._plan
        if plan is None:
            return None
        return {"at": plan.at, "epoch": plan.epoch, "source_feeds": plan.feeds, "subscriptions": len(plan.names)}

    def state(self, feeds: int, names: Collection[str]) -> dict[str, Any]:
        """Say how far the present is from it; ``churn``: how many subscriptions came or went."""
        plan = self._plan
        return {
            "subscriptions": len(names), "feeds": feeds,
            "age_s": None if plan is None else max(time.time() - plan.at, 0.0),
            "planned": len(self._names), "planned_feeds": 0 if plan is None else plan.feeds,
            "churn": len(self._names.symmetric_difference(names)),
        }  # fmt: skip

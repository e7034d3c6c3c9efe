"""Feeds that a machine asked for without the right to them: all are counted, and some logged.

A machine may ask as often as it likes. So of each machine one is logged, and then no other for a while; the next
says how many were left out.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

    from overlay.wire.frames import Open

_LOG: Final = logging.getLogger("distributary.permits")
COUNTED_AS: Final = "a feed that is not permitted"
_EVERY_S: Final = 10.0
_MOST_SITES: Final = 10_000
_LONGEST: Final = 300


class FeedRefusals:
    """What was refused, by machine; ``counted`` is where it is counted, by reason."""

    def __init__(self, counted: dict[str, int], clock: Callable[[], float] = trio.current_time) -> None:
        self._counted, self._clock = counted, clock
        self._logged_at: dict[str, float] = {}
        self._left_out: dict[str, int] = {}

    def noted(self, site: str, asked: Open, reason: str) -> str:
        """Note for what reason a feed is refused, unless there is none; return the reason."""
        if reason:
            self._counted[COUNTED_AS] = self._counted.get(COUNTED_AS, 0) + 1
            self._log(site, asked, reason)
        return reason

    def _log(self, site: str, asked: Open, reason: str) -> None:
        now = self._clock()
        if now - self._logged_at.get(site, -_EVERY_S) < _EVERY_S:
            self._left_out[site] = self._left_out.get(site, 0) + 1
            return
        if len(self._logged_at) >= _MOST_SITES:
            self._logged_at.clear()
        self._logged_at[site] = now
        _LOG.warning("feed refused", extra={
            "site": site, "subscription": asked.downstream[:_LONGEST], "of": asked.upstream[:_LONGEST],
            "reason": reason[:_LONGEST], "left_out": self._left_out.pop(site, 0),
        })  # fmt: skip

"""When a daemon looks after things: at the beats of one clock, for waking up costs more than looking.

Whatever is done now and then is done at multiples of its period, so that several of them fall on one waking. The
clock of each process begins anywhere, so those of one machine do not all wake together.
"""

from __future__ import annotations

import math

import trio


class Beat:
    """The beats of one task. ``soon`` calls it earlier."""

    def __init__(self) -> None:
        self._scope = trio.CancelScope()
        self._at = math.inf

    async def rest(self, period_s: float, *, latest: float = math.inf) -> float:
        """Wait for the next multiple of a period, or until ``latest`` or ``soon``; return how late it is now."""
        self._at = min((trio.current_time() // period_s + 1) * period_s, latest)
        with trio.CancelScope(deadline=self._at) as self._scope:
            await trio.sleep_forever()
        return trio.current_time() - self._scope.deadline

    def soon(self, seconds: float = 0.0) -> None:
        """Something has happened that cannot wait for the next beat."""
        self._scope.deadline = min(self._scope.deadline, trio.current_time() + seconds)

    def calm(self) -> None:
        """What could not wait is done: the next beat is the one that was to come anyway."""
        if self._scope.deadline < self._at:
            self._scope.deadline = self._at

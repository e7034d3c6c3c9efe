"""Machines that are not to be dialled for a while: those short of time, and those that want nothing of us."""

from __future__ import annotations

import random
from typing import Final

import trio

_FIRST_S: Final = 1.0
_LONGEST_S: Final = 20.0


class Resting:
    """Until when each machine is left alone."""

    def __init__(self) -> None:
        self._until: dict[str, tuple[float, float]] = {}

    def holds(self, site: str) -> bool:
        """Say whether a machine is not to be dialled now."""
        return trio.current_time() < self._until.get(site, (0.0, 0.0))[1]

    def longer(self, site: str) -> None:
        """Leave a machine alone for twice as long as the last time: a handshake that comes to nothing takes its
        time all the same, and who takes too long to greet is short of it."""
        rest = min(2 * self._until.get(site, (_FIRST_S, 0.0))[0], _LONGEST_S)
        self._until[site] = rest, trio.current_time() + rest * random.uniform(0.5, 1.0)

    def rest(self, site: str, seconds: float) -> None:
        """Leave a machine alone for so long."""
        self._until[site] = _FIRST_S, trio.current_time() + seconds

    def reached(self, site: str) -> None:
        """A machine is connected."""
        self._until.pop(site, None)

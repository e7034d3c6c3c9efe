"""How long a webhook waits before it tries again.

>>> import random
>>> waiting = Waiting(HookTimes(first_s=1, longest_s=60))
>>> [round(waiting.failed(random.Random(n)), 1) for n in range(4)]
[1.3, 1.3, 5.8, 5.9]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random


@dataclass(frozen=True, slots=True)
class HookTimes:
    """``first_s``, ``longest_s``: the pause after the first failure, and the longest; each failure doubles it, and
    chance makes it up to half shorter or longer, so that receivers who return are not met by all at once.
    ``patience_s``: how long one POST may take. ``idle_s``: how long a cursor may be behind when nothing was
    posted."""

    first_s: float = 1.0
    longest_s: float = 300.0
    patience_s: float = 10.0
    idle_s: float = 30.0


@dataclass(slots=True)
class Waiting:
    """The failures in a row."""

    times: HookTimes
    failures: int = 0

    def failed(self, rng: random.Random) -> float:
        """Count a failure and return how long to wait."""
        pause = min(self.times.first_s * 2.0 ** min(self.failures, 30), self.times.longest_s)
        self.failures += 1
        return pause * (0.5 + rng.random())

    def delivered(self) -> None:
        """It worked: the next failure is the first again."""
        self.failures = 0

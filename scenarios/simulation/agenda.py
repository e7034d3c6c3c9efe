"""Virtual time: what happens when, in order, and a log of it."""

from __future__ import annotations

import heapq
import random
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_LINES: Final = 200_000


class Agenda:
    """Everything that will happen; what happens at the same time does so in the order it was put here."""

    def __init__(self, seed: int) -> None:
        self.now = 0.0
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self._due: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0

    def after(self, delay: float, action: Callable[..., None], *arguments: Any) -> None:
        """Let something happen later."""
        self._count += 1
        heapq.heappush(self._due, (self.now + delay, self._count, action, arguments))

    def run(self, until: float) -> None:
        """Let time pass."""
        while self._due and self._due[0][0] <= until:
            self.now, _, action, arguments = heapq.heappop(self._due)
            action(*arguments)
        self.now = max(self.now, until)

    def note(self, what: str) -> None:
        """Write a line of the log; of a run without end the beginning is kept."""
        if len(self.lines) < _MOST_LINES:
            self.lines.append(f"{self.now:10.3f}  {what}")

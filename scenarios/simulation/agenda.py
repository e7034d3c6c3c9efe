"""Virtual time: what happens when, in order, and a log of it."""

from __future__ import annotations

import hashlib
import heapq
import random
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_LINES: Final = 200_000


class Agenda:
    """Everything that will happen; what happens at the same time does so in the order it was put here.

    ``lines`` is the log of events; ``is_detailed``: with every message. ``digest`` stands for all of them, told
    or not: two runs with the same digest were the same."""

    def __init__(self, seed: int, *, is_detailed: bool = False) -> None:
        self.now = 0.0
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.is_detailed = is_detailed
        self._all = hashlib.blake2b(digest_size=16)
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
        self.count(what.encode())
        if len(self.lines) < _MOST_LINES:
            self.lines.append(f"{self.now:10.3f}  {what}")

    def detail(self, what: str) -> None:
        """Write a line that only a detailed log has; it does not count in the digest."""
        if self.is_detailed and len(self.lines) < _MOST_LINES:
            self.lines.append(f"{self.now:10.3f}      {what}")

    def count(self, what: bytes) -> None:
        """Let something that happened count in the digest."""
        self._all.update(f"{self.now!r} {len(what)} ".encode() + what)

    @property
    def digest(self) -> str:
        """What stands for everything that has happened."""
        return self._all.hexdigest()

"""Messages that machines were not there to take: the source hands them over when they are heard again.

A machine is owed the numbers that some zone's owner could not hand it. They are kept up to a limit; beyond it the
oldest are given up, and the machine is told up to where it has a gap.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from overlay.content.tasks import AGAIN_S

MOST_OWED: Final = 10_000
AT_ONCE: Final = 50
"""How many messages a machine is handed at a time."""


@dataclass(slots=True)
class Owed:
    """What one machine is owed. ``gap``: up to there messages were given up.

    >>> owed = Owed()
    >>> owed.mark(7); owed.mark(5)
    >>> owed.due(now=0.0), owed.due(now=0.1), owed.complete_upto(9)
    ([5, 7], [], 4)
    >>> owed.stored(5); owed.complete_upto(9)
    6
    """

    numbers: set[int] = field(default_factory=set)
    gap: int = 0
    _handed: dict[int, float] = field(default_factory=dict)

    def mark(self, number: int) -> None:
        """It was not given this one."""
        self.numbers.add(number)
        if len(self.numbers) > MOST_OWED:
            self.gap = min(self.numbers)
            self.stored(self.gap)

    def due(self, now: float) -> list[int]:
        """List the numbers to hand over now."""
        found = [n for n in sorted(self.numbers)[:AT_ONCE] if self._handed.get(n, now) <= now]
        self._handed |= dict.fromkeys(found, now + AGAIN_S)
        return found

    def stored(self, number: int) -> None:
        """It has this one."""
        self.numbers.discard(number)
        self._handed.pop(number, None)

    def complete_upto(self, frontier: int) -> int:
        """Return up to where it has everything."""
        return min([frontier, *(number - 1 for number in self.numbers)])

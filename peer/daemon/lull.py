"""When to let everybody know of entries of the log that nobody gets anything from.

Every subscription is told that such an entry is behind it, and stores that; while subscriptions come by the
thousand, each would cost all that came before it. So the news waits for the next document, which tells it as
well; else for a lull, or until it has waited for long.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Lull:
    """``lull_s``: nothing came for so long. ``longest_s``: nothing waits longer.

    >>> lull = Lull(lull_s=0.2, longest_s=5.0)
    >>> lull.came(7, 10.0)
    >>> lull.came(8, 10.1)
    >>> lull.due(10.25), lull.due(10.35), lull.due(10.4)
    (None, 8, None)
    """

    lull_s: float = 0.2
    longest_s: float = 5.0
    _waiting: int | None = None
    _since: float = 0.0
    _last: float = 0.0

    def came(self, number: int, now: float) -> None:
        """An entry has come that can wait."""
        if self._waiting is None:
            self._since = now
        self._waiting, self._last = number, now

    def told(self) -> None:
        """Everybody was told of all that waited."""
        self._waiting = None

    def due(self, now: float) -> int | None:
        """Return up to where everybody is to be told, and take it as told; None if that can wait."""
        is_due = now - self._last >= self.lull_s or now - self._since >= self.longest_s
        number = self._waiting if is_due else None
        if number is not None:
            self._waiting = None
        return number

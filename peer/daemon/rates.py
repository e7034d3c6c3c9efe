"""How fast things go: per second, over the last seconds."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

OVER_S: Final = 10.0
_EVERY_S: Final = 0.9
"""Beats that are a second apart count, late or early."""


class Rates:
    """Counters seen about once a second; ``look`` as often as you like.

    >>> rates = Rates()
    >>> for second in range(20):
    ...     rates.look(float(second), {"bytes": 100 * second})
    >>> rates.per_second(19.0)
    {'bytes': 100.0}
    """

    def __init__(self) -> None:
        self._seen: deque[tuple[float, dict[str, int]]] = deque(maxlen=int(OVER_S / _EVERY_S) + 2)

    def look(self, now: float, counters: Mapping[str, int]) -> None:
        """Take the counters in, if it is time."""
        if not self._seen or now - self._seen[-1][0] >= _EVERY_S:
            self._seen.append((now, dict(counters)))

    def per_second(self, now: float) -> dict[str, float]:
        """Return how much each counter grew per second."""
        recent = [one for one in self._seen if now - one[0] <= OVER_S + _EVERY_S]
        if len(recent) < 2:
            return dict.fromkeys(recent[-1][1] if recent else (), 0.0)
        (begun, first), (ended, last) = recent[0], recent[-1]
        return {name: round((last[name] - first[name]) / (ended - begun), 2) for name in last}

"""What was refused on the links, counted by reason, and logged now and then: who is refused dials again."""

from __future__ import annotations

import logging
from typing import Final

_LOG: Final = logging.getLogger("distributary.links")
_MOST_REASONS: Final = 100
"""Others have a hand in what reasons say: so many are counted apart, the rest together."""
_EVERY_S: Final = 60.0
"""The same reason is logged this often at most; the count goes on."""


class Refusals:
    """Counts reasons, and logs each once a minute at most.

    >>> found = Refusals()
    >>> [found.count("it is revoked", now) for now in (0.0, 0.25, 60.0)]
    [True, False, True]
    >>> found.counts
    {'it is revoked': 3}
    """

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self._logged: dict[str, tuple[float, int]] = {}

    def count(self, reason: str, now: float) -> bool:
        """Count a refusal; return whether it was logged."""
        short = reason[:80] if reason[:80] in self.counts or len(self.counts) < _MOST_REASONS else "other"
        times = self.counts[short] = self.counts.get(short, 0) + 1
        at, before = self._logged.get(short, (now - _EVERY_S, 0))
        if now - at < _EVERY_S:
            return False
        self._logged[short] = now, times
        _LOG.warning("refused", extra={"reason": reason, "times": times - before})
        return True

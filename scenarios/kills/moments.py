"""Moments that a kill can be aimed at: somebody says that it is about to do something, somebody waits for that."""

from __future__ import annotations

import threading
from collections import Counter


class Moments:
    """Counts what is about to happen; any thread may use it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._counts: Counter[str] = Counter()

    def reach(self, what: str) -> None:
        """Something is about to happen."""
        with self._changed:
            self._counts[what] += 1
            self._changed.notify_all()

    def wait(self, what: str, patience_s: float) -> bool:
        """Wait until it is about to happen once more; False if it does not."""
        with self._changed:
            before = self._counts[what]
            return self._changed.wait_for(lambda: self._counts[what] > before, patience_s)

    def counts(self) -> dict[str, int]:
        """Say how often each has been reached."""
        with self._changed:
            return dict(sorted(self._counts.items()))

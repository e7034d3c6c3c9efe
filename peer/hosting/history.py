"""What a subscription has for past documents: the newest in memory, the older in its store.

Everything in (``lowest``, ``frontier``] can be read; a document without an item has no results.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from overlay.feeds.items import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from overlay.feeds.items import Item

RECENT_BYTES: Final = 4 << 20
"""How much of a subscription's newest results stays in memory, to feed others without reading them back."""


class Stretch(NamedTuple):
    """Items in order, and up to where they are all there are."""

    items: Sequence[Item]
    upto: int


class History:
    """Items by document; ``stored(after, upto, most_bytes)`` reads older ones, and gets further than ``after``."""

    def __init__(
        self,
        frontier: int,
        lowest: int,
        stored: Callable[[int, int, int], Stretch],
        *,
        recent_bytes: int = RECENT_BYTES,
    ) -> None:
        self.frontier, self.lowest = frontier, lowest
        self._stored = stored
        self._recent: deque[Item] = deque()
        self._since = frontier
        self._size, self._most = 0, recent_bytes
        self.safe = frontier
        """What is up to there can be read from the store, and need not stay in memory."""

    def add(self, items: Sequence[Item], upto: int) -> None:
        """Add what came for the documents in (frontier, upto]."""
        size = 0
        for item in items:
            if not self.frontier < item.number <= upto:
                raise ValueError(f"item {item.number} is outside ({self.frontier}, {upto}]")
            size += len(item.data)
        if upto < self.frontier:
            raise ValueError(f"it goes back from {self.frontier} to {upto}")
        self._recent.extend(items)
        self._size += size
        self.frontier = upto
        self._forget()

    @property
    def recent_bytes(self) -> int:
        """How much is in memory."""
        return self._size

    def stored_upto(self, number: int) -> None:
        """Everything up to a document is in the store."""
        self.safe = max(self.safe, number)
        self._forget()

    def skip_to(self, number: int) -> None:
        """Everything up to a document was added to the store by somebody else, if that is further than here."""
        if number > self.frontier:
            self._recent.clear()
            self._size, self._since = 0, number
            self.frontier = self.safe = number

    def _forget(self) -> None:
        while len(self._recent) > 1 and self._recent[0].number <= self.safe:
            if self._size <= self._most and self._recent[0].kind is not Kind.REFERENCE:
                return  # references are small and many, and soon read
            gone = self._recent.popleft()
            self._since = gone.number
            self._size -= len(gone.data)

    def read(self, after: int, most_bytes: int) -> Stretch:
        """Return items after a document, about as many bytes as asked for."""
        if after < self._since:
            return self._stored(after, self._since, most_bytes)
        found: list[Item] = []
        size = 0
        for item in self._recent:
            if item.number > after:
                if size >= most_bytes:
                    return Stretch(found, found[-1].number)
                found.append(item)
                size += len(item.data)
        return Stretch(found, self.frontier)

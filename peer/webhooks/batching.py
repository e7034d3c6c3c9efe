"""What one POST holds: entries in order, bounded, with what its receiver knows it by.

>>> batch = Batch("s-1")
>>> batch.add({"document": 7, "row": {"a.val": "x"}})
>>> batch.add({"complete": 9})
>>> batch.documents, batch.upto, batch.body()
((7, 7), 9, b'{"subscription": "s-1", "entries": [{"document": 7, "row": {"a.val": "x"}}], "complete": 9}')
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

from peer.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_BYTES: Final = 256 << 10
MOST_ENTRIES: Final = 1_000


class Batch:
    """Entries of a subscription. ``is_full``: it must be posted before more is added; one entry always fits."""

    def __init__(self, subscription: str) -> None:
        self.subscription = subscription
        self._entries: list[str] = []
        self._bytes = 0
        self._numbers: list[int] = []
        self._progress = Progress()
        self._complete: int | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, told: Mapping[str, Any]) -> None:
        """Add an entry, or up to where everything is there."""
        self._progress.told(told)
        self._complete = told.get("complete")
        if self._complete is None:
            text = json.dumps(told)
            self._entries.append(text)
            self._bytes += len(text)
            number = told["gap"][1] if "gap" in told else told["document"]
            self._numbers = [*self._numbers[:1], number]

    @property
    def is_full(self) -> bool:
        """Whether it is as large as it may be."""
        return self._bytes >= MOST_BYTES or len(self._entries) >= MOST_ENTRIES

    @property
    def upto(self) -> int:
        """Up to where everything is delivered once this is."""
        return self._progress.upto

    @property
    def documents(self) -> tuple[int, int]:
        """The numbers of its first and its last document."""
        return self._numbers[0], self._numbers[-1]

    def body(self) -> bytes:
        """Write it; ``complete`` is there if nothing is missing up to that document."""
        end = "" if self._complete is None else f', "complete": {self._complete}'
        head = f'{{"subscription": {json.dumps(self.subscription)}, "entries": ['
        return f"{head}{', '.join(self._entries)}]{end}}}".encode()


def headers_of(batch: Batch, body: bytes) -> list[tuple[str, str]]:
    """Return the headers that a receiver tells batches apart by; the same batch has the same key again."""
    first, last = batch.documents
    key = f"{batch.subscription}/{first}-{last}/{hashlib.sha256(body).hexdigest()[:16]}"
    return [
        ("Content-Type", "application/json"), ("Distributary-Subscription", batch.subscription),
        ("Distributary-Documents", f"{first}-{last}"), ("Idempotency-Key", key),
    ]  # fmt: skip

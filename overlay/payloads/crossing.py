"""What has crossed a connection in one direction, as both of its ends know it: no content crosses twice.

A connection delivers everything once and in order. So each end, given the same cap, keeps the same contents
without a word about it: the sender notes what it sends, the receiver what it hears, and what was used longest ago
goes at both at the same moment. What the sender still knows, the receiver still has; it is enough to name it. A
new connection begins with nothing.

Names are counts: the third content that crossed is the third at both ends. So nobody has to hash anything; the
sender looks contents up in a dictionary. Before version 6 of the protocol names were hashes (``HashedCrossing``).

>>> sender, receiver = Crossing(), Crossing()
>>> sender.sending(b"x" * 500) is None, receiver.heard(b"x" * 500)
(True, None)
>>> receiver.named(sender.sending(b"x" * 500)) == b"x" * 500
True
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Protocol

from overlay.payloads.payload import payload_id
from overlay.payloads.repository import Repository

CAP_BYTES: Final = 1 << 19
"""How much each end keeps, per connection and direction; more finds what came longer ago, and costs memory. Both
ends must keep the same: another cap is another version of the protocol."""
_COUNT_BYTES: Final = 8
LEAST: Final = 256
"""Smaller contents are sent again: naming them saves next to nothing."""


class OneDirection(Protocol):
    """One direction of a connection, at one of its ends."""

    def sending(self, data: bytes) -> bytes | None:
        """Return the name by which the other end has something that is to be sent, None if it has to be sent."""

    def heard(self, data: bytes) -> None:
        """Something has come whole."""

    def named(self, name: bytes) -> bytes | None:
        """Return what is known by a name; None if it never came, or so long ago that no honest sender names it."""


class Crossing:
    """One direction of a connection, at one of its ends; names are counts."""

    def __init__(self, cap_bytes: int = CAP_BYTES) -> None:
        self._cap_bytes = cap_bytes
        self._count = self.size_bytes = 0
        self._kept: OrderedDict[int, bytes] = OrderedDict()
        self._counts: dict[bytes, int] = {}
        """Of the sender: what is kept, by content."""

    def sending(self, data: bytes) -> bytes | None:
        """Return the name by which the other end has something that is to be sent, None if it has to be sent."""
        if len(data) < LEAST:
            return None
        count = self._counts.get(data)
        if count is None:
            self.heard(data)
            if self._count in self._kept:
                self._counts[data] = self._count
            return None
        self._kept.move_to_end(count)
        return count.to_bytes(_COUNT_BYTES)

    def heard(self, data: bytes) -> None:
        """Something has come whole."""
        if len(data) < LEAST:
            return
        self._count += 1
        if len(data) > self._cap_bytes:
            return
        while self.size_bytes + len(data) > self._cap_bytes:
            _, gone = self._kept.popitem(last=False)
            self.size_bytes -= len(gone)
            self._counts.pop(gone, None)
        self._kept[self._count] = data
        self.size_bytes += len(data)

    def named(self, name: bytes) -> bytes | None:
        """Return what is known by a name; None if it never came, or so long ago that no honest sender names it."""
        count = int.from_bytes(name)
        if len(name) != _COUNT_BYTES or count not in self._kept:
            return None
        self._kept.move_to_end(count)
        return self._kept[count]


class HashedCrossing:
    """One direction of a connection, at one of its ends; names are hashes."""

    def __init__(self, cap_bytes: int = CAP_BYTES) -> None:
        self._kept = Repository(cap_bytes)

    @property
    def size_bytes(self) -> int:
        """How much is kept."""
        return self._kept.size_bytes

    def sending(self, data: bytes) -> bytes | None:
        """Return the name by which the other end has something that is to be sent, None if it has to be sent."""
        if len(data) < LEAST:
            return None
        name = payload_id(data)
        is_there = name in self._kept
        self._kept.put(name, data)
        return name if is_there else None

    def heard(self, data: bytes) -> None:
        """Something has come whole."""
        if len(data) >= LEAST:
            self._kept.put(payload_id(data), data)

    def named(self, name: bytes) -> bytes | None:
        """Return what is known by a name; None if it never came, or so long ago that no honest sender names it."""
        return self._kept.get(name)

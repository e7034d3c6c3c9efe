"""The repository: payloads that passed through, up to a cap in bytes.

What was used longest ago goes first; but payloads that have crossed every link of the node already (``settled``)
go before all others: nobody is likely to need them from here any more.
"""

from __future__ import annotations

from collections import OrderedDict


class Repository:
    """Payloads by their hash.

    >>> kept = Repository(cap_bytes=10)
    >>> kept.put(b"a", b"12345"); kept.put(b"b", b"12345")
    >>> kept.get(b"a"); kept.put(b"c", b"123")
    b'12345'
    >>> kept.get(b"b") is None, kept.size_bytes
    (True, 8)
    """

    def __init__(self, cap_bytes: int) -> None:
        self.cap_bytes = cap_bytes
        self.size_bytes = 0
        self._kept: OrderedDict[bytes, bytes] = OrderedDict()
        self._settled: OrderedDict[bytes, None] = OrderedDict()

    def __contains__(self, key: bytes) -> bool:
        return key in self._kept

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: bytes) -> bytes | None:
        """Return a payload if it is here; it has been used now."""
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        return self._kept[key]

    def put(self, key: bytes, payload: bytes) -> None:
        """Keep a payload, and drop others for it; one beyond the cap is not kept."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return
        if len(payload) > self.cap_bytes:
            return
        while self.size_bytes + len(payload) > self.cap_bytes:
            self.drop(next(iter(self._settled), None) or next(iter(self._kept)))
        self._kept[key] = payload
        self.size_bytes += len(payload)

    def settle(self, key: bytes) -> None:
        """A payload has crossed every link: it may go first."""
        if key in self._kept:
            self._settled[key] = None

    def unsettle(self) -> None:
        """There is a new link: nothing has crossed it yet."""
        self._settled.clear()

    def drop(self, key: bytes) -> None:
        """Forget a payload."""
        self._settled.pop(key, None)
        payload = self._kept.pop(key, None)
        self.size_bytes -= 0 if payload is None else len(payload)

"""Which datagrams of a sender were seen already.

Each sender has a random instance id and numbers its datagrams. A *window* remembers the highest number and, as
bits, which of the ``WIDTH`` numbers below it were seen; what lies lower counts as seen. That is the sliding window
of IPsec (RFC 4303, sec. 3.4.3). Windows are kept for a bounded number of senders; the one heard of least recently
is forgotten first, and then only the datagram's timestamp limits a replay.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

WIDTH: Final = 1024
_MASK: Final = (1 << WIDTH) - 1


@dataclass(slots=True)
class _Window:
    highest: int
    seen: int = 1  # bit i: the number highest - i was seen

    def takes(self, number: int) -> bool:
        """Note a number; False if it was seen, or is too low to tell."""
        ahead = number - self.highest
        if ahead > 0:
            # A jump clears the window; shifting by the jump itself would let a sender ask for any memory.
            self.seen = (self.seen << ahead | 1) & _MASK if ahead < WIDTH else 1
            self.highest = number
            return True
        bit = 1 << -ahead if -ahead < WIDTH else 0
        if not bit or self.seen & bit:
            return False
        self.seen |= bit
        return True


@dataclass(slots=True)
class ReplayWindows:
    """The windows of up to ``most`` senders.

    >>> windows = ReplayWindows(most=2)
    >>> [windows.takes(b"a", number) for number in (5, 7, 6, 7, 5)]
    [True, True, True, False, False]
    """

    most: int = 4096
    _windows: dict[bytes, _Window] = field(default_factory=dict)

    def takes(self, sender: bytes, number: int) -> bool:
        """Note a datagram; False if it is a replay."""
        window = self._windows.pop(sender, None)
        fresh = window.takes(number) if window else True
        self._windows[sender] = window or _Window(number)  # at the end: heard of most recently
        if len(self._windows) > self.most:
            del self._windows[next(iter(self._windows))]
        return fresh

    @property
    def senders(self) -> int:
        """How many senders are remembered."""
        return len(self._windows)

"""The directory: which payloads have crossed which links.

A bit is set when the other end says that it has seen the payload, never before: so a lost message costs nothing,
and a node that does not understand payloads that stay behind never says so and always gets them whole (Appendix H
of the paper). A bit counts for one incarnation of the link: when the other end has started anew, it has seen
nothing. Entries are dropped by last use above a cap; what is forgotten is sent again.
"""

from __future__ import annotations

from collections import OrderedDict


class Directory:
    """Bitmaps of links by payload.

    >>> directory = Directory(most=2)
    >>> directory.link("b", incarnation=1)
    True
    >>> directory.set(b"x", "b"); directory.has(b"x", "b"), directory.has(b"y", "b")
    (True, False)
    >>> directory.link("b", incarnation=2), directory.has(b"x", "b")
    (True, False)
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._bit: dict[str, int] = {}
        self._incarnation: dict[str, int] = {}
        self._free = 0
        self._bitmaps: OrderedDict[bytes, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._bitmaps)

    def link(self, site: str, incarnation: int) -> bool:
        """Say that there is a link; True if it is a new one, or the other end has started anew."""
        if self._incarnation.get(site) == incarnation:
            return False
        self._incarnation[site] = incarnation
        # A fresh bit instead of clearing the old one everywhere; bitmaps are made small again when bits run out.
        self._bit[site] = self._free
        self._free += 1
        if self._free > 64 + 4 * len(self._bit):
            self._renumber()
        return True

    def incarnation(self, site: str) -> int:
        """Return how often the other end has started, as far as it is known."""
        return self._incarnation.get(site, 0)

    def has(self, payload_id: bytes, site: str) -> bool:
        """Say whether a payload has crossed a link."""
        bits = self._bitmaps.get(payload_id)
        if bits is None or site not in self._bit:
            return False
        self._bitmaps.move_to_end(payload_id)
        return bool(bits >> self._bit[site] & 1)

    def set(self, payload_id: bytes, site: str) -> None:
        """A payload has crossed a link."""
        if self.most < 1:
            return
        self.link(site, self._incarnation.get(site, 0))
        self._bitmaps[payload_id] = self._bitmaps.get(payload_id, 0) | 1 << self._bit[site]
        self._bitmaps.move_to_end(payload_id)
        while len(self._bitmaps) > self.most:
            self._bitmaps.popitem(last=False)

    def crossed_all(self, payload_id: bytes) -> bool:
        """Say whether a payload has crossed every link."""
        bits = self._bitmaps.get(payload_id, 0)
        return all(bits >> bit & 1 for bit in self._bit.values())

    def _renumber(self) -> None:
        places = {bit: i for i, bit in enumerate(sorted(self._bit.values()))}
        for key, bits in self._bitmaps.items():
            self._bitmaps[key] = sum(1 << new for old, new in places.items() if bits >> old & 1)
        self._bit = {site: places[bit] for site, bit in self._bit.items()}
        self._free = len(places)

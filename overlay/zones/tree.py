"""The tree of splits: zones of a space, named by how they were split.

Theory of operation. The whole space is the zone ``""``. A split cuts a zone in two at a value of one axis: ``0``
is the part below the value, ``1`` the rest; so the zone ``011`` was split off three times, and the zones whose
names begin with ``01`` are together what ``01`` was. Splits are only ever added, never changed or undone: a
zone's box is known from its name for ever, and a tree that has missed some splits is still right about what it
knows. That is why whoever answers for a prefix can go on answering for it whatever happens to it meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from overlay.zones.errors import CannotSplit, NoSuchZone
from rewriting.filters.region import Box

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rewriting.filters.region import Point, Region

MAX_DEPTH: Final = 120
"""How often a part of a space can be split: its prefix is part of records and frames."""


class Split(NamedTuple):
    """Where a zone was cut."""

    axis: int
    value: float


class ZoneTree:
    """The zones of a space with so many axes.

    >>> tree = ZoneTree(2)
    >>> tree.split("", Split(0, 5.0)); tree.split("1", Split(1, 3.0))
    >>> tree.leaf((7.0, 2.0)), sorted(tree.leaves())
    ('10', ['0', '10', '11'])
    """

    def __init__(self, axes: int) -> None:
        self.axes = axes
        self.splits: dict[str, Split] = {}
        self._boxes = {"": Box.whole(axes)}
        self._neighbours: dict[str, list[str]] = {}

    def box(self, prefix: str) -> Box:
        """Return the box of a zone, or of what was one before it was split."""
        try:
            return self._boxes[prefix]
        except KeyError:
            raise NoSuchZone(prefix) from None

    def knows(self, prefix: str) -> bool:
        """Say whether there is, or was, such a zone."""
        return prefix in self._boxes

    def is_leaf(self, prefix: str) -> bool:
        """Say whether a prefix is a zone now."""
        return prefix in self._boxes and prefix not in self.splits

    def split(self, prefix: str, at: Split) -> None:
        """Cut a zone in two; cutting it again in the same way changes nothing."""
        if self.splits.get(prefix) == at:
            return
        if not self.is_leaf(prefix):
            raise NoSuchZone(prefix)
        if len(prefix) >= MAX_DEPTH:
            raise CannotSplit(f"the zone {prefix} was split {MAX_DEPTH} times already")
        self._neighbours.clear()
        box = self._boxes[prefix]
        if not 0 <= at.axis < self.axes or not box.lows[at.axis] < at.value < box.highs[at.axis]:
            raise CannotSplit(f"{at} leaves an empty half of the zone {prefix!r}")
        self.splits[prefix] = at
        self._boxes[prefix + "0"], self._boxes[prefix + "1"] = box.split(at.axis, at.value)

    def leaf(self, point: Point, under: str = "") -> str:
        """Return the zone that a point lies in."""
        while (at := self.splits.get(under)) is not None:
            under += "0" if point[at.axis] < at.value else "1"
        return under

    def nearest_known(self, prefix: str) -> str:
        """Return the longest known prefix of a prefix."""
        while prefix not in self._boxes:
            prefix = prefix[:-1]
        return prefix

    def leaves(self, under: str = "") -> Iterator[str]:
        """List the zones that a prefix consists of."""
        waiting = [under]
        while waiting:
            prefix = waiting.pop()
            if prefix in self.splits:
                waiting += (prefix + "1", prefix + "0")
            else:
                yield prefix

    def meeting(self, region: Region, under: str = "") -> Iterator[str]:
        """List the zones under a prefix that meet a region, without looking at the others."""
        waiting = [under] if region.meets(self.box(under)) else []
        while waiting:
            prefix = waiting.pop()
            if prefix in self.splits:
                waiting += [part for part in (prefix + "1", prefix + "0") if region.meets(self._boxes[part])]
            else:
                yield prefix

    def entry(self, region: Region, under: str = "") -> str:
        """Return the zone under a prefix, which the region meets, that is nearest to the region's corner."""
        return self.leaf(region.entry(self.box(under)), under)

    def covers(self, done: Iterable[str], region: Region) -> list[str]:
        """List the zones that meet a region and lie under none of the prefixes that are done."""
        known = set(done)
        waiting, missing = [""], []
        while waiting:
            prefix = waiting.pop()
            if prefix in known or not region.meets(self._boxes[prefix]):
                continue
            if prefix in self.splits:
                waiting += (prefix + "1", prefix + "0")
            else:
                missing.append(prefix)
        return missing

    def neighbours(self, prefix: str) -> list[str]:
        """List the zones that share a face with a zone: they touch on one axis and overlap on all others."""
        if (known := self._neighbours.get(prefix)) is not None:
            return known
        box = self.box(prefix)
        found = []
        waiting = [""]
        while waiting:
            name = waiting.pop()
            if not _touches_or_meets(box, self._boxes[name]):
                continue
            if name in self.splits:
                waiting += (name + "1", name + "0")
            elif not name.startswith(prefix) and shares_face(box, self._boxes[name]):
                found.append(name)
        self._neighbours[prefix] = found
        return found


def shares_face(one: Box, other: Box) -> bool:
    """Say whether two boxes touch on exactly one axis, and overlap on the others."""
    touching = 0
    for low, high, begin, end in zip(one.lows, one.highs, other.lows, other.highs, strict=True):
        if high == begin or end == low:
            touching += 1
        elif high < begin or end < low:
            return False
    return touching == 1


def _touches_or_meets(one: Box, other: Box) -> bool:
    return all(
        low <= end and begin <= high
        for low, high, begin, end in zip(one.lows, one.highs, other.lows, other.highs, strict=True)
    )

"""Regions: the parts of a space that a message covers, and the boxes that zones are.

Coordinates are floats and compare exactly. A *box* is half-open, so boxes that were split from each other share no
point; the whole space is the box from -inf to +inf. A *region* is closed, since a message at one value covers the
ranges that begin or end right there; ``above`` and ``below`` turn an open end into a closed one.

Every region has a *corner* at which a message enters it, and is **closed towards it**: who walks from a point of
the region towards the corner, along one axis after the other, stays inside. That is what lets neighbours forward a
message to every zone that meets the region, once, without anybody who sees all of it
(``overlay.content.routing``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from rewriting.filters.errors import RegionError

if TYPE_CHECKING:
    from collections.abc import Sequence

Point: TypeAlias = tuple[float, ...]
MAX_CORNERS: Final = 4096
"""How many corners the quadrants of one message may have."""


def above(value: float) -> float:
    """Return the least number above a value: ``x > value`` is ``x >= above(value)``."""
    return math.nextafter(value, math.inf)


def below(value: float) -> float:
    """Return the greatest number below a value: ``x < value`` is ``x <= below(value)``."""
    return math.nextafter(value, -math.inf)


_FARTHEST: Final = below(math.inf)
"""Where a corner lies that is open: every coordinate is finite, and none lies beyond."""


@dataclass(frozen=True, slots=True)
class Box:
    """The points with ``lows[i] <= x[i] < highs[i]``.

    >>> whole = Box.whole(2)
    >>> left, right = whole.split(0, 5.0)
    >>> left.contains((4.9, 7.0)), left.contains((5.0, 7.0)), right.contains((5.0, 7.0))
    (True, False, True)
    """

    lows: Point
    highs: Point

    @classmethod
    def whole(cls, axes: int) -> Box:
        """Return the whole space."""
        return cls((-math.inf,) * axes, (math.inf,) * axes)

    def contains(self, point: Point) -> bool:
        """Say whether a point lies in it."""
        for low, x, high in zip(self.lows, point, self.highs, strict=True):
            if not low <= x < high:
                return False
        return True

    def split(self, axis: int, value: float) -> tuple[Box, Box]:
        """Cut it in two; the second half has the value itself."""
        if not self.lows[axis] < value < self.highs[axis]:
            raise RegionError(
                f"a split at {value} leaves an empty half of [{self.lows[axis]}, {self.highs[axis]})"
            )
        highs, lows = list(self.highs), list(self.lows)
        highs[axis] = lows[axis] = value
        return Box(self.lows, tuple(highs)), Box(tuple(lows), self.highs)

    def nearest(self, point: Point) -> Point:
        """Return the point of the box that is nearest to another, on every axis."""
        return tuple(
            low if x < low else x if x < high else below(high)
            for low, x, high in zip(self.lows, point, self.highs, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Rectangle:
    """The points with ``lows[i] <= x[i] <= highs[i]``; entered at ``corner``, any point of it (by default its
    lows, or highs where a low is infinite).

    >>> covered = Rectangle.north_west((4.0, 4.0))            # ranges that contain 4
    >>> covered.contains((1.0, 9.0)), covered.contains((5.0, 9.0)), covered.corner
    (True, False, (4.0, 4.0))
    """

    lows: Point
    highs: Point
    corner: Point = ()

    def __post_init__(self) -> None:
        if not self.lows or len(self.lows) != len(self.highs):
            raise RegionError("a rectangle has as many lows as highs, one at least")
        if not all(low <= high for low, high in zip(self.lows, self.highs, strict=True)):
            raise RegionError(f"the rectangle from {self.lows} to {self.highs} is empty")
        if not self.corner:
            ends = zip(self.lows, self.highs, strict=True)
            finite = (low if math.isfinite(low) else high if math.isfinite(high) else 0.0 for low, high in ends)
            object.__setattr__(self, "corner", tuple(finite))
        elif len(self.corner) != len(self.lows) or not self.contains(self.corner):
            raise RegionError(f"the corner {self.corner} is not in the rectangle")

    @classmethod
    def north_west(cls, inner: Sequence[float], outer: Sequence[float] = ()) -> Rectangle:
        """Return the ranges that contain ``inner`` and lie within ``outer``, both as low, high, low, high...

        Without ``outer`` it is one whole quadrant. It is entered at ``inner``, as in Meghdoot.
        """
        far = tuple(outer) or tuple(math.inf if i % 2 else -math.inf for i in range(len(inner)))
        if len(inner) % 2 or len(far) != len(inner):
            raise RegionError("ranges have a low and a high on every dimension")
        lows = tuple(inner[i] if i % 2 else far[i] for i in range(len(inner)))
        highs = tuple(far[i] if i % 2 else inner[i] for i in range(len(inner)))
        return cls(lows, highs, tuple(inner))

    @classmethod
    def span(cls, axes: int, axis: int, low: float, high: float) -> Rectangle:
        """Return the points whose coordinate on one axis lies in [low, high]: a range."""
        lows, highs = [-math.inf] * axes, [math.inf] * axes
        lows[axis], highs[axis] = low, high
        return cls(tuple(lows), tuple(highs))

    def contains(self, point: Point) -> bool:
        """Say whether a point lies in it."""
        for low, x, high in zip(self.lows, point, self.highs, strict=True):
            if not low <= x <= high:
                return False
        return True

    def meets(self, box: Box) -> bool:
        """Say whether some point lies in both."""
        for low, high, begin, end in zip(self.lows, self.highs, box.lows, box.highs, strict=True):
            if begin > high or end <= low:
                return False
        return True

    def entry(self, box: Box) -> Point:
        """Return the point of the box and the region that is nearest to the corner; they must meet."""
        return box.nearest(self.corner)


@dataclass(frozen=True, slots=True)
class Quadrants:
    """A union of north-west quadrants: the ranges that contain at least one of the given ones, each of them
    written low, high, low, high... It is entered at its far corner, which all the quadrants share.

    >>> stairs = Quadrants(((2.0, 3.0), (5.0, 8.0)))
    >>> stairs.contains((1.0, 4.0)), stairs.contains((4.0, 9.0)), stairs.contains((4.0, 7.0))
    (True, True, False)
    """

    corners: tuple[Point, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.corners) <= MAX_CORNERS:
            raise RegionError(f"quadrants have 1 to {MAX_CORNERS:,} corners, not {len(self.corners)}")
        axes = {len(corner) for corner in self.corners}
        if len(axes) != 1 or 0 in axes or axes.pop() % 2:
            raise RegionError("corners of quadrants are ranges: a low and a high on every dimension")

    @property
    def corner(self) -> Point:
        """Where a message enters: towards there every quadrant is open."""
        return tuple(_FARTHEST if i % 2 else -_FARTHEST for i in range(len(self.corners[0])))

    def contains(self, point: Point) -> bool:
        """Say whether a point lies in one of them."""
        return any(_is_north_west(point, corner) for corner in self.corners)

    def meets(self, box: Box) -> bool:
        """Say whether some point lies in both: then the box's own north-west end does."""
        return self.contains(box.nearest(self.corner))

    def entry(self, box: Box) -> Point:
        """Return the point of the box that is nearest to the corner."""
        return box.nearest(self.corner)


Region: TypeAlias = Rectangle | Quadrants


def _is_north_west(point: Point, corner: Point) -> bool:
    for i, (x, c) in enumerate(zip(point, corner, strict=True)):
        if x < c if i % 2 else x > c:
            return False
    return True

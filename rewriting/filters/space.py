"""Spaces: where filters are points and messages are regions.

Theory of operation (Meghdoot's map). A space names *dimensions*: attributes of messages. One that holds
ranges has two axes, the low and the high end; so a filter is the point (low, high, low, high...) of the ranges
that its conditions leave, and a message with the value v covers the ranges that contain v: low <= v <= high. One
that holds values has a single axis, for points that an application chooses itself.

The map is *safe* rather than exact: whenever a filter matches a message, its point lies in the message's region.
The rest is for the matcher of the zone's owner. For that, values map to coordinates without changing their order
(numbers as they are, within the bounds; ordered text by its first bytes) or their equality (hashed text), and
whatever does not bound the value leaves its range whole: another attribute, ``!=``, a number compared with text. A
message without the attribute, or with a value that is no number where numbers are expected, covers whole ranges
only: nothing that bounds the value can match it.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from rewriting.filters.condition import OneOf, Prefix
from rewriting.filters.disjunction import Disjunction
from rewriting.filters.errors import SpaceError
from rewriting.filters.filter import NAME_RULE, Filter, is_name
from rewriting.filters.region import Point, Rectangle
from xmlmatch.numerals import number
from xmlmatch.predicates import Operator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rewriting.filters.condition import Test
    from xmlmatch.predicates import Predicate

MAX_DIMENSIONS: Final = 8
"""Each doubles what a zone borders on: with many, let filters do the rest."""
_TEXT_BYTES: Final = 6
"""So many bytes of a text make its coordinate: as many as a float holds exactly."""
_TEXT_END: Final = float(1 << 8 * _TEXT_BYTES)


class Kind(enum.Enum):
    """What values a dimension has: numbers; text in the order of its bytes; text in no order, spread evenly."""

    NUMBER = "number"
    ORDERED = "ordered"
    HASHED = "hashed"


@dataclass(frozen=True, slots=True)
class Dimension:
    """An attribute with the bounds of its values. ``holds_ranges``: it has two axes, low and high; else one."""

    attribute: str
    kind: Kind = Kind.NUMBER
    low: float = 0.0
    high: float = 1.0
    holds_ranges: bool = True

    def __post_init__(self) -> None:
        if not is_name(self.attribute):
            raise SpaceError(f"{self.attribute!r} is no attribute name; {NAME_RULE}")
        if self.kind is not Kind.NUMBER:
            object.__setattr__(self, "low", 0.0)
            object.__setattr__(self, "high", _TEXT_END)
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise SpaceError(f"{self.attribute} needs two finite bounds, the lower one first")

    def coordinate(self, value: str) -> float | None:
        """Return where a value lies; None if it is nowhere: no number where numbers are expected.

        >>> price = Dimension("price", low=0, high=100)
        >>> price.coordinate(" 12.5 "), price.coordinate("1e9"), price.coordinate("cheap")
        (12.5, 100, None)
        """
        match self.kind:
            case Kind.NUMBER:
                found = number(value)
                return None if math.isnan(found) else min(max(found, self.low), self.high)
            case Kind.ORDERED:
                head = value.encode("utf-8", "surrogatepass")[:_TEXT_BYTES]
                return float(int.from_bytes(head.ljust(_TEXT_BYTES, b"\0")))
            case Kind.HASHED:
                text = value.encode("utf-8", "surrogatepass")
                return float(int.from_bytes(blake2b(text, digest_size=_TEXT_BYTES).digest()))

    def bounds(self, test: Test) -> tuple[float, float]:
        """Return a range that holds the coordinates of all values that satisfy a test, where they have one.

        >>> Dimension("price", low=0, high=100).bounds(OneOf((20.0, 50.0)))
        (20.0, 50.0)
        """
        if isinstance(test, OneOf):
            ranges = [self._compared(predicate) for predicate in test.equalities()]
            return min(low for low, _ in ranges), max(high for _, high in ranges)
        if isinstance(test, Prefix):
            if self.kind is not Kind.ORDERED:
                return self.low, self.high
            head = test.beginning.encode("utf-8", "surrogatepass")[:_TEXT_BYTES]
            first, last = head.ljust(_TEXT_BYTES, b"\0"), head.ljust(_TEXT_BYTES, b"\xff")
            return float(int.from_bytes(first)), float(int.from_bytes(last))
        return self._compared(test)

    def _compared(self, predicate: Predicate) -> tuple[float, float]:
        constant, operator = predicate.constant, predicate.operator
        if operator is Operator.NE:
            return self.low, self.high
        if isinstance(constant, str):  # it compares by = then: the value is this very text
            here = self.coordinate(constant)
            return (self.low, self.high) if here is None else (here, here)
        if self.kind is not Kind.NUMBER:  # texts that are numbers lie anywhere
            return self.low, self.high
        at = min(max(constant, self.low), self.high)
        match operator:
            case Operator.EQ:
                return at, at
            case Operator.LT | Operator.LE:
                return self.low, at
            case Operator.GT | Operator.GE:
                return at, self.high


@dataclass(frozen=True, slots=True)
class Space:
    """Named dimensions, in order.

    >>> space = Space("market", (Dimension("price", low=0, high=100),))
    >>> space.point(Filter.parse("price > 20 and price < 50 and topic = 'sport'"))
    (20.0, 50.0)
    >>> region = space.region({"price": "30"})
    >>> region.contains((20.0, 50.0)), region.contains((40.0, 50.0))
    (True, False)
    """

    name: str
    dimensions: tuple[Dimension, ...]

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise SpaceError(f"{self.name!r} is no name of a space; {NAME_RULE}")
        if not 1 <= len(self.dimensions) <= MAX_DIMENSIONS:
            raise SpaceError(f"a space has 1 to {MAX_DIMENSIONS} dimensions, not {len(self.dimensions)}")
        names = [one.attribute for one in self.dimensions]
        if len(set(names)) != len(names):
            raise SpaceError("a dimension is declared twice")

    @property
    def axes(self) -> int:
        """How many coordinates a point has."""
        return sum(2 if one.holds_ranges else 1 for one in self.dimensions)

    def check(self, point: Point) -> None:
        """Raise ``SpaceError`` if this is no point of the space."""
        if len(point) != self.axes:
            raise SpaceError(f"a point of {self.name} has {self.axes} coordinates, not {len(point)}")
        if not all(map(math.isfinite, point)):
            raise SpaceError(f"the point {point} is not finite")

    def point(self, wanted: Filter | Disjunction) -> Point:
        """Return a filter's point; ``SpaceError`` if the space is for chosen points alone.

        Of several filters joined by ``or`` it is the point of ranges that hold all of theirs.
        """
        self._check_ranges()
        if isinstance(wanted, Disjunction):
            points = [self.point(one) for one in wanted.filters]
            return tuple((max if i % 2 else min)(xs) for i, xs in enumerate(zip(*points, strict=True)))
        coordinates: list[float] = []
        for dimension in self.dimensions:
            low, high = dimension.low, dimension.high
            for condition in wanted.conditions:
                if condition.attribute == dimension.attribute:
                    begin, end = dimension.bounds(condition.predicate)
                    low, high = max(low, begin), min(high, end)
            # A filter that nothing satisfies may have its ends crossed: then no message reaches it, rightly.
            coordinates += (low, high)
        return tuple(coordinates)

    def region(self, message: Mapping[str, str]) -> Rectangle:
        """Return what a message covers: the points of all filters that can match it."""
        self._check_ranges()
        inner: list[float] = []
        for dimension in self.dimensions:
            value = message.get(dimension.attribute)
            at = None if value is None else dimension.coordinate(value)
            inner += (dimension.low, dimension.high) if at is None else (at, at)
        return Rectangle.north_west(inner)

    def _check_ranges(self) -> None:
        for dimension in self.dimensions:
            if not dimension.holds_ranges:
                raise SpaceError(f"{self.name}: {dimension.attribute} holds values, so filters have no point here")

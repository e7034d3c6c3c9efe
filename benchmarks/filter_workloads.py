"""Subscriptions and events in the manner of Fabret et al.: attributes with uniform values, drawn from a seed.

Each workload makes batches for a matcher, the same as plain arrays for a scan, and events. Half of the events hold
what one of the subscriptions asks for: otherwise hardly any would match.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np

from overlay.matching import Batch, codes
from rewriting.filters import Condition, Filter, Operator, Predicate

VALUES = 35
"""Values of an attribute, as in the paper."""
RANGE_VALUES = 1_000
_OPERATORS = {codes.EQ: Operator.EQ, codes.LE: Operator.LE, codes.GE: Operator.GE}


@dataclass(frozen=True)
class Workload:
    """``fixed`` attributes stand in every subscription, the others are drawn among ``names``."""

    name: str
    attributes: int = 32
    predicates: int = 5
    fixed: int = 2
    operators: tuple[int, ...] = (codes.EQ,) * 5
    first: int = 0
    """The first of the attributes that are drawn, fixed ones included: to change the schema."""
    among: int = 32
    skewed: int = 0
    """So many attributes have two values only."""

    def draw(self, rng, count):
        """Draw subscriptions: attributes and values, a row each."""
        sets = np.array(list(combinations(range(self.fixed, self.among), self.predicates - self.fixed)), np.int32)
        free = sets[rng.integers(0, len(sets), count)]
        fixed = np.broadcast_to(np.arange(self.fixed, dtype=np.int32), (count, self.fixed))
        attributes = np.concatenate([fixed, free], axis=1) + self.first
        values = rng.integers(1, VALUES + 1, (count, self.predicates))
        few = rng.integers(1, 3, values.shape)
        return attributes, np.where(attributes - self.first < self.skewed, few, values)

    def batch(self, drawn):
        attributes, values = drawn
        count = len(attributes)
        operators = np.tile(np.array(self.operators, np.uint8), count)
        return Batch(
            np.arange(0, count * self.predicates + 1, self.predicates),
            attributes.ravel(),
            operators,
            values.ravel(),
        )

    def filters(self, drawn):
        """Make the same subscriptions one by one."""
        return [_filter(self.operators, *row) for row in zip(*drawn, strict=True)]

    def events(self, rng, count, drawn):
        """Draw events with all attributes."""
        made = []
        values = rng.integers(1, VALUES + 1, (count, self.attributes))
        few = rng.integers(1, 3, values.shape)
        own = np.arange(self.attributes) - self.first
        values = np.where((own >= 0) & (own < self.skewed), few, values)
        for i, row in enumerate(values.tolist()):
            if i % 2 and drawn is not None:
                subscription = rng.integers(0, len(drawn[0]))
                for attribute, value in zip(drawn[0][subscription], drawn[1][subscription], strict=True):
                    row[attribute] = int(value)
            made.append({f"a{j}": value for j, value in enumerate(row)})
        return made


@dataclass(frozen=True)
class Ranges:
    """Subscriptions that ask for ranges alone, on ten of twenty attributes."""

    name: str = "ranges"
    attributes: int = 20
    ranges: int = 10
    distinct: bool = False
    """Whether hardly any two bounds are the same number."""

    def numbers(self, rng, shape):
        if self.distinct:
            return 1 + (RANGE_VALUES - 1) * rng.random(shape)
        return rng.integers(1, RANGE_VALUES + 1, shape)

    def draw(self, rng, count):
        attributes = np.argsort(rng.random((count, self.attributes)), axis=1)[:, : self.ranges]
        ends = np.sort(self.numbers(rng, (count, self.ranges, 2)), axis=2)
        return attributes.astype(np.int32), ends

    def batch(self, drawn):
        attributes, ends = drawn
        count = len(attributes)
        operators = np.tile(np.array([codes.GE, codes.LE], np.uint8), count * self.ranges)
        size = 2 * self.ranges
        return Batch(
            np.arange(0, count * size + 1, size), np.repeat(attributes, 2, axis=1).ravel(), operators, ends.ravel()
        )

    def filters(self, drawn):
        operators = (codes.GE, codes.LE) * self.ranges
        attributes, ends = drawn
        return [_filter(operators, a, e) for a, e in zip(np.repeat(attributes, 2, axis=1), ends, strict=True)]

    def events(self, rng, count, drawn):
        values = self.numbers(rng, (count, self.attributes))
        for i in range(1, count, 2):
            subscription = rng.integers(0, len(drawn[0]))
            values[i, drawn[0][subscription]] = drawn[1][subscription].mean(axis=1)
        return [{f"a{j}": value for j, value in enumerate(row)} for row in values.tolist()]


def _filter(operators, attributes, values):
    asked = zip(operators, attributes.tolist(), values.ravel().tolist(), strict=True)
    return Filter(tuple(_condition(*one) for one in asked))


@cache
def _condition(operator, attribute, value):
    return Condition(f"a{attribute}", Predicate(_OPERATORS[operator], float(value)))


class Scan:
    """The rival: all subscriptions as arrays by attribute, compared by NumPy at once."""

    def __init__(self, workload, drawn):
        attributes, values = drawn
        count, self._names = len(attributes), [f"a{j}" for j in range(workload.attributes)]
        kind = np.uint8 if isinstance(workload, Workload) else np.float64 if workload.distinct else np.int16
        most = RANGE_VALUES if isinstance(workload, Ranges) else np.iinfo(kind).max
        self._low = np.zeros((workload.attributes, count), kind)
        self._high = np.full((workload.attributes, count), most, kind)
        rows = np.arange(count)
        for j in range(attributes.shape[1]):
            if isinstance(workload, Ranges):
                low, high = values[:, j, 0], values[:, j, 1]
            else:
                low = high = values[:, j]
                if workload.operators[j] == codes.LE:
                    low = 0
                elif workload.operators[j] == codes.GE:
                    high = most
            self._low[attributes[:, j], rows] = low
            self._high[attributes[:, j], rows] = high

    @property
    def size_bytes(self):
        return self._low.nbytes + self._high.nbytes

    def match(self, event):
        left = np.ones(self._low.shape[1], bool)
        for low, high, name in zip(self._low, self._high, self._names, strict=True):
            left &= (low <= event[name]) & (event[name] <= high)
        return np.flatnonzero(left)

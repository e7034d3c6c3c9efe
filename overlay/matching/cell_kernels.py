"""Cells: how an event leads to conjunctions that ask for ranges alone.

A conjunction without equality, ``in`` or prefix would be looked at for every event. If it bounds an attribute from
both sides, it gets one more predicate, which hashing finds: its range begins in this cell. Cells of *level* i are
``2**i`` wide; on the level that is taken, the range touches no more than two cells, the one where it begins and
the next. So all values of the range lie in these two, and an event, which looks at the cell of its value and the
one before, comes past every range that holds the value, and past few others. Of several ranges the one that events
come past least often is taken.

Nothing here needs exact arithmetic: a larger number is never in an earlier cell, and that is all it rests on.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from overlay.matching.codes import GE, GT, LE, LT, REACHED
from overlay.matching.kernels import kernel
from overlay.matching.predicate_fields import ATTRIBUTE, GREATEST, LEAST, OPERATOR

if TYPE_CHECKING:
    from overlay.matching.predicate_fields import Predicates

LOWEST: Final = -24
"""The level of the narrowest cells: narrower ranges stand in these."""
LEVELS: Final = 64
_SCALES: Final = 2.0 ** -np.arange(LOWEST, LOWEST + LEVELS)
_FARTHEST: Final = 2.0**39
"""Cells are counted from 0 up to here, both ways: so their numbers and levels fit a double."""
_WIDEST: Final = 2.0 ** (LOWEST + LEVELS - 1)
_FINEST: Final = 0.05
"""The share of events that come past the narrowest cells; to look into more of them takes longer than it saves."""
_UNLIKELY: Final = 0.5
"""A cell that more events come past is not worth it."""


@kernel
def cell_index(number: float, level: int) -> Any:
    """Return in which cell of a level, counted from the lowest, a number lies; infinite if there is none."""
    if abs(number) > 2 * _FARTHEST / _SCALES[level]:
        return np.inf
    return np.floor(number * _SCALES[level])


@kernel
def cell_value(index: float, level: int) -> float:
    """Return the one number by which a cell is known."""
    return index * LEVELS + level


@kernel
def level_of(value: float) -> int:
    """Return the level of a cell from its number."""
    return int(value - LEVELS * np.floor(value / LEVELS))


@kernel
def cell_share(p: Predicates, attribute: int, level: int) -> Any:
    """Guess the share of events that come past a cell: as if values were spread evenly over all constants."""
    half = p.spans[attribute, GREATEST] / 2 - p.spans[attribute, LEAST] / 2  # the whole may be infinite
    if half <= 0:
        return 1.0
    return min(1.0, 1.0 / _SCALES[level] / half)


@kernel
def level_for(low: float, high: float) -> int:
    """Return the level for a range, or -1 if none will do."""
    level = 0
    if high / 2 - low / 2 > _WIDEST / 2:
        return -1
    if high > low:
        level = max(0, math.frexp(high - low)[1] - 1 - LOWEST)
    while level < LEVELS:
        first = cell_index(low, level)
        if abs(first) < _FARTHEST and cell_index(high, level) - first <= 1:
            return level
        level += 1
    return -1


@kernel
def cell_of(p: Predicates, attribute: int, low: float, level: int) -> float:
    """Return the number of the cell in which a range begins, on a level that is not too fine."""
    while level < LEVELS - 1 and cell_share(p, attribute, level) < _FINEST:
        level += 1
    return cell_value(cell_index(low, level), level)


@kernel
def choose_cell(p: Predicates, numbers: Any, begin: int, end: int) -> tuple[int, float]:
    """Return attribute and number of the best cell for some predicates; -1 if one is reached, or there is none."""
    best, value, least = -1, 0.0, _UNLIKELY
    for i in range(begin, end):
        operator, attribute = p.records[numbers[i], OPERATOR], p.records[numbers[i], ATTRIBUTE]
        if operator <= REACHED:
            return -1, 0.0
        if operator in (GE, GT):
            for j in range(begin, end):
                other = p.records[numbers[j], OPERATOR]
                if p.records[numbers[j], ATTRIBUTE] == attribute and other in (LE, LT):
                    low = p.values[numbers[i]]
                    level = level_for(low, p.values[numbers[j]])
                    if level >= 0 and cell_share(p, attribute, level) < least:
                        best, least = attribute, cell_share(p, attribute, level)
                        value = cell_of(p, attribute, low, level)
    return best, value

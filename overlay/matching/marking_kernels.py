"""Which predicates an event satisfies: the first of two phases.

What is reached is found by hashing what the event holds. Lists of inequalities are sorted, so a search finds which
of them hold, and these are marked one by one; but a list with very many constants would take longer to mark than
to compare the few that somebody asks for. Its entries say ``ASK`` instead, and ``holds`` compares.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from overlay.matching.cell_kernels import LEVELS, cell_index, cell_value
from overlay.matching.codes import CELL, EQ, EQ_TEXT, GE, GT, LE, LISTS, LT, NE, NE_TEXT, PREFIX, PRESENT
from overlay.matching.kernels import kernel
from overlay.matching.predicate_fields import (
    ALL_CELLS,
    ALSO,
    ASK,
    ASKED,
    ATTRIBUTE,
    CELLS,
    COUNT,
    EVENTS,
    LEVEL,
    NOW,
    OFFSET,
    OPERATOR,
    SORTED,
)
from overlay.matching.predicate_kernels import find

if TYPE_CHECKING:
    from overlay.matching.predicate_fields import Predicates


@kernel
def _compare(operator: int, value: float, constant: float) -> bool:
    if operator == LT:
        return value < constant
    if operator == LE:
        return value <= constant
    if operator == GT:
        return value > constant
    return value >= constant


@kernel
def compare_now(p: Predicates, at: int) -> bool:
    """Compare what the event at hand has with the constant of an inequality."""
    return _compare(p.records[at, OPERATOR], p.spans[p.records[at, ATTRIBUTE], NOW], p.values[at])


@kernel
def holds(p: Predicates, at: int) -> Any:
    """Say whether the event at hand satisfies a predicate."""
    if p.satisfied[at] == ASK:
        return compare_now(p, at)
    return p.satisfied[at] != 0


@kernel
def _mark_inequalities(p: Predicates, place: int, operator: int, value: float, mark: int) -> None:
    offset, count, limit = p.lists[place, OFFSET], p.lists[place, COUNT], p.lists[place, SORTED]
    low, high = 0, limit  # the first constant above the value, or not below it
    above = operator in (LT, GE)
    while low < high:
        middle = (low + high) // 2
        constant = p.values[p.arena.data[offset + middle]]
        if constant < value or (above and constant == value):
            low = middle + 1
        else:
            high = middle
    first, last = (low, limit) if operator in (LT, LE) else (0, low)
    for i in range(offset + first, offset + last):
        p.satisfied[p.arena.data[i]] = mark
    for i in range(offset + limit, offset + count):
        at = p.arena.data[i]
        if _compare(operator, value, p.values[at]):
            p.satisfied[at] = mark


@kernel
def _mark_list(p: Predicates, place: int, mark: int) -> None:
    for i in range(p.lists[place, OFFSET], p.lists[place, OFFSET] + p.lists[place, COUNT]):
        p.satisfied[p.arena.data[i]] = mark


@kernel
def _unmark_equal(p: Predicates, attribute: int, operator: int, value: float) -> None:
    at = find(p, attribute, operator, value)
    if at >= 0:
        p.satisfied[at] = 0


@kernel
def mark_lists(p: Predicates, attribute: int, number: float, text: int, mark: int) -> None:
    """Mark the predicates in lists that an attribute's value satisfies (1), or unmark them (0)."""
    for operator in range(LT, PRESENT + 1):
        place = attribute * LISTS + operator - LT
        if p.lists[place, COUNT] > 0:
            if operator <= GE:
                if number == number and p.lists[place, ASKED] == 0:  # not NaN
                    _mark_inequalities(p, place, operator, number, mark)
            else:
                _mark_list(p, place, mark)
                if operator == NE:
                    _unmark_equal(p, attribute, NE, number + 0.0)  # -0 equals 0
                elif operator == NE_TEXT:
                    _unmark_equal(p, attribute, NE_TEXT, float(text))


@kernel
def _reach(p: Predicates, at: int, reached: Any, count: int) -> int:
    """Mark a reached predicate and each ``in`` behind it."""
    p.satisfied[at] = 1
    p.hits[at] += 1
    reached[count] = at
    count += 1
    link = p.records[at, ALSO]
    while link >= 0:
        behind = p.links[link, 0]
        if p.satisfied[behind] == 0:  # several constants of one ``in`` can hold: '5' and 5
            p.satisfied[behind] = 1
            p.hits[behind] += 1
            reached[count] = behind
            count += 1
        link = p.links[link, 1]
    return count


@kernel
def _reach_cells(p: Predicates, attributes: Any, numbers: Any, reached: Any, count: int) -> int:
    """Mark the cells where a range may begin that holds what the event has."""
    for i in range(len(attributes)):
        if numbers[i] == numbers[i] and p.kinds[attributes[i], ALL_CELLS] > 0:
            for level in range(LEVELS):
                if p.kinds[attributes[i], LEVEL + level] > 0:
                    index = cell_index(numbers[i], level)
                    if not math.isinf(index):
                        for begin in (index - 1, index):
                            at = find(p, attributes[i], CELL, cell_value(begin, level))
                            if at >= 0:
                                count = _reach(p, at, reached, count)
    return count


@kernel
def satisfy(p: Predicates, attributes: Any, numbers: Any, texts: Any, prefixes: Any, reached: Any) -> int:
    """Mark all that an event satisfies; return how many are reached.

    Their numbers stand in ``reached``, which has room for two per attribute, the prefixes, every ``in`` and cells.
    """
    count = 0
    for i in range(len(attributes)):
        attribute = attributes[i]
        p.spans[attribute, NOW] = numbers[i]
        mark_lists(p, attribute, numbers[i], texts[i], 1)
        if numbers[i] == numbers[i]:
            at = find(p, attribute, EQ, numbers[i] + 0.0)  # -0 equals 0
            if at >= 0:
                count = _reach(p, at, reached, count)
        if texts[i] >= 0:
            at = find(p, attribute, EQ_TEXT, float(texts[i]))
            if at >= 0:
                count = _reach(p, at, reached, count)
    for i in range(len(prefixes)):
        at = find(p, prefixes[i, 0], PREFIX, float(prefixes[i, 1]))
        if at >= 0:
            count = _reach(p, at, reached, count)
    if p.counters[CELLS] > 0:
        count = _reach_cells(p, attributes, numbers, reached, count)
    p.counters[EVENTS] += 1
    return count


@kernel
def unmark(p: Predicates, attributes: Any, numbers: Any, texts: Any, reached: Any, count: int) -> None:
    """Undo ``satisfy``."""
    for i in range(len(attributes)):
        p.spans[attributes[i], NOW] = np.nan
        mark_lists(p, attributes[i], numbers[i], texts[i], 0)
    for i in range(count):
        p.satisfied[reached[i]] = 0

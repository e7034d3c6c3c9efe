"""Distinct predicates, numbered.

Each distinct (attribute, operator, value) has one number and one entry in ``satisfied``, the paper's bit vector (a
byte each: bytes need no masking). Hashing finds it. Equalities, ``in`` and prefixes are *reached* by hashing what
the event holds; an ``in`` hangs in a chain behind each equality it is made of. The rest stand in lists by
attribute and operator. A list of inequalities is sorted by constant up to ``SORTED`` and unsorted behind; it is
sorted anew when the unsorted part has grown to an eighth. An inequality nobody asks any more stays until then, and
may come back. A list of more than ``MANY`` is not sorted: its entries are compared when somebody asks
(``marking_kernels``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from overlay.matching.arena import block_class, free_block, take_block
from overlay.matching.cell_kernels import choose_cell, level_of
from overlay.matching.codes import CELL, EQ_TEXT, GE, IN, LISTS, LT, NE_TEXT, PREFIX
from overlay.matching.kernels import hashed, kernel
from overlay.matching.predicate_fields import (
    ACCESS,
    ALL_CELLS,
    ALSO,
    ASK,
    ASKED,
    ATTRIBUTE,
    CELLS,
    CLASS,
    COUNT,
    FREE,
    GREATEST,
    IDLE,
    LEAST,
    LEVEL,
    LIVE,
    NEXT,
    OFFSET,
    OPERATOR,
    PLACE,
    SORTED,
    USED,
    USES,
)

if TYPE_CHECKING:
    from overlay.matching.predicate_fields import Predicates

_SLACK: Final = 32
MANY: Final = 2_048
"""Constants in a list from which on they are compared when asked."""


@kernel
def _bucket(buckets: Any, attribute: int, operator: int, value: float) -> int:
    bits: Any = np.float64(value).view(np.int64)
    return hashed(attribute * 16 + operator, bits ^ (bits >> 32)) & (len(buckets) - 1)


@kernel
def find(p: Predicates, attribute: int, operator: int, value: float) -> Any:
    """Return the number of a predicate, or -1."""
    at = p.buckets[_bucket(p.buckets, attribute, operator, value)]
    while at >= 0:
        if p.values[at] == value and p.records[at, ATTRIBUTE] == attribute and p.records[at, OPERATOR] == operator:
            return at
        at = p.records[at, NEXT]
    return -1


@kernel
def rehash(p: Predicates) -> None:
    """Fill empty buckets."""
    for at in range(p.counters[USED]):
        if p.records[at, ATTRIBUTE] >= 0:
            bucket = _bucket(p.buckets, p.records[at, ATTRIBUTE], p.records[at, OPERATOR], p.values[at])
            p.records[at, NEXT] = p.buckets[bucket]
            p.buckets[bucket] = at


@kernel
def _count_cell(p: Predicates, attribute: int, value: float, change: int) -> None:
    p.kinds[attribute, LEVEL + level_of(value)] += change
    p.kinds[attribute, ALL_CELLS] += change
    p.counters[CELLS] += change


@kernel
def intern(p: Predicates, attribute: int, operator: int, value: float) -> tuple[int, bool]:
    """Return the number of a predicate, used once more, and whether it is new; its list must have room."""
    at = find(p, attribute, operator, value)
    if at >= 0:
        if p.records[at, USES] == 0:
            p.lists[attribute * LISTS + operator - LT, IDLE] -= 1
        p.records[at, USES] += 1
        return at, False
    at = p.counters[FREE]
    if at >= 0:
        p.counters[FREE] = p.records[at, NEXT]
    else:
        at = p.counters[USED]
        p.counters[USED] += 1
    p.counters[LIVE] += 1
    if operator <= EQ_TEXT:
        p.kinds[attribute, operator] += 1
    elif operator == CELL:
        _count_cell(p, attribute, value, 1)
    elif LT <= operator <= GE:
        p.spans[attribute, LEAST] = min(p.spans[attribute, LEAST], value)
        p.spans[attribute, GREATEST] = max(p.spans[attribute, GREATEST], value)
    record = p.records[at]
    record[ATTRIBUTE], record[OPERATOR], record[USES] = attribute, operator, 1
    record[ALSO] = record[ACCESS] = -1
    p.values[at] = value
    p.hits[at] = 0
    p.satisfied[at] = 0
    bucket = _bucket(p.buckets, attribute, operator, value)
    record[NEXT] = p.buckets[bucket]
    p.buckets[bucket] = at
    if operator >= LT:
        entry = p.lists[attribute * LISTS + operator - LT]
        p.arena.data[entry[OFFSET] + entry[COUNT]] = at
        record[PLACE] = entry[COUNT]
        entry[COUNT] += 1
        p.satisfied[at] = ASK * entry[ASKED]
    return at, True


@kernel
def release(p: Predicates, at: int) -> bool:
    """Use a predicate once less; say whether it is gone (its record stays readable until the next is made)."""
    record = p.records[at]
    record[USES] -= 1
    if record[USES] > 0:
        return False
    operator = record[OPERATOR]
    if operator >= LT:
        entry = p.lists[record[ATTRIBUTE] * LISTS + operator - LT]
        if operator <= GE:
            entry[IDLE] += 1
            return False
        entry[COUNT] -= 1
        last = p.arena.data[entry[OFFSET] + entry[COUNT]]
        p.arena.data[entry[OFFSET] + record[PLACE]] = last
        p.records[last, PLACE] = record[PLACE]
    _forget(p, at)
    return True


@kernel
def _forget(p: Predicates, at: int) -> None:
    """Take a predicate out of its bucket and keep its number for another."""
    record = p.records[at]
    if record[OPERATOR] <= EQ_TEXT:
        p.kinds[record[ATTRIBUTE], record[OPERATOR]] -= 1
    elif record[OPERATOR] == CELL:
        _count_cell(p, record[ATTRIBUTE], p.values[at], -1)
    bucket = _bucket(p.buckets, record[ATTRIBUTE], record[OPERATOR], p.values[at])
    before, here = -1, p.buckets[bucket]
    while here != at:
        before, here = here, p.records[here, NEXT]
    if before < 0:
        p.buckets[bucket] = record[NEXT]
    else:
        p.records[before, NEXT] = record[NEXT]
    record[NEXT] = p.counters[FREE]
    record[ATTRIBUTE] = -1 - record[ATTRIBUTE]  # negative: not in use
    p.counters[FREE] = at
    p.counters[LIVE] -= 1


@kernel
def _make_room(p: Predicates, place: int, more: int) -> bool:
    """Make sure that a list takes some more, or return False; sort it if it is time to."""
    entry = p.lists[place]
    if entry[OFFSET] < 0:
        offset = take_block(p.arena, 3)
        if offset < 0:
            return False
        entry[OFFSET], entry[CLASS] = offset, 3
    if place % LISTS <= GE - LT:
        if entry[COUNT] - entry[SORTED] > _SLACK + entry[SORTED] // 8 or entry[IDLE] > _SLACK + entry[COUNT] // 4:
            _sort_list(p, place)
    if entry[COUNT] + more > 1 << entry[CLASS]:
        wanted = block_class(entry[COUNT] + more)
        offset = take_block(p.arena, wanted)
        if offset < 0:
            return False
        for i in range(entry[COUNT]):
            p.arena.data[offset + i] = p.arena.data[entry[OFFSET] + i]
        free_block(p.arena, entry[OFFSET], entry[CLASS])
        entry[OFFSET], entry[CLASS] = offset, wanted
    return True


@kernel
def _sort_list(p: Predicates, place: int) -> None:
    """Drop inequalities that nobody asks; sort the others by constant, or have them compared if they are many."""
    entry = p.lists[place]
    offset, kept = entry[OFFSET], 0
    for i in range(entry[COUNT]):
        at = p.arena.data[offset + i]
        if p.records[at, USES] > 0:
            p.arena.data[offset + kept] = at
            kept += 1
        else:
            _forget(p, at)
    entry[SORTED] = entry[COUNT] = kept
    entry[IDLE] = 0
    asked = int(kept > (MANY // 2 if entry[ASKED] else MANY))
    if asked != entry[ASKED]:
        entry[ASKED] = asked
        for i in range(kept):
            p.satisfied[p.arena.data[offset + i]] = ASK * asked
    if asked:
        return
    numbers = p.arena.data[offset : offset + kept].copy()
    constants = np.empty(kept, np.float64)
    for i in range(kept):
        constants[i] = p.values[numbers[i]]
    order = np.argsort(constants)
    for i in range(kept):
        p.arena.data[offset + i] = numbers[order[i]]


@kernel
def has_name(operator: int) -> bool:
    """Say whether a predicate's value is the number of something in the vocabulary."""
    return operator in (EQ_TEXT, NE_TEXT, PREFIX, IN)


@kernel
def release_all(p: Predicates, numbers: Any, changed: Any) -> int:
    """Use predicates once less; ``changed`` gets those that are gone and whose values are texts or lists."""
    altered = 0
    for at in numbers:
        if release(p, at) and has_name(p.records[at, OPERATOR]):
            changed[altered] = at
            altered += 1
    return altered


@kernel
def intern_all(
    p: Predicates, offsets: Any, attributes: Any, operators: Any, values: Any, start: int, numbers: Any, ends: Any,
    changed: Any,
) -> tuple[int, int, int]:  # fmt: skip
    """Number the predicates of conjunctions from ``start`` on, each once per conjunction, and a cell if need be.

    ``ends[i]`` becomes where those of conjunction i end in ``numbers``; ``changed`` gets the new predicates whose
    values are texts or lists. Returns how many conjunctions are done (fewer if there is no room), and how much is
    in both arrays.
    """
    filled = ends[start - 1] if start > 0 else 0
    altered = 0
    for i in range(start, len(offsets) - 1):
        if p.counters[USED] + offsets[i + 1] - offsets[i] + 1 > len(p.records):
            return i, filled, altered
        for j in range(offsets[i], offsets[i + 1]):
            if operators[j] >= LT:
                if not _make_room(p, attributes[j] * LISTS + operators[j] - LT, offsets[i + 1] - offsets[i]):
                    return i, filled, altered
        begin = filled
        for j in range(offsets[i], offsets[i + 1]):
            at, new = intern(p, attributes[j], operators[j], values[j] + 0.0)
            double = False
            for k in range(begin, filled):
                double |= numbers[k] == at
            if double:
                p.records[at, USES] -= 1
            else:
                numbers[filled] = at
                filled += 1
            if new and has_name(operators[j]):
                changed[altered] = at
                altered += 1
        attribute, value = choose_cell(p, numbers, begin, filled)
        if attribute >= 0:
            numbers[filled], _ = intern(p, attribute, CELL, value)
            filled += 1
        ends[i] = filled
    return len(offsets) - 1, filled, altered

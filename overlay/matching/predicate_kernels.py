"""Distinct predicates, numbered, and which of them an event satisfies: the first of two phases.

Each distinct (attribute, operator, value) has one number and one entry in ``satisfied``, the paper's bit vector (a
byte each: bytes need no masking). Hashing finds it. Equalities, ``in`` and prefixes are *reached* by hashing what
the event holds; an ``in`` hangs in a chain behind each equality it is made of. The rest stand in lists by
attribute and operator. A list of inequalities is sorted by constant up to ``SORTED`` and unsorted behind; it is
sorted anew when the unsorted part has grown to an eighth. An inequality nobody asks any more stays until then, and
may come back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from overlay.matching.arena import Arena, block_class, free_block, take_block
from overlay.matching.codes import EQ, EQ_TEXT, GE, GT, IN, LE, LISTS, LT, NE, NE_TEXT, PREFIX, PRESENT
from overlay.matching.kernels import hashed, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Fields of a predicate.
ATTRIBUTE: Final = 0
OPERATOR: Final = 1
USES: Final = 2
NEXT: Final = 3  # in its bucket, or among the free
PLACE: Final = 4  # in its list
ALSO: Final = 5  # of an equality: the first link to an ``in``
ACCESS: Final = 6  # the access predicate that is this one alone
FIELDS: Final = 8
# Fields of a list.
OFFSET: Final = 0
CLASS: Final = 1
SORTED: Final = 2
COUNT: Final = 3
IDLE: Final = 4
# Counters.
USED: Final = 0
FREE: Final = 1
EVENTS: Final = 2
LIVE: Final = 3
_SLACK: Final = 32


class Predicates(NamedTuple):
    """The arrays of an index."""

    records: NDArray[np.int32]
    values: NDArray[np.float64]
    satisfied: NDArray[np.uint8]
    hits: NDArray[np.int32]
    """How often each reached predicate was satisfied lately."""
    buckets: NDArray[np.int32]
    lists: NDArray[np.int32]
    links: NDArray[np.int32]
    """Pairs: an ``in``, and the next link behind the same equality."""
    arena: Arena
    counters: NDArray[np.int64]
    kinds: NDArray[np.int32]
    """Per attribute: how many numbers and how many texts equalities mention."""
    spans: NDArray[np.float64]
    """Per attribute: the least and the greatest number among constants."""


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
    elif LT <= operator <= GE:
        p.spans[attribute, 0] = min(p.spans[attribute, 0], value)
        p.spans[attribute, 1] = max(p.spans[attribute, 1], value)
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
    """Drop inequalities that nobody asks and sort the others by constant."""
    entry = p.lists[place]
    offset, kept = entry[OFFSET], 0
    for i in range(entry[COUNT]):
        at = p.arena.data[offset + i]
        if p.records[at, USES] > 0:
            p.arena.data[offset + kept] = at
            kept += 1
        else:
            _forget(p, at)
    numbers = p.arena.data[offset : offset + kept].copy()
    constants = np.empty(kept, np.float64)
    for i in range(kept):
        constants[i] = p.values[numbers[i]]
    order = np.argsort(constants)
    for i in range(kept):
        p.arena.data[offset + i] = numbers[order[i]]
        p.records[numbers[order[i]], PLACE] = i
    entry[SORTED] = entry[COUNT] = kept
    entry[IDLE] = 0


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
                if number == number:  # not NaN
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
def satisfy(p: Predicates, attributes: Any, numbers: Any, texts: Any, prefixes: Any, reached: Any) -> int:
    """Mark all that an event satisfies; return how many are reached.

    Their numbers stand in ``reached``, which has room for two per attribute, the prefixes and every ``in``.
    """
    count = 0
    for i in range(len(attributes)):
        attribute = attributes[i]
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
    p.counters[EVENTS] += 1
    return count


@kernel
def unmark(p: Predicates, attributes: Any, numbers: Any, texts: Any, reached: Any, count: int) -> None:
    """Undo ``satisfy``."""
    for i in range(len(attributes)):
        mark_lists(p, attributes[i], numbers[i], texts[i], 0)
    for i in range(count):
        p.satisfied[reached[i]] = 0


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
    """Number the predicates of conjunctions from ``start`` on, each once per conjunction.

    ``ends[i]`` becomes where those of conjunction i end in ``numbers``; ``changed`` gets the new predicates whose
    values are texts or lists. Returns how many conjunctions are done (fewer if there is no room), and how much is
    in both arrays.
    """
    filled = ends[start - 1] if start > 0 else 0
    altered = 0
    for i in range(start, len(offsets) - 1):
        if p.counters[USED] + offsets[i + 1] - offsets[i] > len(p.records):
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
        ends[i] = filled
    return len(offsets) - 1, filled, altered

"""Tables: which sets of attributes have access predicates of several equalities, and the best one for a row.

A *slot* is an attribute and whether it compares with a number or a text: an event satisfies at most one equality
per slot. A *schema* is a set of two to four slots; where it has a table, a row with equalities on all of them can
hang on these together. The best access predicate is the one that an event satisfies least often.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from overlay.matching.cluster_kernels import (
    HEAD,
    NO_ACCESS,
    WIDTH,
    Clusters,
    access_of,
    check_access,
    cluster_of,
    find_access,
    forget_access,
    has_room,
    put_row,
    read_row,
    vacate,
)
from overlay.matching.codes import EQ_TEXT, REACHED
from overlay.matching.kernels import hashed, kernel
from overlay.matching.marking_kernels import satisfy, unmark
from overlay.matching.predicate_fields import ACCESS, ATTRIBUTE, OPERATOR, Predicates
from overlay.matching.selectivity import likelihood

if TYPE_CHECKING:
    from numpy.typing import NDArray

SLOT_BITS: Final = 15
MAX_TABLES: Final = 1000
KEYS: Final = 4096
CONSIDERED: Final = 6
"""Equalities of a row that can be part of a schema: the rarest."""
SUBSETS: Final = 50
"""Of so many, those with two to four."""
MOST_PREDICATES: Final = 256
"""Room for the predicates of a row."""


class Tables(NamedTuple):
    """The schemas that have a table."""

    schemas: NDArray[np.int32]
    """Per table its slots in order, -1 for none."""
    keys: NDArray[np.int64]
    """A hash set: schemas packed into integers, 0 for none; beside them the tables."""
    numbers: NDArray[np.int32]
    order: NDArray[np.int32]
    """The tables in use, as many as the first entry of ``used``."""
    used: NDArray[np.int64]
    at_slot: NDArray[np.int32]
    """For the event at hand: the equality that is satisfied on each slot, or -1."""
    subsets: NDArray[np.int8]
    """The subsets of ``CONSIDERED`` with two to four members, as bits."""


@kernel
def slot_of(p: Predicates, at: int) -> Any:
    """Return the slot of an equality, -1 for other predicates."""
    if p.records[at, OPERATOR] > EQ_TEXT:
        return -1
    return p.records[at, ATTRIBUTE] * 2 + p.records[at, OPERATOR]


@kernel
def find_table(t: Tables, key: int) -> Any:
    """Return the table of a packed schema, or -1."""
    at = hashed(key, key >> 30) & (KEYS - 1)
    while t.keys[at] != 0:
        if t.keys[at] == key:
            return t.numbers[at]
        at = (at + 1) & (KEYS - 1)
    return -1


@kernel
def add_key(t: Tables, key: int, table: int) -> None:
    """Enter a packed schema."""
    at = hashed(key, key >> 30) & (KEYS - 1)
    while t.keys[at] != 0:
        at = (at + 1) & (KEYS - 1)
    t.keys[at] = key
    t.numbers[at] = table


@kernel
def sort_predicates(p: Predicates, predicates: Any, chances: Any, size: int) -> None:
    """Sort predicates by how likely they hold, the least likely first."""
    for i in range(size):
        at, chance = predicates[i], likelihood(p, predicates[i])
        j = i
        while j > 0 and chances[j - 1] > chance:
            predicates[j], chances[j] = predicates[j - 1], chances[j - 1]
            j -= 1
        predicates[j], chances[j] = at, chance


@kernel
def equalities(p: Predicates, predicates: Any, size: int, picked: Any) -> int:
    """Pick the rarest equalities of a sorted row, one per slot; in the order of slots. Return how many."""
    count = 0
    for i in range(size):
        slot = slot_of(p, predicates[i])
        if slot >= 0:
            double = False
            for j in range(count):
                double |= slot_of(p, predicates[picked[j]]) == slot
            if not double:
                picked[count] = i
                count += 1
                if count == CONSIDERED:
                    break
    for i in range(1, count):
        j, held = i, picked[i]
        while j > 0 and slot_of(p, predicates[picked[j - 1]]) > slot_of(p, predicates[held]):
            picked[j] = picked[j - 1]
            j -= 1
        picked[j] = held
    return count


@kernel
def pack(p: Predicates, predicates: Any, chances: Any, picked: Any, count: int, subset: int) -> tuple[int, float]:
    """Return the packed schema of a subset of picked equalities and how likely these hold; 0 if there is none."""
    if subset >> count != 0:
        return 0, 1.0
    key, shift, chance = 0, 0, 1.0
    for i in range(count):
        if subset >> i & 1:
            key |= int(slot_of(p, predicates[picked[i]]) + 1) << shift
            shift += SLOT_BITS
            chance *= chances[picked[i]]
    return key, chance


@kernel
def choose(
    p: Predicates, t: Tables, predicates: Any, chances: Any, size: int, picked: Any
) -> tuple[int, int, float]:
    """Choose the access predicate of a sorted row.

    Returns a subset of ``picked`` and its table; or 1, with the place of a single predicate in ``picked[0]``, and
    -1; or 0 for none. And how likely it holds.
    """
    best, table, least, single = 0, -1, 1.0, -1
    for i in range(size):  # sorted: the first that is reached is the rarest
        if p.records[predicates[i], OPERATOR] <= REACHED:
            best, single, least = 1, i, chances[i]
            break
    if t.used[0] > 0 and best:
        count = equalities(p, predicates, size, picked)
        for subset in t.subsets:
            key, chance = pack(p, predicates, chances, picked, count, subset)
            if key != 0 and chance < least:
                found = find_table(t, key)
                if found >= 0:
                    best, table, least = subset, found, chance
    if table < 0 and best:
        picked[0] = single
    return best, table, least


@kernel
def place_row(
    p: Predicates, c: Clusters, t: Tables, row: int, predicates: Any, chances: Any, size: int, picked: Any
) -> bool:
    """Put a sorted row where it is checked least; False, with nothing changed, if there is no room."""
    subset, table, _ = choose(p, t, predicates, chances, size, picked)
    key = np.full(WIDTH, -1, np.int32)
    taken = 0
    for i in range(CONSIDERED):
        if subset >> i & 1:
            key[taken] = predicates[picked[i]]
            taken += 1
    if not has_room(c):
        return False
    access = access_of(p, c, key, table)
    at = cluster_of(c, access, size - taken)
    if at < 0:
        if c.accesses[access, HEAD] < 0 and access != NO_ACCESS:
            forget_access(p, c, access)
        return False
    kept = 0
    for i in range(size):
        inside = False
        for j in range(taken):
            inside |= predicates[i] == key[j]
        if not inside:
            predicates[kept] = predicates[i]
            kept += 1
    put_row(c, at, row, predicates)
    return True


@kernel
def add_rows(p: Predicates, c: Clusters, t: Tables, rows: Any, numbers: Any, ends: Any, start: int) -> int:
    """Place rows from ``start`` on; return how many are done, fewer if there is no room."""
    predicates, chances = np.empty(MOST_PREDICATES, np.int32), np.empty(MOST_PREDICATES, np.float64)
    picked = np.empty(CONSIDERED, np.int64)
    for i in range(start, len(rows)):
        begin = ends[i - 1] if i > 0 else 0
        size = ends[i] - begin
        for j in range(size):
            predicates[j] = numbers[begin + j]
        sort_predicates(p, predicates, chances, size)
        if not place_row(p, c, t, rows[i], predicates, chances, size, picked):
            return i
    return len(rows)


@kernel
def remove_rows(p: Predicates, c: Clusters, rows: Any, predicates: Any) -> int:
    """Take rows out; write their predicates, one row after the other, and return how many."""
    count = 0
    for row in rows:
        count += read_row(c, row, predicates[count:])
        vacate(p, c, c.rows[row, 0], c.rows[row, 1])
        c.rows[row, 0] = -1
    return count


@kernel
def match_clusters(
    p: Predicates, c: Clusters, t: Tables, attributes: Any, numbers: Any, texts: Any, prefixes: Any, reached: Any,
    found: Any, by_column: bool,
) -> int:  # fmt: skip
    """Put the rows that an event matches into ``found``; return how many, more than fit if it is too short."""
    hit = satisfy(p, attributes, numbers, texts, prefixes, reached)
    count = check_access(p, c, NO_ACCESS, found, 0, by_column)
    for i in range(hit):
        access = p.records[reached[i], ACCESS]
        if access >= 0:
            count = check_access(p, c, access, found, count, by_column)
    if t.used[0] > 0:
        for i in range(hit):
            slot = slot_of(p, reached[i])
            if slot >= 0:
                t.at_slot[slot] = reached[i]
        count = _check_tables(p, c, t, found, count, by_column)
        for i in range(hit):
            slot = slot_of(p, reached[i])
            if slot >= 0:
                t.at_slot[slot] = -1
    unmark(p, attributes, numbers, texts, reached, hit)
    return count


@kernel
def _check_tables(p: Predicates, c: Clusters, t: Tables, found: Any, count: int, by_column: bool) -> int:
    key = np.empty(WIDTH, np.int32)
    for i in range(t.used[0]):
        table, complete = t.order[i], True
        for j in range(WIDTH):
            key[j] = -1
            if t.schemas[table, j] >= 0:
                key[j] = t.at_slot[t.schemas[table, j]]
                if key[j] < 0:
                    complete = False
                    break
        if complete:
            access = find_access(c, key)
            if access >= 0:
                count = check_access(p, c, access, found, count, by_column)
    return count

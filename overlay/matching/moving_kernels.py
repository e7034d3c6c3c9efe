"""Rows change their access predicate, when tables come and go or events have changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from overlay.matching.cluster_kernels import (
    ACCESSES,
    CLASS,
    COUNT,
    HEAD,
    NEXT_CLUSTER,
    OF,
    OFFSET,
    ROWS,
    SIZE,
    TABLE,
    WIDTH,
    Clusters,
    read_row,
    vacate,
)
from overlay.matching.kernels import kernel
from overlay.matching.selectivity import likelihood
from overlay.matching.table_kernels import (
    CONSIDERED,
    MOST_PREDICATES,
    Tables,
    choose,
    equalities,
    pack,
    place_row,
    sort_predicates,
)

if TYPE_CHECKING:
    from overlay.matching.predicate_fields import Predicates

_WORTH: Final = 0.7
"""A row moves if it is then checked at most this often as before."""


@kernel
def access_likelihood(p: Predicates, c: Clusters, access: int) -> float:
    """Return the share of events that satisfy an access predicate, taken as if predicates were independent."""
    chance = 1.0
    for at in c.accesses[access, :WIDTH]:
        if at >= 0:
            chance *= likelihood(p, at)
    return chance


@kernel
def measure_accesses(p: Predicates, c: Clusters, margin: float, above: Any, table_rows: Any) -> tuple[int, float]:
    """List access predicates whose benefit margin is above a limit; add up the rows of each table.

    The margin of a cluster: checks per event that a better access predicate could save, taken as all of them.
    Returns how many are listed, and the sum of their margins.
    """
    count, total = 0, 0.0
    for access in range(1, c.counters[ACCESSES]):
        rows = c.accesses[access, ROWS]
        if rows > 0:
            if c.accesses[access, TABLE] >= 0:
                table_rows[c.accesses[access, TABLE]] += rows
            found = access_likelihood(p, c, access) * rows
            if found > margin:
                above[count] = access
                count += 1
                total += found
    return count, total


@kernel
def accesses_of_table(c: Clusters, table: int, listed: Any) -> int:
    """List the access predicates of a table."""
    count = 0
    for access in range(1, c.counters[ACCESSES]):
        if c.accesses[access, ROWS] > 0 and c.accesses[access, TABLE] == table:
            listed[count] = access
            count += 1
    return count


@kernel
def rows_of(c: Clusters, access: int, rows: Any, start: int) -> int:
    """List the rows of an access predicate from ``start`` on; return where the list ends."""
    at = c.accesses[access, HEAD]
    while at >= 0:
        cluster = c.clusters[at]
        column = cluster[OFFSET] + cluster[SIZE] * ((1 << cluster[CLASS]) // (cluster[SIZE] + 1))
        for i in range(cluster[COUNT]):
            rows[start] = c.arena.data[column + i]
            start += 1
        at = cluster[NEXT_CLUSTER]
    return start


@kernel
def list_rows(c: Clusters, accesses: Any, rows: Any) -> int:
    """List the rows of some access predicates, as far as they fit."""
    count = 0
    for access in accesses:
        if count + c.accesses[access, ROWS] > len(rows):
            break
        count = rows_of(c, access, rows, count)
    return count


@kernel
def move_rows(
    p: Predicates, c: Clusters, t: Tables, rows: Any, start: int, end: int, forced: int
) -> tuple[int, int]:
    """Move those of some rows that fare better elsewhere, or hang on table ``forced``.

    Rows may be gone by now. Returns where it stopped, before ``end`` if there is no room, and how many moved.
    """
    predicates, chances = np.empty(MOST_PREDICATES, np.int32), np.empty(MOST_PREDICATES, np.float64)
    picked = np.empty(CONSIDERED, np.int64)
    moved = 0
    for i in range(start, end):
        row = rows[i]
        at, position = c.rows[row, 0], c.rows[row, 1]
        if at < 0:
            continue
        access = c.clusters[at, OF]
        size = read_row(c, row, predicates)
        sort_predicates(p, predicates, chances, size)
        chance = choose(p, t, predicates, chances, size, picked)[2]
        must = forced >= 0 and c.accesses[access, TABLE] == forced
        if must or chance < _WORTH * access_likelihood(p, c, access):
            if not place_row(p, c, t, row, predicates, chances, size, picked):
                return i, moved
            vacate(p, c, at, position)
            moved += 1
    return end, moved


@kernel
def propose(
    p: Predicates, c: Clusters, t: Tables, rows: Any, natural: bool, current: Any, of: Any, keys: Any, found: Any
) -> int:
    """For each row, list the schemas under which it would be checked less often than now.

    ``current`` gets how often each is checked now, or (``natural``) if there were no tables. Each proposal: the
    place of the row in ``of``, the packed schema in ``keys``, how often it would be checked in ``found``.
    """
    predicates, chances = np.empty(MOST_PREDICATES, np.int32), np.empty(MOST_PREDICATES, np.float64)
    picked = np.empty(CONSIDERED, np.int64)
    total = 0
    for i in range(len(rows)):
        access = c.clusters[c.rows[rows[i], 0], OF]
        size = read_row(c, rows[i], predicates)
        sort_predicates(p, predicates, chances, size)
        current[i] = access_likelihood(p, c, access)
        count = equalities(p, predicates, size, picked)
        if natural and count:
            current[i] = 1.0
            for j in range(count):
                current[i] = min(current[i], chances[picked[j]])
        for subset in t.subsets:
            key, chance = pack(p, predicates, chances, picked, count, subset)
            if key != 0 and chance < _WORTH * current[i]:
                of[total], keys[total], found[total] = i, key, chance
                total += 1
    return total

"""Clusters: conjunctions that share an access predicate and a size, column by column. The second of two phases.

An *access predicate* is a set of predicates without which a conjunction cannot match: none, one that is reached,
or equalities on several attributes, which a *table* finds by hashing what the event holds. Behind it hangs a list
of clusters, one per number of predicates left to check. A cluster is a block of an arena: a column of predicates
per place, the likeliest to fail first, and a last column of rows. ``check_plainly`` looks at one row after the
other; ``check_in_columns`` at a column for many rows, keeping those that are left, without a branch that could be
mispredicted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from overlay.matching.arena import Arena, block_class, free_block, take_block
from overlay.matching.kernels import hashed, kernel
from overlay.matching.marking_kernels import compare_now, holds
from overlay.matching.predicate_fields import ACCESS, ASK, Predicates

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WIDTH: Final = 4
"""Equalities of an access predicate, at most."""
NO_ACCESS: Final = 0
"""The access predicate that asks nothing."""
# Fields of an access predicate, after its predicates (-1 for none) in the order of their slots.
HEAD: Final = 4
ROWS: Final = 5
NEXT_ACCESS: Final = 6  # in its bucket, or among the free
TABLE: Final = 7  # -1 unless several predicates
# Fields of a cluster.
OFFSET: Final = 0
COUNT: Final = 1
CLASS: Final = 2
SIZE: Final = 3
OF: Final = 4
NEXT_CLUSTER: Final = 5
# Counters.
CLUSTERS: Final = 0
FREE_CLUSTER: Final = 1
ACCESSES: Final = 2
FREE_ACCESS: Final = 3
_BLOCK: Final = 1024
_FEW: Final = 8


class Clusters(NamedTuple):
    """The arrays of an engine."""

    clusters: NDArray[np.int32]
    accesses: NDArray[np.int32]
    buckets: NDArray[np.int32]
    rows: NDArray[np.int32]
    """Per row: cluster, position."""
    arena: Arena
    counters: NDArray[np.int64]
    chosen: NDArray[np.int32]
    """Room for the rows of a block that are left."""


@kernel
def _bucket(buckets: Any, key: Any) -> int:
    mixed = hashed(hashed(key[0], key[1]), hashed(key[2], key[3]))
    return mixed & (len(buckets) - 1)


@kernel
def find_access(c: Clusters, key: Any) -> Any:
    """Return the access predicate of several equalities, or -1."""
    at = c.buckets[_bucket(c.buckets, key)]
    while at >= 0:
        same = c.accesses[at, 0] == key[0] and c.accesses[at, 1] == key[1]
        if same and c.accesses[at, 2] == key[2] and c.accesses[at, 3] == key[3]:
            return at
        at = c.accesses[at, NEXT_ACCESS]
    return -1


@kernel
def rehash_accesses(c: Clusters) -> None:
    """Fill empty buckets."""
    for at in range(1, c.counters[ACCESSES]):
        if c.accesses[at, 1] >= 0:
            bucket = _bucket(c.buckets, c.accesses[at])
            c.accesses[at, NEXT_ACCESS] = c.buckets[bucket]
            c.buckets[bucket] = at


@kernel
def has_room(c: Clusters) -> Any:
    """Say whether one more access predicate and cluster fit."""
    clusters = c.counters[FREE_CLUSTER] >= 0 or c.counters[CLUSTERS] < len(c.clusters)
    return clusters and (c.counters[FREE_ACCESS] >= 0 or c.counters[ACCESSES] < len(c.accesses))


@kernel
def access_of(p: Predicates, c: Clusters, key: Any, table: int) -> Any:
    """Return the access predicate of some predicates, a new one if need be."""
    if key[0] < 0:
        return NO_ACCESS
    known = find_access(c, key)
    if key[1] < 0:
        known = p.records[key[0], ACCESS]
    if known >= 0:
        return known
    at = c.counters[FREE_ACCESS]
    if at >= 0:
        c.counters[FREE_ACCESS] = c.accesses[at, NEXT_ACCESS]
    else:
        at = c.counters[ACCESSES]
        c.counters[ACCESSES] += 1
    record = c.accesses[at]
    for i in range(WIDTH):
        record[i] = key[i]
    record[HEAD], record[ROWS], record[NEXT_ACCESS], record[TABLE] = -1, 0, -1, table
    if key[1] < 0:
        p.records[key[0], ACCESS] = at
    else:
        bucket = _bucket(c.buckets, key)
        record[NEXT_ACCESS] = c.buckets[bucket]
        c.buckets[bucket] = at
    return at


@kernel
def forget_access(p: Predicates, c: Clusters, at: int) -> None:
    """Remove an access predicate that has no clusters."""
    record = c.accesses[at]
    if record[1] < 0:
        p.records[record[0], ACCESS] = -1
    else:
        bucket = _bucket(c.buckets, record)
        before, here = -1, c.buckets[bucket]
        while here != at:
            before, here = here, c.accesses[here, NEXT_ACCESS]
        if before < 0:
            c.buckets[bucket] = record[NEXT_ACCESS]
        else:
            c.accesses[before, NEXT_ACCESS] = record[NEXT_ACCESS]
    record[0] = record[1] = -1
    record[ROWS] = 0
    record[NEXT_ACCESS] = c.counters[FREE_ACCESS]
    c.counters[FREE_ACCESS] = at


@kernel
def cluster_of(c: Clusters, access: int, size: int) -> Any:
    """Return the cluster of an access predicate and a size with room for a row; -1 if the arena is full."""
    at = c.accesses[access, HEAD]
    while at >= 0 and c.clusters[at, SIZE] != size:
        at = c.clusters[at, NEXT_CLUSTER]
    if at < 0:
        size_class = block_class(size + 1)
        offset = take_block(c.arena, size_class)
        if offset < 0:
            return -1
        at = c.counters[FREE_CLUSTER]
        if at >= 0:
            c.counters[FREE_CLUSTER] = c.clusters[at, NEXT_CLUSTER]
        else:
            at = c.counters[CLUSTERS]
            c.counters[CLUSTERS] += 1
        cluster = c.clusters[at]
        cluster[OFFSET], cluster[COUNT], cluster[CLASS], cluster[SIZE] = offset, 0, size_class, size
        cluster[OF], cluster[NEXT_CLUSTER] = access, c.accesses[access, HEAD]
        c.accesses[access, HEAD] = at
        return at
    if c.clusters[at, COUNT] == (1 << c.clusters[at, CLASS]) // (size + 1):
        if not _enlarge(c, at):
            return -1
    return at


@kernel
def _enlarge(c: Clusters, at: int) -> bool:
    cluster = c.clusters[at]
    columns, count = cluster[SIZE] + 1, cluster[COUNT]
    offset = take_block(c.arena, cluster[CLASS] + 1)
    if offset < 0:
        return False
    old, new = (1 << cluster[CLASS]) // columns, (1 << (cluster[CLASS] + 1)) // columns
    for j in range(columns):
        for i in range(count):
            c.arena.data[offset + j * new + i] = c.arena.data[cluster[OFFSET] + j * old + i]
    free_block(c.arena, cluster[OFFSET], cluster[CLASS])
    cluster[OFFSET], cluster[CLASS] = offset, cluster[CLASS] + 1
    return True


@kernel
def put_row(c: Clusters, at: int, row: int, predicates: Any) -> None:
    """Append a row to a cluster that has room."""
    cluster = c.clusters[at]
    size, count = cluster[SIZE], cluster[COUNT]
    capacity = (1 << cluster[CLASS]) // (size + 1)
    for j in range(size):
        c.arena.data[cluster[OFFSET] + j * capacity + count] = predicates[j]
    c.arena.data[cluster[OFFSET] + size * capacity + count] = row
    cluster[COUNT] += 1
    c.accesses[cluster[OF], ROWS] += 1
    c.rows[row, 0], c.rows[row, 1] = at, count


@kernel
def read_row(c: Clusters, row: int, predicates: Any) -> int:
    """Write the predicates of a row, those of its access predicate included; return how many."""
    cluster, i = c.clusters[c.rows[row, 0]], c.rows[row, 1]
    capacity = (1 << cluster[CLASS]) // (cluster[SIZE] + 1)
    count = 0
    for at in c.accesses[cluster[OF], :WIDTH]:
        if at >= 0:
            predicates[count] = at
            count += 1
    for j in range(cluster[SIZE]):
        predicates[count] = c.arena.data[cluster[OFFSET] + j * capacity + i]
        count += 1
    return count


@kernel
def vacate(p: Predicates, c: Clusters, at: int, i: int) -> None:
    """Take what stands at a position out of a cluster: the last row takes its place."""
    cluster = c.clusters[at]
    size = cluster[SIZE]
    capacity = (1 << cluster[CLASS]) // (size + 1)
    last = cluster[COUNT] - 1
    if i < last:
        for j in range(size + 1):
            column = cluster[OFFSET] + j * capacity
            c.arena.data[column + i] = c.arena.data[column + last]
        c.rows[c.arena.data[cluster[OFFSET] + size * capacity + i], 1] = i
    cluster[COUNT] = last
    access = cluster[OF]
    c.accesses[access, ROWS] -= 1
    if last == 0:
        _forget_cluster(c, at)
        if c.accesses[access, HEAD] < 0 and access != NO_ACCESS:
            forget_access(p, c, access)


@kernel
def _forget_cluster(c: Clusters, at: int) -> None:
    cluster = c.clusters[at]
    free_block(c.arena, cluster[OFFSET], cluster[CLASS])
    here = c.accesses[cluster[OF], HEAD]
    if here == at:
        c.accesses[cluster[OF], HEAD] = cluster[NEXT_CLUSTER]
    else:
        while c.clusters[here, NEXT_CLUSTER] != at:
            here = c.clusters[here, NEXT_CLUSTER]
        c.clusters[here, NEXT_CLUSTER] = cluster[NEXT_CLUSTER]
    cluster[NEXT_CLUSTER] = c.counters[FREE_CLUSTER]
    c.counters[FREE_CLUSTER] = at


@kernel
def check_plainly(p: Predicates, c: Clusters, cluster: int, found: Any, count: int) -> int:
    """Add the rows of a cluster all of whose predicates hold, one row after the other."""
    data, size, offset = c.arena.data, c.clusters[cluster, SIZE], c.clusters[cluster, OFFSET]
    capacity = (1 << c.clusters[cluster, CLASS]) // (size + 1)
    for i in range(offset, offset + c.clusters[cluster, COUNT]):
        j = 0
        while j < size and holds(p, data[i + j * capacity]):
            j += 1
        if j == size:
            if count < len(found):
                found[count] = data[i + size * capacity]
            count += 1
    return count


@kernel
def check_in_columns(p: Predicates, c: Clusters, cluster: int, found: Any, count: int) -> int:
    """Do the same a column at a time, of which there are some, for a block of rows that fits the cache."""
    size, total, offset = c.clusters[cluster, SIZE], c.clusters[cluster, COUNT], c.clusters[cluster, OFFSET]
    data, chosen = c.arena.data, c.chosen
    capacity = (1 << c.clusters[cluster, CLASS]) // (size + 1)
    for start in range(offset, offset + total, _BLOCK):
        left = 0
        for i in range(start, min(start + _BLOCK, offset + total)):
            chosen[left] = i
            left += _held(p, data[i])
        j = 1
        while left > 0 and j < size:
            before, left = left, 0
            for k in range(before):
                i = chosen[k]
                chosen[left] = i
                left += _held(p, data[i + j * capacity])
            j += 1
        for k in range(left):
            if count < len(found):
                found[count] = data[chosen[k] + size * capacity]
            count += 1
    return count


@kernel
def _held(p: Predicates, at: int) -> int:
    """Return 1 if a predicate holds, else 0; no branch but one that is always predicted."""
    state = p.satisfied[at]
    if state == ASK:
        return int(compare_now(p, at))
    return int(state)


@kernel
def check_access(p: Predicates, c: Clusters, access: int, found: Any, count: int, by_column: bool) -> int:
    """Check all clusters of an access predicate."""
    at = c.accesses[access, HEAD]
    while at >= 0:
        if by_column and c.clusters[at, COUNT] >= _FEW and c.clusters[at, SIZE] > 0:
            count = check_in_columns(p, c, at, found, count)
        else:
            count = check_plainly(p, c, at, found, count)
        at = c.clusters[at, NEXT_CLUSTER]
    return count

"""Clusters and tables as an engine: the propagation algorithm, and what static and dynamic build on.

Propagation hangs each conjunction on its rarest equality (or ``in``, or prefix). With ``by_column`` clusters are
checked a column at a time, which is our stand-in for the paper's prefetching: the next cells are read before it is
known whether they are needed, and no branch is mispredicted.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np

from overlay.matching.arena import Arena
from overlay.matching.cluster_kernels import (
    ACCESSES,
    CLUSTERS,
    FREE_ACCESS,
    FREE_CLUSTER,
    HEAD,
    ROWS,
    WIDTH,
    Clusters,
    read_row,
    rehash_accesses,
)
from overlay.matching.errors import MatcherFull
from overlay.matching.kernels import grown
from overlay.matching.moving_kernels import accesses_of_table, list_rows, move_rows
from overlay.matching.predicate_fields import EVENTS
from overlay.matching.table_kernels import (
    CONSIDERED,
    KEYS,
    MAX_TABLES,
    MOST_PREDICATES,
    SLOT_BITS,
    Tables,
    add_key,
    add_rows,
    match_clusters,
    remove_rows,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from overlay.matching.predicate_index import PredicateIndex
    from overlay.matching.vocabulary import Event

_FIELDS: Final = 8
_BLOCK: Final = 1024
WINDOW: Final = 20_000
"""After so many events what was seen of them counts half: a longer window forgets more slowly."""


class Clustering:
    """Finds matching rows through access predicates; rows are numbered by whoever uses it."""

    def __init__(self, index: PredicateIndex, *, by_column: bool = False) -> None:
        self.index = index
        self.by_column = by_column
        self.schemas: dict[int, int] = {}
        """Packed schemas that have a table, and its number."""
        counters = np.array([0, -1, 1, -1], np.int64)
        accesses = np.full((16, _FIELDS), -1, np.int32)
        accesses[0, ROWS] = 0
        self.arrays = Clusters(
            np.zeros((16, _FIELDS), np.int32), accesses, np.full(16, -1, np.int32), np.full((0, 2), -1, np.int32),
            Arena.empty(), counters, np.zeros(_BLOCK, np.int32),
        )  # fmt: skip
        self.tables = Tables(
            np.full((MAX_TABLES, WIDTH), -1, np.int32), np.zeros(KEYS, np.int64), np.zeros(KEYS, np.int32),
            np.zeros(MAX_TABLES, np.int32), np.zeros(1, np.int64), np.zeros(0, np.int32), _subsets(),
        )  # fmt: skip
        self.rows = 0
        self._scratch: NDArray[np.int32] = np.zeros(MOST_PREDICATES, np.int32)

    @property
    def size_bytes(self) -> int:
        """How much memory the arrays take."""
        arrays = [x for x in (*self.arrays, *self.tables) if isinstance(x, np.ndarray)]
        return sum(x.nbytes for x in arrays) + self.arrays.arena.data.nbytes

    def add(self, rows: NDArray[np.int64], numbers: NDArray[np.int32], ends: NDArray[np.int64]) -> None:
        """Add conjunctions of predicates, each under the number of a row."""
        slots = 2 * len(self.index.arrays.kinds)
        if slots > len(self.tables.at_slot):
            self.tables = self.tables._replace(at_slot=np.full(slots, -1, np.int32))
        if (most := int(rows.max(initial=-1)) + 1) > len(self.arrays.rows):
            self.arrays = self.arrays._replace(rows=grown(self.arrays.rows, most, -1))
        done = 0
        while (done := self._add(rows, numbers, ends, done)) < len(rows):
            self._grow()
        self.rows += len(rows)

    def _add(self, rows: NDArray[np.int64], numbers: NDArray[np.int32], ends: NDArray[np.int64], done: int) -> int:
        return add_rows(self.index.arrays, self.arrays, self.tables, rows, numbers, ends, done)

    def remove(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """Remove rows; return the predicates of all, of which the caller lets go."""
        found = np.empty(len(rows) * MOST_PREDICATES, np.int32)
        count = remove_rows(self.index.arrays, self.arrays, rows, found)
        self.rows -= len(rows)
        return found[:count]

    def predicates(self, row: int) -> NDArray[np.int32]:
        """Return the predicates of a row."""
        size = read_row(self.arrays, row, self._scratch)
        return self._scratch[:size].copy()

    def match(self, event: Event, reached: NDArray[np.int32], found: NDArray[np.int32]) -> int:
        """Put matching rows into ``found``; return how many there are, more than fit if it is too short."""
        attributes, numbers, texts, prefixes = event
        count = match_clusters(
            self.index.arrays, self.arrays, self.tables, attributes, numbers, texts, prefixes, reached, found,
            self.by_column,
        )  # fmt: skip
        if self.index.arrays.counters[EVENTS] > WINDOW:
            self.index.age()
        return int(count)

    def add_table(self, schema: int) -> None:
        """Give a packed schema a table; rows move there only when told."""
        if len(self.schemas) == MAX_TABLES:
            raise MatcherFull("tables", MAX_TABLES)
        taken = set(self.schemas.values())
        number = next(i for i in range(MAX_TABLES) if i not in taken)
        slots = unpack(schema)
        self.tables.schemas[number] = -1
        self.tables.schemas[number, : len(slots)] = slots
        self.schemas[schema] = number
        self._list_tables()

    def drop_table(self, schema: int) -> None:
        """Take a schema's table away; its rows go where they are checked least."""
        number = self.schemas.pop(schema)
        self._list_tables()
        listed = np.empty(self.arrays.counters[ACCESSES], np.int32)
        count = accesses_of_table(self.arrays, number, listed)
        self.move(self.rows_of(listed[:count]), forced=number)

    def rows_of(self, accesses: NDArray[np.int32]) -> NDArray[np.int32]:
        """List the rows that hang on some access predicates."""
        rows = np.empty(int(self.arrays.accesses[accesses, ROWS].sum()), np.int32)
        return rows[: list_rows(self.arrays, accesses, rows)]

    def used(self) -> NDArray[np.int32]:
        """List the access predicates that rows hang on, the one that asks nothing left out."""
        known = self.arrays.accesses[1 : self.arrays.counters[ACCESSES]]
        return (np.flatnonzero((known[:, ROWS] > 0) & (known[:, HEAD] >= 0)) + 1).astype(np.int32)

    def move(self, rows: NDArray[np.int32], start: int = 0, end: int | None = None, *, forced: int = -1) -> int:
        """Move those of some rows that are checked less elsewhere, or hang on a given table; return how many."""
        last, total = len(rows) if end is None else end, 0
        while start < last:
            start, moved = move_rows(self.index.arrays, self.arrays, self.tables, rows, start, last, forced)
            total += moved
            if start < last:
                self._grow()
        return total

    def _list_tables(self) -> None:
        t = self.tables
        t.keys[:] = 0
        for schema, number in self.schemas.items():
            add_key(t, schema, number)
        t.order[: len(self.schemas)] = list(self.schemas.values())
        t.used[0] = len(self.schemas)

    def _grow(self) -> None:
        """Make room for more of whatever is short."""
        a = self.arrays
        clusters, accesses = int(a.counters[CLUSTERS]), int(a.counters[ACCESSES])
        if clusters == len(a.clusters) and a.counters[FREE_CLUSTER] < 0:
            self.arrays = a._replace(clusters=grown(a.clusters, clusters + 16))
        elif accesses == len(a.accesses) and a.counters[FREE_ACCESS] < 0:
            self.arrays = a = a._replace(accesses=grown(a.accesses, accesses + 16, -1))
            if accesses > len(a.buckets):
                self.arrays = a._replace(buckets=np.full(1 << accesses.bit_length(), -1, np.int32))
                rehash_accesses(self.arrays)
        else:
            self.arrays = a._replace(arena=a.arena.grow(1 << 10))


def unpack(schema: int) -> list[int]:
    """Return the slots of a packed schema.

    >>> unpack((4 + 1) | (9 + 1) << SLOT_BITS)
    [4, 9]
    """
    slots = []
    while schema:
        slots.append((schema & (1 << SLOT_BITS) - 1) - 1)
        schema >>= SLOT_BITS
    return slots


def _subsets() -> NDArray[np.int8]:
    sets = [s for size in range(2, WIDTH + 1) for s in combinations(range(CONSIDERED), size)]
    return np.array([sum(1 << i for i in s) for s in sets], np.int8)

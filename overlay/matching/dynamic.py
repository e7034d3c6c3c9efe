"""The dynamic algorithm: tables come and go with subscriptions and events.

Three measures, in checks of a row per event. The *benefit margin* of an access predicate is what a better one
could save on its rows: at most all their checks. The *benefit* of a table is what its rows would cost without it:
about one check each. The *power* of a schema without a table is what one would save on the rows above the margin.
When enough has changed: a table of too little benefit is dropped; rows above the margin move to better access
predicates, where there are; and from what then is left above the margin, schemas of enough power get tables, the
most powerful first.

Rows move in small portions, with each insertion and each event, so no call takes long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from overlay.matching.cluster_kernels import ACCESSES
from overlay.matching.clustering import WINDOW, Clustering
from overlay.matching.greedy import Choice, Proposals, choose_schemas
from overlay.matching.moving_kernels import measure_accesses
from overlay.matching.table_kernels import MAX_TABLES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from overlay.matching.predicate_index import PredicateIndex
    from overlay.matching.vocabulary import Event

_LEAST_CHANGES: Final = 256
_CHANGED: Final = 16
"""It looks again when a sixteenth of the rows has come or gone."""
_GROWN: Final = 1.2
"""It looks for new tables again when so much more is above the margin than when it last found none."""
_PORTION: Final = 4_096
_PER_EVENT: Final = 8


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When to act. Lower ones check fewer rows and move more."""

    margin: float = 0.5
    """Checks per event on one access predicate that are too many."""
    power: float = 256.0
    """Checks per event that a new table must save: looking into it takes as long as some two hundred."""
    benefit: float = 256.0
    """Rows that a table must hold."""


class Dynamic:
    """Tables that follow the rows and the events."""

    def __init__(self, index: PredicateIndex, *, thresholds: Thresholds | None = None) -> None:
        self.clusters = Clustering(index, by_column=True)
        self.thresholds = thresholds or Thresholds()
        self.trace: list[Choice] = []
        """The tables made last, in order."""
        self._changes = 0
        self._events = 0
        self._hopeless = 0.0
        self._events_differ = False
        self._moving: NDArray[np.int32] = np.zeros(0, np.int32)
        self._moved = 0

    @property
    def size_bytes(self) -> int:
        """How much memory it takes."""
        return self.clusters.size_bytes + self._moving.nbytes

    def add(self, rows: NDArray[np.int64], numbers: NDArray[np.int32], ends: NDArray[np.int64]) -> None:
        """Add conjunctions of predicates, each under the number of a row."""
        self.clusters.add(rows, numbers, ends)
        self._note(len(rows))

    def remove(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """Remove rows; return the predicates of all."""
        found = self.clusters.remove(rows)
        self._note(len(rows))
        return found

    def predicates(self, row: int) -> NDArray[np.int32]:
        """Return the predicates of a row."""
        return self.clusters.predicates(row)

    def match(self, event: Event, reached: NDArray[np.int32], found: NDArray[np.int32]) -> int:
        """Put matching rows into ``found``; return how many there are."""
        count = self.clusters.match(event, reached, found)
        self._events += 1
        if self._moved < len(self._moving):
            self._move(_PER_EVENT)
        elif self._events >= WINDOW // 2:
            self._events = 0
            self._hopeless, self._events_differ = 0.0, True
            self.maintain()
        return count

    def settle(self) -> None:
        """Do all that is pending at once: for tests, and after loading."""
        self.maintain()
        while self._moved < len(self._moving):
            self._move(len(self._moving))
            self.maintain()

    def maintain(self) -> None:
        """Measure everything; drop, move and create as the thresholds say."""
        if self._moved < len(self._moving):
            return  # what moves is measured when it has arrived
        self._changes = 0
        above, table_rows = self._measure()
        for schema in [s for s, n in self.clusters.schemas.items() if table_rows[n] < self.thresholds.benefit]:
            self.clusters.drop_table(schema)
        rows = self.clusters.rows_of(above)
        if self._total > self._hopeless * _GROWN:
            self.trace = self._create(rows)
            self._hopeless = 0.0 if self.trace else self._total
            if self.trace or self._events_differ:
                self._moving, self._moved = rows, 0
                self._events_differ = False

    def _measure(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        c = self.clusters
        above, table_rows = np.empty(c.arrays.counters[ACCESSES], np.int32), np.zeros(MAX_TABLES, np.int64)
        count, self._total = measure_accesses(c.index.arrays, c.arrays, self.thresholds.margin, above, table_rows)
        return above[:count], table_rows

    def _create(self, rows: NDArray[np.int32]) -> list[Choice]:
        """Give tables to schemas of enough power."""

        def strongest(power: NDArray[np.float64]) -> int | None:
            best = int(np.argmax(power))
            return best if power[best] >= self.thresholds.power else None

        proposals = Proposals.of(self.clusters, rows, natural=False)
        chosen = choose_schemas(proposals, MAX_TABLES - len(self.clusters.schemas), strongest)
        fresh = [choice for choice in chosen if choice.schema not in self.clusters.schemas]
        for choice in fresh:
            self.clusters.add_table(choice.schema)
        return fresh

    def _note(self, changes: int) -> None:
        self._changes += changes
        if self._moved < len(self._moving):
            self._move(min(4 * _PER_EVENT * changes, max(_PORTION, 4 * changes)))
        elif self._changes > max(_LEAST_CHANGES, self.clusters.rows // _CHANGED):
            self.maintain()

    def _move(self, count: int) -> None:
        end = min(self._moved + count, len(self._moving))
        self.clusters.move(self._moving, self._moved, end)
        self._moved = end
        if end == len(self._moving):
            self._moving, self._moved = np.zeros(0, np.int32), 0

"""The static algorithm: the best tables for all that is known, chosen at once under a bound of space.

It starts from the natural clustering (each row on its rarest equality) and adds the table of the highest benefit
per byte while there is one and the bound allows. Benefit: the checks per event that it saves, less what looking
into one more table costs. It is chosen anew when the rows have doubled since, or by ``arrange``; in between, rows
go to whichever of its tables suits them best.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from overlay.matching.clustering import Clustering, unpack
from overlay.matching.greedy import Choice, Proposals, choose_schemas
from overlay.matching.table_kernels import MAX_TABLES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from overlay.matching.predicate_index import PredicateIndex
    from overlay.matching.vocabulary import Event

LOOKUP: Final = 200.0
"""Checks of a row that take as long as looking into a table."""
TABLE_BYTES: Final = 64
ENTRY_BYTES: Final = 80
"""What an access predicate takes, with its cluster and its bucket."""


class Static:
    """Tables chosen for all rows together; ``space_bytes`` bounds what they take."""

    def __init__(self, index: PredicateIndex, *, space_bytes: int = 1 << 30) -> None:
        self.clusters = Clustering(index, by_column=True)
        self.space_bytes = space_bytes
        self.trace: list[Choice] = []
        """The steps of the last choice."""
        self._arranged = 0

    @property
    def size_bytes(self) -> int:
        """How much memory it takes."""
        return self.clusters.size_bytes

    def add(self, rows: NDArray[np.int64], numbers: NDArray[np.int32], ends: NDArray[np.int64]) -> None:
        """Add conjunctions of predicates, each under the number of a row."""
        self.clusters.add(rows, numbers, ends)

    def remove(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """Remove rows; return the predicates of all."""
        return self.clusters.remove(rows)

    def predicates(self, row: int) -> NDArray[np.int32]:
        """Return the predicates of a row."""
        return self.clusters.predicates(row)

    def match(self, event: Event, reached: NDArray[np.int32], found: NDArray[np.int32]) -> int:
        """Put matching rows into ``found``; return how many there are."""
        if self.clusters.rows > 2 * self._arranged + 16:
            self.arrange()
        return self.clusters.match(event, reached, found)

    def arrange(self) -> None:
        """Choose tables for the rows and events known now, and move the rows."""
        rows = self.clusters.rows_of(self.clusters.used())
        proposals = Proposals.of(self.clusters, rows, natural=True)
        self.trace = choose_schemas(proposals, MAX_TABLES, _Budget(self.clusters, proposals, self.space_bytes))
        wanted = {choice.schema for choice in self.trace}
        for schema in set(self.clusters.schemas) - wanted:
            self.clusters.drop_table(schema)
        for schema in sorted(wanted - set(self.clusters.schemas)):
            self.clusters.add_table(schema)
        self.clusters.move(rows)
        self._arranged = self.clusters.rows


class _Budget:
    """Picks the schema of most benefit per byte that the bound still allows."""

    def __init__(self, clusters: Clustering, proposals: Proposals, space_bytes: int) -> None:
        kinds = np.maximum(clusters.index.arrays.kinds, 1)
        entries = [
            np.prod([float(kinds[slot // 2, slot % 2]) for slot in unpack(int(schema))])
            for schema in proposals.schemas
        ]
        rows = np.bincount(proposals.which, minlength=len(proposals.schemas)) * proposals.scale
        self._bytes = TABLE_BYTES + ENTRY_BYTES * np.minimum(rows, np.array(entries))
        self._left = float(space_bytes)

    def __call__(self, saved: NDArray[np.float64]) -> int | None:
        benefit = saved - LOOKUP
        worth = np.where((benefit > 0) & (self._bytes <= self._left), benefit / self._bytes, 0)
        best = int(np.argmax(worth))
        if worth[best] <= 0:
            return None
        self._left -= self._bytes[best]
        return best

"""The integer program of the Delta paper (Table 1), as arrays: one choice per group, within capacities.

A *group* is a set of equal subscriptions that need a feed on ``need`` machines; ``fed`` of them, from ``least``
up, are fed from outside by one of the group's *columns* (a rewriting, or the source), the others by each other,
each at the cost ``inner``. A column uses feeds of *rows*: a row per group, then rows of sites, then the
source's, the last. A group that feeds itself less has more to give: its row holds ``capacity + fed``.

    minimize   sum cost[c] y[c]  +  sum inner[g] (need[g] - fed[g])
    where      fed[g] = sum of y[c] over the columns of g,   least[g] <= fed[g] <= need[g],   y integer,
               sum of uses of row r  <=  capacity[r]  (+ fed[r] if r is a group's row)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNBOUNDED: Final = 1 << 40
"""A limit that is none."""


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """The program. Columns ``first[g] : first[g + 1]`` are those of group ``g``, the cheapest first.

    Column ``c`` costs ``cost[c]`` and uses ``rows[row_first[c] : row_first[c + 1]]``, a row as often as it stands
    there. ``candidate[c]`` is its number in the candidate table: -1 for the source, -2 - g for a copy of group g.
    """

    first: NDArray[np.int64]
    cost: NDArray[np.int64]
    row_first: NDArray[np.int64]
    rows: NDArray[np.int32]
    candidate: NDArray[np.int64]
    need: NDArray[np.int64]
    least: NDArray[np.int64]
    inner: NDArray[np.int64]
    capacity: NDArray[np.int64]

    @property
    def groups(self) -> int:
        """How many groups there are; their rows have the same numbers."""
        return len(self.need)

    @property
    def arrays(self) -> tuple[NDArray[np.int64], ...]:
        """Everything that compiled code reads."""
        return (
            self.first, self.cost, self.row_first, self.rows, self.need, self.least, self.inner, self.capacity,
        )  # type: ignore[return-value]  # fmt: skip  # rows are int32

    @property
    def source(self) -> int:
        """The source's row."""
        return len(self.capacity) - 1

    def group_of(self) -> NDArray[np.int64]:
        """Return the group of every column."""
        return np.repeat(np.arange(self.groups), np.diff(self.first))

    def fed(self, taken: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many machines of each group are fed from outside, given how often each column is taken."""
        upto = np.concatenate(([0], np.cumsum(taken)))
        return upto[self.first[1:]] - upto[self.first[:-1]]

    def uses(self, taken: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many feeds of each row are used; a group's feeds to itself are not among them."""
        each = np.repeat(taken, np.diff(self.row_first))
        return np.bincount(self.rows, weights=each, minlength=len(self.capacity)).astype(np.int64)

    def total(self, taken: NDArray[np.int64]) -> int:
        """Return the utilization of a choice."""
        return int((self.cost * taken).sum() + (self.inner * (self.need - self.fed(taken))).sum())

    def violations(self, taken: NDArray[np.int64]) -> int:
        """Count the rows and groups whose limits a choice breaks."""
        fed = self.fed(taken)
        room = self.capacity.copy()
        room[: self.groups] += fed
        wrong = (self.uses(taken) > room).sum() + ((fed < self.least) | (fed > self.need)).sum()
        return int(wrong + (taken < 0).sum())

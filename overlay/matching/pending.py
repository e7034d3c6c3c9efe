"""Single insertions and deletions, gathered until something depends on them.

To begin a compiled call takes longer than what it does to one row, so a matcher hands over many rows at once: when
an event comes, when somebody asks about a subscription that is waiting, or when ``MOST`` changes wait. Insertions
go in before deletions come out: so a text that both mention keeps its number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from overlay.matching.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

MOST: Final = 64
"""More of them cost less each, and let the next event wait longer: for some 0.2 ms."""


Written: TypeAlias = tuple[int, int, float]
"""A condition as numbers: attribute, operator, value."""


class Pending:
    """The changes that wait; empty ones are false.

    >>> pending = Pending()
    >>> pending.insert(7, [[(0, 0, 5.0)], []])
    >>> 7 in pending, len(pending), len(pending.batch()), pending.owners().tolist()
    (True, 2, 2, [7, 7])
    """

    def __init__(self) -> None:
        self.removed: list[int] = []
        """Rows that go."""
        self._subscriptions: set[int] = set()
        self._owners: list[int] = []
        self._ends: list[int] = [0]
        self._conditions: list[Written] = []

    def __len__(self) -> int:
        return len(self._owners) + len(self.removed)

    def __contains__(self, number: int) -> bool:
        return number in self._subscriptions

    def insert(self, number: int, conjunctions: Sequence[Sequence[Written]]) -> None:
        """Let the conjunctions of a subscription wait."""
        self._subscriptions.add(number)
        for conditions in conjunctions:
            self._conditions += conditions
            self._ends.append(len(self._conditions))
            self._owners.append(number)

    def batch(self) -> Batch:
        """Return all conjunctions that wait, those of a subscription side by side."""
        columns = zip(*self._conditions, strict=True) if self._conditions else ((), (), ())
        return Batch.trusted(self._ends, *columns)

    def owners(self) -> NDArray[np.int64]:
        """Return the subscription of each."""
        return np.array(self._owners, np.int64)

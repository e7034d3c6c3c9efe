"""Which rows are those of a subscription, and whose a row is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from overlay.matching.errors import UnknownSubscription
from overlay.matching.kernels import grown, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Ownership:
    """Chains of rows, one per subscription.

    >>> owned = Ownership()
    >>> owned.add(np.array([4, 5, 2]), np.array([0, 0, 1]))
    >>> owned.rows(0), owned.owners(np.array([2, 4, 5])).tolist(), owned.forget(0), 0 in owned
    ([4, 5], [0, 1], [4, 5], False)
    """

    def __init__(self) -> None:
        self._first: NDArray[np.int32] = np.zeros(0, np.int32)  # row of a subscription, -1 if there is none
        self._rows: NDArray[np.int32] = np.zeros((0, 2), np.int32)  # of a row: subscription, next row of it or -1
        self._several = 0  # subscriptions with more than one row

    def __contains__(self, number: int) -> bool:
        return 0 <= number < len(self._first) and bool(self._first[number] >= 0)

    @property
    def size_bytes(self) -> int:
        """How much memory it takes."""
        return self._first.nbytes + self._rows.nbytes

    def add(self, rows: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
        """Give rows to subscriptions; those of one stand side by side."""
        self._first = grown(self._first, int(numbers.max(initial=-1)) + 1, -1)
        self._rows = grown(self._rows, int(rows.max(initial=-1)) + 1)
        self._several += _chain(self._first, self._rows, rows, numbers)

    def rows(self, number: int) -> list[int]:
        """List the rows of a subscription; ``UnknownSubscription`` if there is none of this number."""
        if number not in self:
            raise UnknownSubscription(number)
        row, found = int(self._first[number]), []
        while row >= 0:
            found.append(row)
            row = int(self._rows[row, 1])
        return found

    def forget(self, number: int) -> list[int]:
        """Return the same rows, which are nobody's from now on."""
        found = self.rows(number)
        self._first[number] = -1
        self._several -= len(found) > 1
        return found

    def owners(self, rows: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return whose some rows are: sorted, each once."""
        numbers = self._rows[rows, 0].astype(np.int64)
        return np.unique(numbers) if self._several else np.sort(numbers)


@kernel
def _chain(first: Any, owned: Any, rows: Any, numbers: Any) -> int:
    """Return how many subscriptions have more than one row."""
    several = 0
    for i in range(len(rows)):
        row, number = rows[i], numbers[i]
        owned[row, 0], owned[row, 1] = number, -1
        if i == 0 or numbers[i - 1] != number:
            first[number] = row
        else:
            owned[rows[i - 1], 1] = row
            several += i == 1 or numbers[i - 2] != number
    return several

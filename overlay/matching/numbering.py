"""Numbers from 0 on that are given back and given out again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from overlay.matching.kernels import grown

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Numbering:
    """Gives out numbers, those given back first, the latest first.

    >>> numbers = Numbering()
    >>> numbers.take(3).tolist(), numbers.give(1), numbers.take(2).tolist(), len(numbers)
    ([0, 1, 2], None, [1, 3], 4)
    """

    def __init__(self) -> None:
        self.free: NDArray[np.int32] = np.zeros(0, np.int32)
        self._count = 0  # of free ones
        self.used = 0
        """Up to where numbers have been given out."""

    def __len__(self) -> int:
        return self.used - self._count

    def take_one(self) -> int:
        """Return a number that nobody has."""
        if self._count == 0:
            self.used += 1
            return self.used - 1
        self._count -= 1
        return int(self.free[self._count])

    def take(self, count: int) -> NDArray[np.int64]:
        """Return numbers that nobody has."""
        if count == 1:
            return np.array([self.take_one()])
        old = min(count, self._count)
        self._count -= old
        again = self.free[self._count : self._count + old][::-1]
        new = np.arange(self.used, self.used + count - old)
        self.used += len(new)
        return np.concatenate([again, new]).astype(np.int64)

    def give(self, number: int) -> None:
        """Take a number back."""
        self.free = grown(self.free, self._count + 1)
        self.free[self._count] = number
        self._count += 1

    def give_all(self, numbers: NDArray[np.int64]) -> None:
        """Take several back."""
        self.free = grown(self.free, self._count + len(numbers))
        self.free[self._count : self._count + len(numbers)] = numbers
        self._count += len(numbers)

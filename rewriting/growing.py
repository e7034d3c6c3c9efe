"""Arrays that grow by doubling."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_Kind = TypeVar("_Kind", bound=np.generic)


def grown_rows(array: NDArray[_Kind], rows: int) -> NDArray[_Kind]:
    """Return the array, or a copy with at least twice the rows that holds ``rows``.

    >>> len(grown_rows(np.zeros((4, 2)), 5))
    8
    """
    if rows <= len(array):
        return array
    taller = np.zeros((max(rows, 2 * len(array)), *array.shape[1:]), array.dtype)
    taller[: len(array)] = array
    return taller

"""Many small growing arrays in one: blocks of 2, 4, 8 … integers, free ones in a list per size.

A block of *class* ``c`` holds ``2**c`` integers. The first integer of a free block points to the next one. Kernels
take and give back blocks; when one finds no room it returns -1 before it has changed anything, Python calls
``grow``, and the kernel goes on where it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from overlay.matching.errors import MatcherFull
from overlay.matching.kernels import grown, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

CLASSES: Final = 31
_TOP: Final = CLASSES
_MAX_SIZE: Final = 2**31 - 1


class Arena(NamedTuple):
    """The integers, and per class the first free block; after these, where untouched room begins."""

    data: NDArray[np.int32]
    free: NDArray[np.int64]

    @classmethod
    def empty(cls, size: int = 64) -> Arena:
        free = np.full(CLASSES + 1, -1, np.int64)
        free[_TOP] = 0
        return cls(np.zeros(size, np.int32), free)

    def grow(self, least: int = 0) -> Arena:
        """Return one with the same blocks and more room; ``MatcherFull`` beyond what an ``int32`` can address."""
        size = max(len(self.data) + len(self.data) // 2, int(self.free[_TOP]) + least)
        if size > _MAX_SIZE:
            raise MatcherFull("integers in one arena", _MAX_SIZE)
        return self._replace(data=grown(self.data, size))


@kernel
def block_class(size: int) -> int:
    """Return the class of the smallest block that holds ``size`` integers."""
    found = 1
    while (1 << found) < size:
        found += 1
    return found


@kernel
def take_block(arena: Arena, size_class: int) -> Any:
    """Return where a block begins, or -1 if there is no room."""
    at = arena.free[size_class]
    if at >= 0:
        arena.free[size_class] = arena.data[at]
        return at
    at = arena.free[_TOP]
    if at + (1 << size_class) > len(arena.data):
        return -1
    arena.free[_TOP] = at + (1 << size_class)
    return at


@kernel
def free_block(arena: Arena, at: int, size_class: int) -> None:
    """Give a block back."""
    arena.data[at] = arena.free[size_class]
    arena.free[size_class] = at

"""Which pattern keys share which body: equal patterns (but for what they return) are matched once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xmlmatch.kernels import kernel
from xmlmatch.store import grown

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NONE: Final = -1


class Bodies:
    """Numbers the bodies in use; every key points at one."""

    def __init__(self) -> None:
        self._edge = np.full(64, _NONE, np.int64)  # by body; _NONE where the number is free
        self._uses = np.zeros(64, np.int32)
        self._of_edge = np.full(128, _NONE, np.int32)
        self._of_key = np.full(64, _NONE, np.int32)
        self._count = 0
        self._free: list[int] = []

    @property
    def edges(self) -> NDArray[np.int64]:
        """The edge that leads to each body's first node, -1 where a number is free."""
        return self._edge[: self._count]

    def add(self, key: int, edge: int) -> None:
        """Let ``key`` point at the body of ``edge``."""
        self._of_edge = _filled(self._of_edge, edge + 1)
        body = int(self._of_edge[edge])
        if body == _NONE:
            body = self._free.pop() if self._free else self._count
            self._count = max(self._count, body + 1)
            self._edge = _filled(self._edge, body + 1)
            self._uses = grown(self._uses, body + 1)
            self._edge[body] = edge
            self._of_edge[edge] = body
            self._uses[body] = 0
        self._uses[body] += 1
        self._of_key = _filled(self._of_key, key + 1)
        self._of_key[key] = body

    def remove(self, key: int) -> int:
        """Forget ``key`` and return its edge."""
        body = int(self._of_key[key])
        edge = int(self._edge[body])
        self._of_key[key] = _NONE
        self._uses[body] -= 1
        if not self._uses[body]:
            self._edge[body] = _NONE
            self._of_edge[edge] = _NONE
            self._free.append(body)
        return edge

    def keys_of(self, matched: NDArray[np.int32], keys: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return the keys below ``keys`` whose body is among ``matched``, and the position of each one's body."""
        rank = np.full(self._count + 1, _NONE, np.int32)  # the last entry answers for keys without a body
        rank[matched] = np.arange(len(matched), dtype=np.int32)
        found, ranks = _expand(self._of_key[:keys], rank)
        return found, ranks


def _filled(array: NDArray[Any], size: int) -> NDArray[Any]:
    """Grow an array whose free entries are ``_NONE``."""
    have = len(array)
    array = grown(array, size)
    array[have:] = _NONE
    return array


@kernel
def _expand(body: Any, rank: Any) -> Any:
    keys = np.empty(body.size, np.int64)
    ranks = np.empty(body.size, np.int32)
    n = 0
    for key in range(body.size):
        if rank[body[key]] >= 0:
            keys[n] = key
            ranks[n] = rank[body[key]]
            n += 1
    return keys[:n].copy(), ranks[:n].copy()

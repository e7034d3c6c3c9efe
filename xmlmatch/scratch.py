"""The matcher's working memory: sized by what the last documents needed, grown when the kernel says ``FULL``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from xmlmatch.set_algebra import MEMO, POOL, RESULTS, SETS, STATE_SLOTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SMALLEST: Final = 1024


class Scratch(NamedTuple):
    """Working memory for one document; ``state`` begins with what is used of each kind."""

    state: NDArray[np.int64]
    pool: NDArray[np.int32]
    set_first: NDArray[np.int64]
    """Where each set begins in ``pool``; a set ends where the next begins."""
    intern: NDArray[np.int32]
    memo: NDArray[np.int64]
    """Pairs of an operation with its operands and the set it gave; one cache line holds both."""
    sub_set: NDArray[np.int32]
    stack: NDArray[np.int32]
    marks: NDArray[np.int32]
    results: NDArray[np.int32]
    body_first: NDArray[np.int64]
    matched: NDArray[np.int32]


def _power_of_two(n: int) -> int:
    return 1 << max(n - 1, 1).bit_length()


class Capacities:
    """How much the kernel gets of each kind of memory."""

    def __init__(self) -> None:
        self._sets = _SMALLEST
        self._pool = 4 * _SMALLEST
        self._memo = 4 * _SMALLEST
        self._results = 4 * _SMALLEST
        self._stack = 32
        self._last: Scratch | None = None

    def allocate(self, *, subs: int, nodes: int, bodies: int) -> Scratch:
        """Return working memory for one run; its contents are undefined."""
        # Every operation writes at most one entry per node behind what the pool holds already.
        pool = self._pool + nodes + 1
        self._last = Scratch(
            state=np.zeros(STATE_SLOTS, np.int64),
            pool=np.empty(pool, np.int32),
            set_first=np.empty(self._sets + 2, np.int64),
            intern=np.empty(2 * self._sets, np.int32),
            memo=np.empty(2 * self._memo, np.int64),
            sub_set=np.empty(subs, np.int32),
            stack=np.empty((3, self._stack), np.int32),
            marks=np.empty(nodes, np.int32),
            results=np.empty(self._results, np.int32),
            body_first=np.empty(bodies + 1, np.int64),
            matched=np.empty(bodies, np.int32),
        )
        return self._last

    def learn(self, scratch: Scratch) -> None:
        """Size the next run by this one: tables must be cleared each time, so large ones cost."""
        used = scratch.state.tolist()
        self._sets = max(_SMALLEST, _power_of_two(2 * used[SETS]))
        self._memo = max(_SMALLEST, _power_of_two(3 * used[MEMO]))
        self._pool = max(_SMALLEST, 2 * used[POOL])
        self._results = max(_SMALLEST, 2 * used[RESULTS])
        self._last = None

    def grow(self, limit: int) -> bool:
        """Make room after ``FULL``; False if that passes ``limit`` entries in all."""
        last = self._last
        if last is None:
            return False
        used = last.state.tolist()
        before = self._sets, self._memo, self._pool, self._results
        self._sets *= 4 if 2 * used[SETS] >= self._sets else 1
        self._memo *= 4 if 2 * used[MEMO] >= self._memo else 1
        self._pool *= 4 if 2 * used[POOL] >= self._pool else 1
        self._results *= 4 if 2 * used[RESULTS] >= self._results else 1
        if before == (self._sets, self._memo, self._pool, self._results):
            self._stack *= 4  # nothing else was near its end: a pattern is deeper than the stack
        fits = self._sets + self._memo + self._pool + self._results <= limit
        if not fits:
            self.__init__()  # type: ignore[misc]  # start small again: the next document may be ordinary
        return fits

"""A clock that stands still while this thread could run and others have the cores.

On a machine with more to do than cores, what takes long by the clock on the wall may only have waited for its
turn. Linux counts that for each thread; elsewhere nothing is taken off.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import TracebackType

_WAITED: Final = "/proc/thread-self/schedstat"


class OwnTime:
    """The clock of the thread that opens it; only differences mean something.

    >>> with OwnTime() as clock:
    ...     begun = clock.now()
    ...     time.sleep(0.01)
    ...     0.005 < clock.now() - begun
    True
    """

    def __enter__(self) -> OwnTime:
        self._file: int | None = None
        with contextlib.suppress(OSError):
            self._file = os.open(_WAITED, os.O_RDONLY | os.O_CLOEXEC)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._file is not None:
            os.close(self._file)

    def now(self) -> float:
        """Return seconds."""
        if self._file is None:
            return time.perf_counter()
        return time.perf_counter() - int(os.pread(self._file, 64, 0).split()[1]) / 1e9

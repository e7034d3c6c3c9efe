"""Giving memory back to the system that a daemon needed only to start.

Numba brings all of LLVM along, about 70 MB of code and tables. A daemon needs them to load its compiled kernels,
and then hardly ever again. The pages are a file's, unchanged: the system can have them back, and reads them again
from the file should something be compiled after all.

Nor need Python look for garbage among what the start has made: modules and types, which stay.
"""

from __future__ import annotations

import ctypes
import gc
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SMAPS: Final = Path("/proc/self/smaps")
_COMPILER: Final = "libllvmlite"
_RANGE: Final = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+ +(.*)")
_DONTNEED: Final = 4
_COLLECT_AFTER: Final = (20_000, 20, 20)
"""How many new objects make Python look for cycles. Frames and results have none, so seldom is enough."""


def settle() -> None:
    """Do both: give the compiler's pages back, and let Python leave what the start has made alone."""
    give_back_compiler()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)


def give_back_compiler() -> int:
    """Give the pages of the compiler back; return how many bytes they span, 0 where there is no Linux."""
    if not _SMAPS.exists():
        return 0
    madvise = ctypes.CDLL(None, use_errno=True).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    given = 0
    for start, end in unchanged(_SMAPS.read_text().splitlines(), _COMPILER):
        if madvise(start, end - start, _DONTNEED) == 0:
            given += end - start
    return given


def unchanged(lines: Iterable[str], name: str) -> Iterator[tuple[int, int]]:
    """Yield where parts of a file are mapped that cannot be written, and have not been: as ``smaps`` tells.

    What the loader has changed must stay, although it cannot be written any more: it is not in the file.
    """
    found: tuple[int, int] | None = None
    for line in lines:
        if header := _RANGE.match(line):
            start, end, mode, path = header.groups()
            is_candidate = name in path and mode in ("r-xp", "r--p")
            found = (int(start, 16), int(end, 16)) if is_candidate else None
        elif found is not None and line.startswith("Anonymous:"):
            if line.split()[1] == "0":
                yield found
            found = None

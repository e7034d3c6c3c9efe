"""``kernel``: how this package compiles, and a cache on disk that notices every change.

Numba keeps compiled code beside the sources and compiles a function again when its own file has changed. But a
function also contains the functions it calls from other files, and of those it knows nothing: after an edit, or
a ``git pull``, it would run the old ones. So the cache is dropped whenever any file of the package has changed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import numba

_STAMP: Final = "kernels.stamp"


def forget_stale(package: Path, *below: Path) -> bool:
    """Remove the compiled code in a package's ``__pycache__`` unless its sources are as they were; say if it did.

    ``below``: the packages whose compiled functions it calls. A folder that cannot be written is left alone: it
    was installed as a whole, so it cannot be half new.
    """
    paths = [path for folder in (package, *below) for path in folder.glob("*.py")]
    seen = sorted((path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in paths)
    cache, wanted = package / "__pycache__", repr(seen)
    try:
        if (cache / _STAMP).read_text(encoding="utf-8") == wanted:
            return False
    except OSError:
        pass  # no stamp yet
    with contextlib.suppress(OSError):
        cache.mkdir(exist_ok=True)
        for path in [*cache.glob("*.nbi"), *cache.glob("*.nbc")]:
            path.unlink(missing_ok=True)
        (cache / _STAMP).write_text(wanted, encoding="utf-8")
        return True
    return False


forget_stale(Path(__file__).parent)

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(function: _Function) -> _Function:
    """Compile a function at its first call, for use without the GIL; the result is kept on disk."""
    return cast("_Function", numba.njit(cache=True, nogil=True)(function))

"""``kernel``: how this package compiles, and a cache on disk that notices every change.

Numba keeps compiled code beside the sources and compiles a function again when its own file has changed. But a
function also contains the functions it calls from other files, and of those it knows nothing: after an edit, or
a ``git pull``, it would run the old ones. So the cache is dropped whenever any file of the package has changed.

Where the sources cannot be written, as for a hardened service, compiled code lies in ``NUMBA_CACHE_DIR``, or in
the user's cache folder. It starts there with what was compiled beside the sources at set-up, if that is fresh.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import numba
from numba.core.caching import UserProvidedCacheLocator

_STAMP: Final = "kernels.stamp"
_OWN: Final = Path(__file__).parent
_CONFIG: Final[Any] = numba.config  # it fills itself from the environment, which types do not see


def settle_cache(package: Path) -> None:
    """Choose the folder for compiled code if nobody did: none for beside the sources, else the user's cache.

    ``OSError`` if there is no folder at all: compiling everything at every start would take a minute.
    """
    if _CONFIG.CACHE_DIR or _can_write(package / "__pycache__"):
        return
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "distributary-kernels")
    if not _can_write(folder):
        raise OSError(f"{folder} cannot be written; set NUMBA_CACHE_DIR to a folder for compiled code")
    _CONFIG.CACHE_DIR = str(folder)


def cache_folder(package: Path) -> Path:
    """Return where Numba keeps the compiled code of a package."""
    if not _CONFIG.CACHE_DIR:
        return package / "__pycache__"
    # Named by Numba after the folder of the sources.
    below = UserProvidedCacheLocator.get_suitable_cache_subpath(str(package / "__init__.py"))  # type: ignore[no-untyped-call]  # Numba has no types
    return Path(_CONFIG.CACHE_DIR, below)


def forget_stale(package: Path, *below: Path) -> bool:
    """Remove the compiled code of a package unless its sources are as they were; say if it did.

    ``below``: the packages whose compiled functions it calls. A folder that cannot be written is left alone: it
    was installed as a whole, so it cannot be half new.
    """
    paths = [path for folder in (package, *below) for path in folder.glob("*.py")]
    seen = sorted((path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in paths)
    cache, wanted = cache_folder(package), repr(seen)
    if _stamp(cache) == wanted:
        return False
    with contextlib.suppress(OSError):
        cache.mkdir(parents=True, exist_ok=True)
        for path in _compiled(cache):
            path.unlink(missing_ok=True)
        beside = package / "__pycache__"
        if cache != beside and _stamp(beside) == wanted:
            for path in _compiled(beside):
                shutil.copyfile(path, cache / path.name)
        (cache / _STAMP).write_text(wanted, encoding="utf-8")
        return True
    return False


def _compiled(cache: Path) -> list[Path]:
    return [*cache.glob("*.nbi"), *cache.glob("*.nbc")]


def _stamp(cache: Path) -> str | None:
    try:
        return (cache / _STAMP).read_text(encoding="utf-8")
    except OSError:
        return None  # none yet


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


settle_cache(_OWN)
forget_stale(_OWN)

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(function: _Function) -> _Function:
    """Compile a function at its first call, for use without the GIL; the result is kept on disk."""
    return cast("_Function", numba.njit(cache=True, nogil=True)(function))

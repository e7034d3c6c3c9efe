"""Files that nobody else may read, and that are either as they were or as they should be.

A file is written beside its place, forced to disk, renamed into place, and the renaming forced to disk: a crash at
any point leaves the old content or the new one. What a crash leaves beside it is overwritten by the next write.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

from overlay.identity.errors import BadCredential

if TYPE_CHECKING:
    from pathlib import Path

LARGEST_FILE: Final = 1 << 20

_OTHERS: Final = 0o077


def make_private_folder(folder: Path) -> None:
    """Make a folder that only its owner may enter; one that is there already is closed to others."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if stat.S_IMODE(folder.stat().st_mode) != 0o700:
        folder.chmod(0o700)
    sync_folder(folder.parent)


def write_private(path: Path, data: bytes) -> None:
    """Replace a file's content, durably; the folder is there. An ``OSError`` leaves the old content."""
    partial = path.with_name(path.name + ".partial")
    partial.unlink(missing_ok=True)
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Force the names in a folder to disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_private(path: Path, remedy: str) -> bytes:
    """Read a secret file, or raise ``BadCredential`` if it is missing, too large, or open to others."""
    return _read(path, remedy, _OTHERS)


def read_public(path: Path, remedy: str) -> bytes:
    """Read a file that others may know, or raise ``BadCredential`` if it is missing or too large."""
    return _read(path, remedy, 0)


def _read(path: Path, remedy: str, forbidden: int) -> bytes:
    try:
        with path.open("rb") as file:
            # The mode of the very file that is read: the name may come to mean another one meanwhile.
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & forbidden:
                raise BadCredential(path, f"others may use it (mode {mode:o})", f"run: chmod 600 '{path}'")
            data = file.read(LARGEST_FILE + 1)
    except OSError as exc:
        raise BadCredential(path, exc.strerror or "it cannot be read", remedy) from exc
    if len(data) > LARGEST_FILE:
        raise BadCredential(path, "it is too large to be what it should", remedy)
    return data

"""The files of a store: private, forced to disk, and never mixed with what another store left behind."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from peer.storage.errors import BrokenStore, DiskFull, StorageError, Unstorable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ENDINGS: Final = ("", "-wal", "-shm", "-journal")
_OTHERS: Final = 0o077


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn what SQLite and the file system report about a file into this package's errors."""
    try:
        yield
    except OSError as exc:
        if exc.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(path) from exc
        raise BrokenStore(path, exc.strerror or str(exc)) from exc
    except sqlite3.DatabaseError as exc:
        if exc.sqlite_errorname == "SQLITE_FULL":
            raise DiskFull(path) from exc
        # The other subclasses tell of statements that are wrong: those are bugs, and pass as they are.
        if type(exc) in (sqlite3.DatabaseError, sqlite3.OperationalError):
            raise BrokenStore(path, f"{exc} ({exc.sqlite_errorname})") from exc
        raise


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """Turn whatever else happens while something is written into ``Unstorable``: the boundary of a store, behind
    which many changes wait for one of them."""
    try:
        yield
    except StorageError:
        raise
    except Exception as exc:  # one that nobody thought of: it is refused, and the others are written
        raise Unstorable(path, exc) from exc


def refuse_existing(path: Path) -> None:
    """Raise ``BrokenStore`` if anything of a store stands at a path.

    A write-ahead log without its store counts: SQLite would replay it into whatever is put beside it.
    """
    for there in files_of(path):
        if there.exists():
            raise BrokenStore(there, "it is there already; move it away or name another file")


def remove_store(path: Path) -> None:
    """Remove what an interrupted copy left at a path."""
    for there in files_of(path):
        there.unlink(missing_ok=True)


def files_of(path: Path) -> list[Path]:
    """List the files that SQLite may keep for a store."""
    return [path.with_name(path.name + ending) for ending in _ENDINGS]


def close_to_others(path: Path) -> None:
    """Take a file's use from everybody but its owner."""
    if stat.S_IMODE(path.stat().st_mode) & _OTHERS:
        path.chmod(0o600)


def make_private_file(path: Path) -> None:
    """Make an empty file that only its owner may use, and its folder if there is none."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    _sync(path.parent)


def put_in_place(partial: Path, path: Path) -> None:
    """Force a complete file to disk and give it its name."""
    _sync(partial)
    partial.replace(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

"""Making a source's log from a backup."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from peer.storage.errors import BrokenStore, NewerStore
from peer.storage.source_log import SourceLog
from peer.storage.store_file import make_private_file, put_in_place, refuse_existing, remove_store, translated

if TYPE_CHECKING:
    from pathlib import Path

    from peer.storage.log_values import Extent


def read_backup(backup: Path, key: str) -> tuple[int, bytes | None]:
    """Return the highest number in a backup, and the state under a key; the backup is only read.

    ``BrokenStore`` if it is no log; whether it is a sound one, ``restore`` finds out.
    """
    if not backup.is_file():
        raise BrokenStore(backup, "there is no such file")
    address = f"{backup.absolute().as_uri()}?mode=ro&immutable=1"
    try:
        with translated(backup), closing(sqlite3.connect(address, uri=True)) as connection:
            [last] = connection.execute("SELECT last FROM extent").fetchone()
            row = connection.execute("SELECT value FROM state WHERE key = ?", (key,)).fetchone()
            return int(last), None if row is None else bytes(row[0])
    except BrokenStore as exc:
        raise BrokenStore(backup, f"this is no backup: {exc.why}; name what 'network backup' wrote") from exc


def restore(backup: Path, path: Path, *, above: int, generation_above: int = 0) -> Extent:
    """Make a log from a backup where there is none; return its extent. The backup is only read.

    ``above`` is the highest number that any peer has reported, ``generation_above`` the highest generation.
    Without them, two restores of one backup would give the same numbers to different documents. A crash leaves
    nothing at the path, or all.
    """
    refuse_existing(path)
    if backup.with_name(backup.name + "-wal").exists():
        raise BrokenStore(backup, "a write-ahead log lies beside it, so it is a store in use and not a backup")
    partial = path.with_name(path.name + ".partial")
    with translated(path):
        remove_store(partial)
        make_private_file(partial)
    try:
        with translated(backup):
            shutil.copyfile(backup, partial)
        extent = _renumber(backup, partial, above, generation_above)
        with translated(path):
            put_in_place(partial, path)
    finally:
        remove_store(partial)
    return extent


def _renumber(backup: Path, copy: Path, above: int, generation_above: int) -> Extent:
    try:
        with SourceLog.open(copy) as log:
            return log.begin_generation(above, generation_above=generation_above)
    except BrokenStore as exc:
        # The copy is gone when the message is read.
        raise BrokenStore(backup, exc.why) from exc
    except NewerStore as exc:
        raise NewerStore(backup, exc.found, exc.known) from exc

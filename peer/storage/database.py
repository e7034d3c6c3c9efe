"""One SQLite file: a connection that writes, and for each reader at work a connection that only reads.

A transaction is durable when its block ends: the write-ahead log is forced to disk at every commit. A block that
fails leaves nothing behind. Readers see whole transactions, all of one moment, and never wait for the writer.

``transaction`` belongs to the writer: any thread, but one at a time, which is checked. ``reading`` and ``backup``
may be called from any thread at any time. ``close`` is the writer's, and comes after the readers have ended.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from peer.storage.errors import BrokenStore, LocalMisuse, NewerStore
from peer.storage.store_file import (
    close_to_others,
    make_private_file,
    put_in_place,
    refuse_existing,
    remove_store,
    translated,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BUSY_S: Final = 5.0
# What a burst leaves of the write-ahead log on disk once it has been copied into the file.
KEPT_WAL_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Schema:
    """A kind of store: ``steps[i]`` are the statements that bring format ``i`` to format ``i + 1``."""

    what: str
    application_id: int
    steps: tuple[tuple[str, ...], ...]


class Database:
    """An open store file of one schema; a file that is not there is made, an older one is brought up to date."""

    def __init__(self, path: Path, schema: Schema) -> None:
        self.path = path
        self._turn = threading.RLock()
        self._depth = 0
        self._failed_inside = False
        self._idle: list[sqlite3.Connection] = []
        self._idle_lock = threading.Lock()
        self._is_closed = False
        with translated(path):
            if path.exists():
                close_to_others(path)
            else:
                make_private_file(path)
            self._writer = _connect(path, "rw")
            try:
                _prepare(self._writer, path, schema)
            except BaseException:
                self._writer.close()
                raise

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Make everything in the block one durable transaction; writer only.

        Blocks may be nested: all is committed with the outermost one, or nothing.
        """
        if not self._turn.acquire(blocking=False):
            raise LocalMisuse(f"{self.path}: two threads write at once")
        try:
            with self._inner() if self._depth else self._outer() as connection:
                yield connection
        finally:
            self._turn.release()

    @contextmanager
    def _outer(self) -> Iterator[sqlite3.Connection]:
        with translated(self.path):
            self._writer.execute("BEGIN IMMEDIATE")
            self._depth, self._failed_inside = 1, False
            try:
                yield self._writer
                if self._failed_inside:
                    raise LocalMisuse(f"{self.path}: a part of this transaction failed, so it cannot be committed")
                self._writer.execute("COMMIT")
            except BaseException:
                # SQLite ends the transaction by itself after some errors, a full disk among them.
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise
            finally:
                self._depth = 0

    @contextmanager
    def _inner(self) -> Iterator[sqlite3.Connection]:
        try:
            yield self._writer
        except BaseException:
            self._failed_inside = True
            raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection that reads what was committed at one moment; any thread.

        It does not see what a transaction still open has written.
        """
        with translated(self.path):
            connection = self._borrow()
            try:
                connection.execute("BEGIN")
                yield connection
                connection.execute("ROLLBACK")
            except BaseException:
                connection.close()
                raise
            self._give_back(connection)

    def _borrow(self) -> sqlite3.Connection:
        with self._idle_lock:
            if self._is_closed:
                raise LocalMisuse(f"{self.path}: it is closed")
            if self._idle:
                return self._idle.pop()
        return _connect(self.path, "ro")

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._idle_lock:
            if not self._is_closed:
                self._idle.append(connection)
                return
        connection.close()

    def backup(self, path: Path) -> None:
        """Copy the store as it is at one moment to a file that is not there yet; any thread.

        The writer goes on meanwhile. The file appears under its name when it is complete and on disk.
        """
        refuse_existing(path)
        partial = path.with_name(path.name + ".partial")
        with self.reading() as connection, translated(path):
            remove_store(partial)
            make_private_file(partial)
            with closing(sqlite3.connect(partial)) as copy:
                connection.backup(copy)
            put_in_place(partial, path)

    def close(self) -> None:
        """Close every connection; writer only."""
        with self._idle_lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        # Last, for the last connection to close copies the write-ahead log into the file.
        with translated(self.path):
            self._writer.close()


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    # Threads take turns with a connection and never share it at one moment, so SQLite's own check is off.
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=BUSY_S,
        isolation_level=None,
        check_same_thread=False,
    )


def _prepare(connection: sqlite3.Connection, path: Path, schema: Schema) -> None:
    _check(connection, path, schema)
    [[journal]] = connection.execute("PRAGMA journal_mode = WAL")
    if journal != "wal":
        raise BrokenStore(path, "its file system cannot share memory between processes; use a local disk")
    for setting in (
        "synchronous = FULL",
        "foreign_keys = ON",
        "trusted_schema = OFF",
        # On macOS an fsync stops at the drive's cache unless it is asked for in this way.
        "fullfsync = ON",
        "checkpoint_fullfsync = ON",
        f"journal_size_limit = {KEPT_WAL_BYTES}",
    ):
        connection.execute(f"PRAGMA {setting}").fetchall()
    _migrate(connection, schema)


def _check(connection: sqlite3.Connection, path: Path, schema: Schema) -> None:
    [[tables]] = connection.execute("SELECT count(*) FROM sqlite_schema")
    if not tables:
        return
    [[application_id]] = connection.execute("PRAGMA application_id")
    if application_id != schema.application_id:
        raise BrokenStore(path, f"it is not {schema.what}; name another file or move this one away")
    [[found]] = connection.execute("PRAGMA user_version")
    if found > len(schema.steps):
        raise NewerStore(path, found, len(schema.steps))


def _migrate(connection: sqlite3.Connection, schema: Schema) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        [[found]] = connection.execute("PRAGMA user_version")
        for statements in schema.steps[found:]:
            for statement in statements:
                connection.execute(statement)
        if found < len(schema.steps):
            connection.execute(f"PRAGMA application_id = {schema.application_id}")
            connection.execute(f"PRAGMA user_version = {len(schema.steps)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise

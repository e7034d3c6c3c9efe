"""The source's log: documents, subscriptions and their ends, in spaces too, under one numbering, durable before it
is told.

Numbers begin at 1 and belong to a *generation*. A source that is restored from a backup does not know what it
numbered since, so it begins a new generation behind every number that peers have seen; the numbers between are a
hole, which readers get as ``Missing``.

``append``, ``trim``, ``begin_generation``, ``close`` and what ``SourceCatalog`` says belong to the writer: one
thread at a time. Everything else may be called from any thread, beside the writer.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from peer.storage.appending import Appending
from peer.storage.budget import last_that_fits
from peer.storage.database import Database
from peer.storage.log_values import Extent, Missing, Retention, StoredDocument
from peer.storage.source_catalog import SourceCatalog
from peer.storage.source_schema import SOURCE_SCHEMA
from peer.storage.space_records import SpaceRecords
from peer.storage.store_file import storing

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import TracebackType

    from peer.storage.log_values import Appended, NewEntry, Refused

# Bounds what one transaction of a long trim holds in the write-ahead log.
TRIMMED_AT_ONCE: Final = 5000
_DOCUMENT: Final = "SELECT number, publisher, name, at, body FROM documents"


class SourceLog(SourceCatalog):
    """An open log; a context manager that closes it."""

    def __init__(self, database: Database, limits: Retention, clock: Callable[[], float]) -> None:
        super().__init__(database)
        self.spaces = SpaceRecords(database)
        self._limits = limits
        self._clock = clock

    @classmethod
    def open(
        cls, path: Path, *, limits: Retention | None = None, clock: Callable[[], float] = time.time
    ) -> SourceLog:
        """Open or make a log; ``clock`` gives seconds since 1970."""
        return cls(Database(path, SOURCE_SCHEMA), limits or Retention(), clock)

    def close(self) -> None:
        """Close the file; every reader has ended."""
        self._database.close()

    def __enter__(self) -> SourceLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def extent(self) -> Extent:
        """Return the generation and the ends of the log, as of one moment."""
        with self._database.reading() as connection:
            return _extent(connection)

    @property
    def generation(self) -> int:
        """The generation that numbers belong to."""
        return self.extent().generation

    @property
    def last(self) -> int:
        """The highest number given."""
        return self.extent().last

    @property
    def lowest(self) -> int:
        """The highest number of a document that was dropped."""
        return self.extent().lowest

    def append(self, entries: Sequence[NewEntry]) -> list[Appended | Refused]:
        """Append entries in one durable transaction and say of each, in order, what became of it.

        The same publication, subscription or withdrawal again, also twice among these, gets its first number.
        ``Unstorable`` if one of them cannot be written, and then none is.
        """
        with storing(self._database.path), self._database.transaction() as connection:
            appending = Appending.behind(_extent(connection), connection, self._clock())
            outcomes = [appending.add(entry) for entry in entries]
            connection.execute(
                "UPDATE extent SET last = ?, held_bytes = held_bytes + ? WHERE last < ?",
                (appending.last, appending.added_bytes, appending.last),
            )
            return outcomes

    def document(self, number: int) -> StoredDocument | None:
        """Return the document of a number, None if it is not there or the number is no document's."""
        with self._database.reading() as connection:
            row = connection.execute(f"{_DOCUMENT} WHERE number = ?", (number,)).fetchone()
            return None if row is None else StoredDocument(*row)

    def documents(self, after: int, upto: int, max_bytes: int) -> list[StoredDocument | Missing]:
        """List the documents in (after, upto] in order, as many as fit into ``max_bytes`` and at least one.

        Where documents were dropped or lost, a ``Missing`` stands in their place. To go on, ask behind the last
        item; an empty list means that there is nothing in the interval.
        """
        with self._database.reading() as connection:
            gaps = _missing(connection, after, upto)
            sizes = connection.execute(
                "SELECT number, size FROM documents WHERE number > ? AND number <= ? ORDER BY number",
                (after, upto),
            )
            end = last_that_fits(sizes, max_bytes)
            sizes.close()
            if end is None:
                return [*gaps]
            rows = connection.execute(
                f"{_DOCUMENT} WHERE number > ? AND number <= ? ORDER BY number", (after, end)
            )
            items = [StoredDocument(*row) for row in rows]
            # What lies behind the last document is told when it is asked for: this may not be the end.
            return sorted([*items, *(gap for gap in gaps if gap.after < end)], key=_position)

    def trim(self, now: float) -> int:
        """Drop the oldest documents beyond the limits, then old keys; return the new ``lowest``.

        A long trim is many transactions: a crash leaves some of it done.
        """
        while True:
            with self._database.transaction() as connection:
                dropped = _trim_documents(connection, self._limits, now)
                if dropped < TRIMMED_AT_ONCE:
                    _trim_keys(connection, self._limits, now)
                    return _extent(connection).lowest

    def begin_generation(self, number_above: int, *, generation_above: int = 0) -> Extent:
        """Begin a generation, above the present one and ``generation_above``.

        Numbers go on behind ``number_above``; those that this skips are a hole from then on.
        """
        with self._database.transaction() as connection:
            was = _extent(connection)
            if number_above > was.last:
                connection.execute("INSERT INTO holes (after, upto) VALUES (?, ?)", (was.last, number_above))
            connection.execute(
                "UPDATE extent SET generation = ?, last = ?",
                (max(was.generation, generation_above) + 1, max(was.last, number_above)),
            )
            return _extent(connection)

    def backup(self, path: Path) -> None:
        """Write a consistent copy to a file that is not there yet, while the log is in use."""
        self._database.backup(path)


def _extent(connection: sqlite3.Connection) -> Extent:
    [row] = connection.execute("SELECT generation, lowest, last, held_bytes FROM extent")
    return Extent(*row)


def _position(item: StoredDocument | Missing) -> int:
    return item.upto if isinstance(item, Missing) else item.number


def _missing(connection: sqlite3.Connection, after: int, upto: int) -> list[Missing]:
    lowest = _extent(connection).lowest
    gaps = [(after, lowest)] if after < lowest else []
    gaps += connection.execute(
        "SELECT after, upto FROM holes WHERE upto > ? ORDER BY after", (max(after, lowest),)
    )
    return [Missing(max(begin, after), min(end, upto)) for begin, end in gaps if max(begin, after) < upto]


def _trim_documents(connection: sqlite3.Connection, limits: Retention, now: float) -> int:
    held = _extent(connection).held_bytes
    lowest = None
    dropped = 0
    rows = connection.execute("SELECT number, size, at FROM documents ORDER BY number LIMIT ?", (TRIMMED_AT_ONCE,))
    for number, size, at in rows:
        if held <= limits.document_bytes and at > now - limits.document_age_s:
            break
        held -= size
        lowest = number
        dropped += 1
    rows.close()
    if lowest is not None:
        connection.execute("DELETE FROM documents WHERE number <= ?", (lowest,))
        connection.execute("UPDATE extent SET lowest = ?, held_bytes = ?", (lowest, held))
    return dropped


def _trim_keys(connection: sqlite3.Connection, limits: Retention, now: float) -> None:
    lowest = _extent(connection).lowest
    young = connection.execute(
        "SELECT number FROM keys WHERE at > ? ORDER BY number LIMIT 1", (now - limits.key_age_s,)
    ).fetchone()
    surplus = connection.execute(
        "SELECT number FROM keys WHERE number <= ? ORDER BY number DESC LIMIT 1 OFFSET ?", (lowest, limits.keys)
    ).fetchone()
    old = lowest if young is None else young[0] - 1
    upto = min(lowest, max(old, 0 if surplus is None else surplus[0]))
    connection.execute("DELETE FROM keys WHERE number <= ?", (upto,))

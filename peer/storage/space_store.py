"""What a subscriber's machine keeps of the content-driven network: spaces, subscriptions, and their messages.

It lives in a file of its own. Everything of one call is one durable transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from peer.storage.database import Database, Schema
from peer.storage.errors import LocalMisuse
from peer.storage.result_values import Cursor, DropCursor

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence
    from pathlib import Path

_FIRST: Final = (
    "CREATE TABLE spaces (name TEXT PRIMARY KEY, body BLOB NOT NULL)",
    "CREATE TABLE records (at INTEGER PRIMARY KEY AUTOINCREMENT, space TEXT NOT NULL, body BLOB NOT NULL)",
    "CREATE TABLE published (space TEXT, publisher TEXT, key TEXT, number INTEGER NOT NULL,"
    " PRIMARY KEY (space, publisher, key)) WITHOUT ROWID",
    "CREATE TABLE subscriptions (name TEXT PRIMARY KEY, space TEXT NOT NULL, filter TEXT NOT NULL,"
    " start INTEGER NOT NULL, end INTEGER)",
    "CREATE TABLE messages (subscription TEXT, number INTEGER, body BLOB NOT NULL,"
    " PRIMARY KEY (subscription, number)) WITHOUT ROWID",
    "CREATE TABLE complete (space TEXT PRIMARY KEY, upto INTEGER NOT NULL, gap INTEGER NOT NULL)",
)
# The source kept its part here before it was in the log: ``earlier_spaces`` takes it over.
EARLIER: Final = Schema("a store of spaces", 0x44435350, (_FIRST,))
_IN_THE_LOG: Final = ("DROP TABLE records", "DROP TABLE published")
_GAPS: Final = (
    "CREATE TABLE gaps (subscription TEXT, after INTEGER, upto INTEGER NOT NULL,"
    " PRIMARY KEY (subscription, after)) WITHOUT ROWID",
)
_CURSORS: Final = (
    "CREATE TABLE cursors (subscription TEXT, name TEXT, upto INTEGER NOT NULL,"
    " PRIMARY KEY (subscription, name)) WITHOUT ROWID",
)
_SCHEMA: Final = Schema(EARLIER.what, EARLIER.application_id, (*EARLIER.steps, _IN_THE_LOG, _GAPS, _CURSORS))


class SpaceSubscription(NamedTuple):
    """A subscription of this machine in a space; it is owed the numbers in (start, end]."""

    name: str
    space: str
    filter: str
    start: int
    end: int | None


class SpaceStore:
    """The open file; one thread writes at a time."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path, _SCHEMA)

    def close(self) -> None:
        """Close it."""
        self._database.close()

    def spaces(self) -> dict[str, bytes]:
        """Return the spaces that are known, as they were declared."""
        with self._database.reading() as reader:
            return dict(reader.execute("SELECT name, body FROM spaces ORDER BY name"))

    def put_space(self, name: str, body: bytes, key: str, before: Iterable[str]) -> None:
        """Keep a space, in place of an earlier one of that name; what was complete in those ``before`` it is in
        it."""
        with self._database.transaction() as writer:
            writer.execute("INSERT OR REPLACE INTO spaces VALUES (?, ?)", (name, body))
            for earlier in before:
                writer.execute(
                    "INSERT OR IGNORE INTO complete SELECT ?, upto, gap FROM complete WHERE space = ?",
                    (key, earlier),
                )

    def put_subscriptions(
        self, subscriptions: Iterable[SpaceSubscription], gaps: Iterable[tuple[str, int, int]] = ()
    ) -> None:
        """Keep subscriptions of this machine, and between which numbers they may miss something."""
        with self._database.transaction() as writer:
            writer.executemany("INSERT OR REPLACE INTO subscriptions VALUES (?, ?, ?, ?, ?)", subscriptions)
            writer.executemany("INSERT OR REPLACE INTO gaps VALUES (?, ?, ?)", gaps)

    def gaps(self, subscription: str, after: int, upto: int) -> list[tuple[int, int]]:
        """Return the gaps of a subscription that have something of (after, upto], in order."""
        with self._database.reading() as reader:
            return _gaps(reader, subscription, after, upto)

    def subscriptions(self) -> dict[str, SpaceSubscription]:
        """Return the subscriptions of this machine."""
        with self._database.reading() as reader:
            rows = reader.execute("SELECT name, space, filter, start, end FROM subscriptions ORDER BY name")
            return {row[0]: SpaceSubscription(*row) for row in rows}

    def receive(
        self, messages: Iterable[tuple[str, int, bytes]], complete: Iterable[tuple[str, int, int]] = ()
    ) -> None:
        """Keep messages, each once per subscription; and up to where spaces are complete."""
        with self._database.transaction() as writer:
            writer.executemany("INSERT OR IGNORE INTO messages VALUES (?, ?, ?)", messages)
            writer.executemany(
                "INSERT INTO complete VALUES (?, ?, ?) ON CONFLICT (space) DO UPDATE SET"
                " upto = max(upto, excluded.upto), gap = max(gap, excluded.gap)",
                complete,
            )

    def trim(self, subscription: str, most: int, hardest: int) -> None:
        """Drop the oldest messages of a subscription beyond so many, but none that a cursor has yet to read, up to
        the hard limit. They are a gap from then on."""
        with self._database.transaction() as writer:
            [done] = writer.execute(
                "SELECT min(upto) FROM cursors WHERE subscription = ?", (subscription,)
            ).fetchone()
            upto = _nth_newest(writer, subscription, most)
            if done is not None:
                upto = max(min(upto, done), _nth_newest(writer, subscription, hardest))
            dropped = writer.execute(
                "DELETE FROM messages WHERE subscription = ? AND number <= ?", (subscription, upto)
            )
            if dropped.rowcount:
                writer.execute(
                    "INSERT INTO gaps SELECT name, start, ? FROM subscriptions WHERE name = ?"
                    " ON CONFLICT (subscription, after) DO UPDATE SET upto = max(upto, excluded.upto)",
                    (upto, subscription),
                )

    def cursors(self, subscription: str) -> dict[str, int]:
        """Return the cursors of a subscription, and where they are."""
        with self._database.reading() as reader:
            rows = reader.execute(
                "SELECT name, upto FROM cursors WHERE subscription = ? ORDER BY name", (subscription,)
            )
            return dict(rows.fetchall())

    def commit(self, changes: Sequence[Cursor | DropCursor]) -> None:
        """Move cursors, never back, or forget them; ``LocalMisuse`` for one beyond what is complete."""
        with self._database.transaction() as writer:
            for one in changes:
                if isinstance(one, DropCursor):
                    key = one.subscription, one.name
                    writer.execute("DELETE FROM cursors WHERE subscription = ? AND name = ?", key)
                else:
                    upto = _complete_of(writer, one.subscription)
                    if one.upto > upto:
                        raise LocalMisuse(f"cursor {one.name} of {one.subscription} is beyond {upto}")
                    writer.execute(
                        "INSERT INTO cursors VALUES (?, ?, ?) ON CONFLICT (subscription, name) DO UPDATE SET"
                        " upto = max(upto, excluded.upto)",
                        (one.subscription, one.name, one.upto),
                    )

    def complete(self, space: str) -> tuple[int, int]:
        """Return up to where everything of a space is here, and up to where there may be gaps."""
        with self._database.reading() as reader:
            found = reader.execute("SELECT upto, gap FROM complete WHERE space = ?", (space,)).fetchone()
        return (0, 0) if found is None else (int(found[0]), int(found[1]))

    def messages(self, subscription: str, after: int, upto: int, most: int) -> list[tuple[int, dict[str, str]]]:
        """Return messages of a subscription with numbers in (after, upto], in order, at most so many."""
        with self._database.reading() as reader:
            return _messages(reader, subscription, after, upto, most)

    def page(
        self, subscription: str, after: int, upto: int, most: int
    ) -> tuple[list[tuple[int, int]], list[tuple[int, dict[str, str]]]]:
        """Return gaps and messages as they are at one moment: what is dropped meanwhile is in one or the other."""
        with self._database.reading() as reader:
            gaps = _gaps(reader, subscription, after, upto)
            return gaps, _messages(reader, subscription, after, upto, most)


def _gaps(reader: sqlite3.Connection, subscription: str, after: int, upto: int) -> list[tuple[int, int]]:
    rows = reader.execute(
        "SELECT after, upto FROM gaps WHERE subscription = ? AND upto > ? AND after < ? ORDER BY after",
        (subscription, after, upto),
    )
    return [(int(begin), int(end)) for begin, end in rows]


def _messages(
    reader: sqlite3.Connection, subscription: str, after: int, upto: int, most: int
) -> list[tuple[int, dict[str, str]]]:
    rows = reader.execute(
        "SELECT number, body FROM messages WHERE subscription = ? AND number > ? AND number <= ?"
        " ORDER BY number LIMIT ?",
        (subscription, after, upto, most),
    )
    return [(int(number), msgspec.msgpack.decode(body, type=dict[str, str])) for number, body in rows]


def _complete_of(writer: sqlite3.Connection, subscription: str) -> int:
    """Return up to where a subscription has everything, or has begun."""
    row = writer.execute(
        "SELECT max(start, coalesce(complete.upto, 0)) FROM subscriptions"
        " LEFT JOIN complete ON complete.space = subscriptions.space WHERE name = ?",
        (subscription,),
    ).fetchone()
    return 0 if row is None else int(row[0])


def _nth_newest(writer: sqlite3.Connection, subscription: str, most: int) -> int:
    """Return the number of the first message beyond the newest ones, 0 if there are not so many."""
    row = writer.execute(
        "SELECT number FROM messages WHERE subscription = ? ORDER BY number DESC LIMIT 1 OFFSET ?",
        (subscription, most),
    ).fetchone()
    return 0 if row is None else int(row[0])

"""What a subscriber's machine keeps of the content-driven network: spaces, subscriptions, and their messages.

It lives in a file of its own. Everything of one call is one durable transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from peer.storage.database import Database, Schema

if TYPE_CHECKING:
    from collections.abc import Iterable
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
_SCHEMA: Final = Schema(EARLIER.what, EARLIER.application_id, (*EARLIER.steps, _IN_THE_LOG, _GAPS))


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
        """Return the gaps of a subscription that end in (after, upto], in order."""
        with self._database.reading() as reader:
            rows = reader.execute(
                "SELECT after, upto FROM gaps WHERE subscription = ? AND upto > ? AND upto <= ? ORDER BY after",
                (subscription, after, upto),
            )
            return [(int(begin), int(end)) for begin, end in rows]

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

    def trim(self, subscription: str, most: int) -> None:
        """Drop the oldest messages of a subscription beyond so many."""
        with self._database.transaction() as writer:
            writer.execute(
                "DELETE FROM messages WHERE subscription = ? AND number <= (SELECT number FROM messages"
                " WHERE subscription = ? ORDER BY number DESC LIMIT 1 OFFSET ?)",
                (subscription, subscription, most),
            )

    def complete(self, space: str) -> tuple[int, int]:
        """Return up to where everything of a space is here, and up to where there may be gaps."""
        with self._database.reading() as reader:
            found = reader.execute("SELECT upto, gap FROM complete WHERE space = ?", (space,)).fetchone()
        return (0, 0) if found is None else (int(found[0]), int(found[1]))

    def messages(self, subscription: str, after: int, upto: int, most: int) -> list[tuple[int, dict[str, str]]]:
        """Return messages of a subscription with numbers in (after, upto], in order, at most so many."""
        with self._database.reading() as reader:
            rows = reader.execute(
                "SELECT number, body FROM messages WHERE subscription = ? AND number > ? AND number <= ?"
                " ORDER BY number LIMIT ?",
                (subscription, after, upto, most),
            ).fetchall()
        return [(int(number), msgspec.msgpack.decode(body, type=dict[str, str])) for number, body in rows]

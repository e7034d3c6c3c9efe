"""The tables of the source's log. A format is never edited once released: a change is one more step."""

from __future__ import annotations

from typing import Final

from peer.storage.database import Schema

# Every number of the log is that of a document, of a subscription, of the end of one, or of a change in a space;
# those in holes are nobody's.
# Bodies stand last in their rows: reading the columns before them leaves their pages alone.
_FIRST: Final = (
    """
    CREATE TABLE extent (
        only INTEGER PRIMARY KEY CHECK (only = 1),
        generation INTEGER NOT NULL, lowest INTEGER NOT NULL, last INTEGER NOT NULL, held_bytes INTEGER NOT NULL
    )
    """,
    "INSERT INTO extent VALUES (1, 1, 0, 0, 0)",
    """
    CREATE TABLE holes (
        after INTEGER PRIMARY KEY, upto INTEGER NOT NULL CHECK (upto > after)
    )
    """,
    """
    CREATE TABLE documents (
        number INTEGER PRIMARY KEY, size INTEGER NOT NULL, at REAL NOT NULL,
        publisher TEXT NOT NULL, name TEXT NOT NULL, body BLOB NOT NULL
    )
    """,
    # Hashes in place of publishers, keys and bodies: a row has one size, whatever publishers choose.
    """
    CREATE TABLE keys (
        number INTEGER PRIMARY KEY, at REAL NOT NULL, key BLOB NOT NULL UNIQUE, content BLOB NOT NULL
    )
    """,
    """
    CREATE TABLE subscriptions (
        number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, pattern TEXT NOT NULL, columns BLOB NOT NULL,
        site TEXT NOT NULL, feed_limit INTEGER, start INTEGER NOT NULL, ended INTEGER UNIQUE
    )
    """,
    """
    CREATE TABLE sites (
        name TEXT PRIMARY KEY, addresses BLOB NOT NULL, capacity INTEGER, last_seen REAL NOT NULL
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE configurations (
        subscription TEXT PRIMARY KEY,
        generation INTEGER NOT NULL, epoch INTEGER NOT NULL, revision INTEGER NOT NULL, body BLOB NOT NULL
    )
    """,
    "CREATE TABLE state (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
)

# What is an entry of the log in a space has its number, the other records of spaces have none; ``at`` is the order
# in which they were written.
_SPACES: Final = (
    "CREATE TABLE spaces (name TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID",
    """
    CREATE TABLE space_records (
        at INTEGER PRIMARY KEY AUTOINCREMENT, space TEXT NOT NULL, number INTEGER UNIQUE, body BLOB NOT NULL
    )
    """,
    "CREATE INDEX space_records_by_space ON space_records (space, at)",
)

SOURCE_SCHEMA: Final = Schema("a source's log", 0x44536C67, (_FIRST, _SPACES))

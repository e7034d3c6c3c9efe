"""The tables of a peer's results. A format is never edited once released: a change is one more step."""

from __future__ import annotations

from typing import Final

from peer.storage.database import Schema

_FIRST: Final = (
    """
    CREATE TABLE hosted (
        key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, pattern TEXT NOT NULL, columns BLOB NOT NULL,
        start INTEGER NOT NULL, state TEXT NOT NULL, end_number INTEGER, ended_at REAL,
        generation INTEGER, epoch INTEGER, revision INTEGER, configuration BLOB
    )
    """,
    # Apart from the subscription, whose configuration would be written again with every step.
    """
    CREATE TABLE frontiers (
        hosted INTEGER PRIMARY KEY REFERENCES hosted ON DELETE CASCADE,
        generation INTEGER NOT NULL, upto INTEGER NOT NULL, lowest INTEGER NOT NULL
    )
    """,
    # By ``seq`` in the order of arrival, which within a subscription is that of the numbers.
    """
    CREATE TABLE results (
        seq INTEGER PRIMARY KEY, hosted INTEGER NOT NULL REFERENCES hosted ON DELETE CASCADE,
        number INTEGER NOT NULL, kind INTEGER NOT NULL, after INTEGER, size INTEGER NOT NULL, at REAL NOT NULL,
        name TEXT NOT NULL, data BLOB NOT NULL, UNIQUE (hosted, number)
    )
    """,
    # What trimming looks at, without the pages that hold the data.
    "CREATE INDEX results_in_order ON results (seq, hosted, number, size, at)",
    """
    CREATE TABLE cursors (
        hosted INTEGER NOT NULL REFERENCES hosted ON DELETE CASCADE, name TEXT NOT NULL, upto INTEGER NOT NULL,
        PRIMARY KEY (hosted, name)
    ) WITHOUT ROWID
    """,
    "CREATE TABLE totals (only INTEGER PRIMARY KEY CHECK (only = 1), held_bytes INTEGER NOT NULL)",
    "INSERT INTO totals VALUES (1, 0)",
)

# References: the row that has the document. It is dropped after those that refer to it.
_REFERENCES: Final = (
    "ALTER TABLE results ADD COLUMN document INTEGER REFERENCES results",
    "CREATE INDEX results_by_document ON results (document) WHERE document IS NOT NULL",
)

# Who keeps step with a relay: where it stands is where the relay does, and what it has is noted with the document,
# a byte per subscription at the place of its key. So a document takes as many rows for a thousand as for one.
_FOLLOWERS: Final = (
    "ALTER TABLE frontiers ADD COLUMN follows INTEGER REFERENCES frontiers",
    "CREATE INDEX frontiers_by_relay ON frontiers (follows) WHERE follows IS NOT NULL",
    """
    CREATE TABLE followed (
        number INTEGER NOT NULL, document INTEGER NOT NULL REFERENCES results ON DELETE CASCADE,
        followers BLOB NOT NULL, PRIMARY KEY (number, document)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX followed_by_document ON followed (document)",
    """
    CREATE VIEW standings AS
        SELECT own.hosted AS hosted, coalesce(relay.generation, own.generation) AS generation,
            coalesce(relay.upto, own.upto) AS upto, own.lowest AS lowest, own.follows AS follows
        FROM frontiers AS own LEFT JOIN frontiers AS relay ON relay.hosted = own.follows
    """,
)

RESULT_SCHEMA: Final = Schema("a peer's store of results", 0x44537265, (_FIRST, _REFERENCES, _FOLLOWERS))

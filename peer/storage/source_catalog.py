"""What the source keeps beside the documents: subscriptions, sites, configurations, and small state.

Reads may be called from any thread; what is named ``put_...`` and ``transaction`` is the writer's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from peer.storage.log_values import CatalogEntry, Configuration, SiteRecord, Version

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager

    from peer.storage.database import Database

_ENTRY: Final = "SELECT id, number, pattern, columns, site, feed_limit, start, ended FROM subscriptions"


class SourceCatalog:
    """The tables of the source's log that are not its documents; nothing here is ever trimmed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def transaction(self) -> AbstractContextManager[object]:
        """Make the writes of a block one durable transaction; what they return holds when the block has ended."""
        return self._database.transaction()

    def subscriptions(self, after: int = 0) -> list[CatalogEntry]:
        """List the live subscriptions that were made behind a number, in order of their numbers."""
        with self._database.reading() as connection:
            rows = connection.execute(f"{_ENTRY} WHERE number > ? AND ended IS NULL ORDER BY number", (after,))
            return [CatalogEntry(*row) for row in rows]

    def ended(self, after: int = 0) -> list[CatalogEntry]:
        """List the subscriptions that ended behind a number, in order of their ends."""
        with self._database.reading() as connection:
            rows = connection.execute(f"{_ENTRY} WHERE ended > ? ORDER BY ended", (after,))
            return [CatalogEntry(*row) for row in rows]

    def subscription(self, name: str) -> CatalogEntry | None:
        """Return a subscription, live or ended; None if there never was one of that name."""
        with self._database.reading() as connection:
            row = connection.execute(f"{_ENTRY} WHERE id = ?", (name,)).fetchone()
            return None if row is None else CatalogEntry(*row)

    def put_site(self, *sites: SiteRecord) -> None:
        """Replace what is known of some sites."""
        with self._database.transaction() as connection:
            connection.executemany(
                "REPLACE INTO sites (name, addresses, capacity, last_seen) VALUES (?, ?, ?, ?)",
                [(s.name, msgspec.json.encode(s.addresses), s.capacity, s.last_seen) for s in sites],
            )

    def sites(self) -> list[SiteRecord]:
        """List all sites by name."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT name, addresses, capacity, last_seen FROM sites ORDER BY name")
            return [
                SiteRecord(name, msgspec.json.decode(addresses, type=tuple[str, ...]), capacity, last_seen)
                for name, addresses, capacity, last_seen in rows
            ]

    def put_configurations(self, configurations: Iterable[Configuration]) -> int:
        """Keep each configuration that is newer than the one kept for its subscription; return how many were."""
        with self._database.transaction() as connection:
            done = connection.executemany(
                "INSERT INTO configurations (subscription, generation, epoch, revision, body)"
                " VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (subscription) DO UPDATE SET generation = excluded.generation,"
                " epoch = excluded.epoch, revision = excluded.revision, body = excluded.body"
                " WHERE (excluded.generation, excluded.epoch, excluded.revision) > (generation, epoch, revision)",
                [(c.subscription, *c.version, c.body) for c in configurations],
            )
            return done.rowcount

    def configurations(self) -> list[Configuration]:
        """List the newest configuration of each subscription that has one, by subscription."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT subscription, generation, epoch, revision, body FROM configurations ORDER BY subscription"
            )
            return [Configuration(row[0], Version(*row[1:4]), row[4]) for row in rows]

    def put_state(self, key: str, value: bytes | None) -> None:
        """Keep a value under a key; None forgets it."""
        with self._database.transaction() as connection:
            if value is None:
                connection.execute("DELETE FROM state WHERE key = ?", (key,))
            else:
                connection.execute("REPLACE INTO state (key, value) VALUES (?, ?)", (key, value))

    def states(self, prefix: str) -> dict[str, bytes]:
        """Return the values whose keys begin with a prefix, by key."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT key, value FROM state WHERE substr(key, 1, ?) = ? ORDER BY key", (len(prefix), prefix)
            )
            return {key: bytes(value) for key, value in rows}

    def get_state(self, key: str) -> bytes | None:
        """Return the value under a key, None if there is none."""
        with self._database.reading() as connection:
            row = connection.execute("SELECT value FROM state WHERE key = ?", (key,)).fetchone()
            return None if row is None else bytes(row[0])

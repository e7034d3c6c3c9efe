"""Entries on their way into the source's log: each gets a number, is recognised, or is refused.

A publication is recognised by hashes of (publisher, key) and of its content, kept in a table of their own. The
lengths of the parts are hashed with them: no two different pairs run together.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, assert_never

from peer.storage.budget import ROW_BYTES
from peer.storage.log_values import Appended, NewDocument, NewSubscription, Refused, SpaceEntry, Start, Withdrawal

if TYPE_CHECKING:
    import sqlite3

    from peer.storage.log_values import Extent, NewEntry

HASH_BYTES: Final = 16


def hash_of(*parts: bytes) -> bytes:
    """Hash parts so that where one ends and the next begins counts.

    >>> hash_of(b"ab", b"c") == hash_of(b"a", b"bc")
    False
    """
    state = blake2b(digest_size=HASH_BYTES)
    for part in parts:
        state.update(len(part).to_bytes(8, "big"))
        state.update(part)
    return state.digest()


def key_of_change(space: str, key: str) -> bytes:
    """Return what a change in a space is recognised by; no publication has the same."""
    return hash_of(b"change", space.encode(), key.encode())


@dataclass(slots=True)
class Appending:
    """One transaction that appends: ``last`` and ``added_bytes`` grow with each entry taken."""

    connection: sqlite3.Connection
    lowest: int
    last: int
    now: float
    added_bytes: int = 0

    @classmethod
    def behind(cls, extent: Extent, connection: sqlite3.Connection, now: float) -> Appending:
        """Begin at the end of a log."""
        return cls(connection, extent.lowest, extent.last, now)

    def add(self, entry: NewEntry) -> Appended | Refused:
        """Take one entry, unless it is there already or cannot be."""
        match entry:
            case NewDocument():
                return self._document(entry)
            case NewSubscription():
                return self._subscription(entry)
            case Withdrawal():
                return self._withdrawal(entry)
            case SpaceEntry():
                return self._change(entry)
            case _:
                assert_never(entry)

    def _document(self, new: NewDocument) -> Appended | Refused:
        name = new.name.encode()
        key = hash_of(new.publisher.encode(), new.key.encode())
        # A message of a space is not the same publication as an equal document, or one in another space.
        content = hash_of(name, new.body, *([] if new.entry is None else [new.entry.name.encode()]))
        known = self.connection.execute("SELECT number, content FROM keys WHERE key = ?", (key,)).fetchone()
        if known is not None:
            if known[1] != content:
                return Refused(f"key {new.key!r} of {new.publisher} stands for another document", known[0])
            return Appended(known[0], is_new=False)
        self.last += 1
        size = len(new.body) + len(name) + ROW_BYTES
        self.added_bytes += size
        self.connection.execute(
            "INSERT INTO documents (number, size, at, publisher, name, body) VALUES (?, ?, ?, ?, ?, ?)",
            (self.last, size, self.now, new.publisher, new.name, new.body),
        )
        self.connection.execute(
            "INSERT INTO keys (number, at, key, content) VALUES (?, ?, ?, ?)", (self.last, self.now, key, content)
        )
        if new.entry is not None:
            self._in_space(new.entry)
        return Appended(self.last, is_new=True)

    def _change(self, new: SpaceEntry) -> Appended:
        key = key_of_change(new.space, new.key)
        known = self.connection.execute("SELECT number FROM keys WHERE key = ?", (key,)).fetchone()
        if new.key and known is not None:
            return Appended(known[0], is_new=False)
        self.last += 1
        self._in_space(new)
        if new.key:
            self.connection.execute(
                "INSERT INTO keys (number, at, key, content) VALUES (?, ?, ?, ?)", (self.last, self.now, key, b"")
            )
        return Appended(self.last, is_new=True)

    def _in_space(self, entry: SpaceEntry) -> None:
        self.connection.execute(
            "INSERT INTO space_records (space, number, body) VALUES (?, ?, ?)",
            (entry.space, self.last, entry.body),
        )

    def _subscription(self, new: NewSubscription) -> Appended | Refused:
        known = self.connection.execute(
            "SELECT number, start, ended, pattern, columns, site, feed_limit FROM subscriptions WHERE id = ?",
            (new.id,),
        ).fetchone()
        wanted = (new.pattern, new.columns, new.site, new.limit)
        if known is not None:
            return self._known_subscription(new, known, wanted)
        start = self._start(new.start)
        if not 0 <= start <= self.last + 1:
            return Refused(f"subscription {new.id} cannot start behind {start}: the log ends at {self.last}")
        self.last += 1
        self.connection.execute(
            "INSERT INTO subscriptions (number, id, start, pattern, columns, site, feed_limit)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (self.last, new.id, start, *wanted),
        )
        return Appended(self.last, is_new=True, start=start)

    def _known_subscription(
        self, new: NewSubscription, known: tuple[int, ...], wanted: tuple[object, ...]
    ) -> Appended | Refused:
        number, start, ended = known[:3]
        if ended is not None:
            # A late retry must not seem to live: whoever sent it would wait for documents that nobody owes.
            return Refused(f"subscription {new.id} ended at {ended}; take a new id", ended)
        if known[3:] != wanted or (isinstance(new.start, int) and new.start != start):
            return Refused(f"subscription {new.id} is there and says something else", number)
        return Appended(number, is_new=False, start=start)

    def _start(self, wanted: Start | int) -> int:
        match wanted:
            case Start.NOW:
                return self.last + 1
            case Start.EARLIEST:
                return self.lowest
            case int():
                # Kept even below the lowest: another peer may still have what the log has dropped.
                return wanted
            case _:
                assert_never(wanted)

    def _withdrawal(self, new: Withdrawal) -> Appended | Refused:
        known = self.connection.execute(
            "SELECT start, ended FROM subscriptions WHERE id = ?", (new.subscription,)
        ).fetchone()
        if known is None:
            return Refused(f"there is no subscription {new.subscription}")
        start, ended = known
        if ended is not None:
            return Appended(ended, is_new=False, start=start)
        self.last += 1
        self.connection.execute("UPDATE subscriptions SET ended = ? WHERE id = ?", (self.last, new.subscription))
        return Appended(self.last, is_new=True, start=start)

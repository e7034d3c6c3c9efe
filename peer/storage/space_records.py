"""What the source keeps of the content-driven network, in its log: the spaces, and the records of each.

A record is either an entry of the log, written with it and under its number (``Appending``), or what came of such
entries since. A snapshot takes the place of both, up to a number. Bodies are opaque here.

Reads may be called from any thread; what writes is the writer's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from peer.storage.appending import key_of_change

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peer.storage.database import Database


class SpaceRecord(NamedTuple):
    """A record of a space; ``number``: of the log's entry that it is."""

    number: int | None
    body: bytes


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Fewer records that say the same as all of a space so far, with its entries up to a number of the log."""

    space: str
    records: Sequence[bytes]
    upto: int


class SpaceRecords:
    """The tables of spaces in an open log."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def spaces(self) -> dict[str, bytes]:
        """Return the spaces by name, as they were declared."""
        with self._database.reading() as reader:
            return dict(reader.execute("SELECT name, body FROM spaces ORDER BY name"))

    def put_space(self, name: str, body: bytes) -> None:
        """Keep a space, in place of an earlier one of that name."""
        with self._database.transaction() as writer:
            writer.execute("REPLACE INTO spaces VALUES (?, ?)", (name, body))

    def records(self, space: str) -> list[SpaceRecord]:
        """Return the records of a space: first those without a number, a snapshot at their beginning, in the order
        in which they were written; then the entries of the log since that snapshot."""
        with self._database.reading() as reader:
            rows = reader.execute(
                "SELECT number, body FROM space_records WHERE space = ? ORDER BY number, at", (space,)
            )
            return [SpaceRecord(*row) for row in rows]

    def entered(self, space: str, key: str) -> int | None:
        """Return the number of the change with a key; None if there was none, or long ago."""
        with self._database.reading() as reader:
            row = reader.execute("SELECT number FROM keys WHERE key = ?", (key_of_change(space, key),)).fetchone()
            return None if row is None else int(row[0])

    def append(self, records: Iterable[tuple[str, bytes] | Snapshot]) -> None:
        """Write records of spaces that are no entries of the log, and snapshots, in order."""
        with self._database.transaction() as writer:
            for one in records:
                if isinstance(one, Snapshot):
                    self.replace(one)
                else:
                    writer.execute("INSERT INTO space_records (space, body) VALUES (?, ?)", one)

    def replace(self, snapshot: Snapshot) -> None:
        """Put a snapshot in place of what it says."""
        with self._database.transaction() as writer:
            writer.execute(
                "DELETE FROM space_records WHERE space = ? AND (number IS NULL OR number <= ?)",
                (snapshot.space, snapshot.upto),
            )
            writer.executemany(
                "INSERT INTO space_records (space, body) VALUES (?, ?)",
                [(snapshot.space, body) for body in snapshot.records],
            )

    def rename(self, space: str, key: str) -> None:
        """Let the records of a space be those of another key."""
        with self._database.transaction() as writer:
            writer.execute("UPDATE space_records SET space = ? WHERE space = ?", (key, space))

    def count_from(self, number: int) -> None:
        """Let the log's numbers go on behind a number, where a space that counted for itself has come to it.
        Nothing was ever under those between, so they are no hole."""
        with self._database.transaction() as writer:
            writer.execute("UPDATE extent SET last = max(last, ?)", (number,))

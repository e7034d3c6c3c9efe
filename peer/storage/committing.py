"""Changes on their way into a peer's store, within one transaction.

A document that many subscriptions have a result of is one transaction with a row and a step of the frontier for
each. Rows and frontiers are gathered and written together, and where everybody stands is read once: a statement
costs more than what it does here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, assert_never

from peer.storage.budget import ROW_BYTES
from peer.storage.errors import LocalFrontierWentBack, LocalMisuse, RemoteStaleGeneration
from peer.storage.result_values import (
    Begin,
    Cursor,
    Drain,
    DropCursor,
    End,
    Install,
    Kind,
    Results,
    State,
    Together,
)

if TYPE_CHECKING:
    import sqlite3

    from peer.storage.result_values import Change, Entry

_STANDING: Final = (
    "key, state, end_number, frontiers.generation, upto FROM hosted JOIN frontiers ON frontiers.hosted = key"
)
_FEW_MORE: Final = 4
"""Reading everybody is worth it if no more than so many times as many are here as are wanted."""


@dataclass(slots=True)
class _Standing:
    """Where a hosted subscription stands before a change."""

    key: int
    state: State
    end: int | None
    generation: int
    upto: int


@dataclass(slots=True)
class Committing:
    """One transaction: ``apply`` changes, then ``finish``. ``added_bytes`` grows with each entry stored."""

    connection: sqlite3.Connection
    now: float
    added_bytes: int = 0
    _documents: dict[tuple[bytes, int], int] = field(default_factory=dict)
    _standings: dict[str, _Standing] = field(default_factory=dict)
    _rows: list[tuple[object, ...]] = field(default_factory=list)
    _moved: dict[int, _Standing] = field(default_factory=dict)

    def apply(self, change: Change) -> None:
        """Make one change, or raise and thereby undo them all."""
        match change:
            case Begin():
                self._begin(change)
            case Results():
                self._results(change)
            case Together():
                self._read_standings(len(change.parts))
                for part in change.parts:
                    self._results(part)
            case Install():
                self._install(change)
            case Drain():
                self._drain(change)
            case End():
                self._end(change)
            case Cursor():
                self._cursor(change)
            case DropCursor():
                standing = self._standing(change.subscription)
                self.connection.execute(
                    "DELETE FROM cursors WHERE hosted = ? AND name = ?", (standing.key, change.name)
                )
            case _:
                assert_never(change)

    def finish(self) -> None:
        """Write what is left to write."""
        self._write_rows()
        self.connection.executemany(
            "UPDATE frontiers SET generation = ?, upto = ? WHERE hosted = ?",
            [(moved.generation, moved.upto, key) for key, moved in self._moved.items()],
        )
        self._moved.clear()

    def _write_rows(self) -> None:
        self.connection.executemany(
            "INSERT INTO results (hosted, number, kind, after, size, at, name, data, document)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            self._rows,
        )
        self._rows.clear()

    def _read_standings(self, wanted: int) -> None:
        """Read where everybody stands, where that is about as many as are wanted."""
        [[hosted]] = self.connection.execute("SELECT count(*) FROM hosted")
        if len(self._standings) < hosted <= _FEW_MORE * wanted:
            for name, key, state, *rest in self.connection.execute(f"SELECT id, {_STANDING}"):
                self._standings.setdefault(name, _Standing(key, State(state), *rest))

    def _standing(self, subscription: str) -> _Standing:
        found = self._standings.get(subscription)
        if found is None:
            row = self.connection.execute(f"SELECT {_STANDING} WHERE id = ?", (subscription,)).fetchone()
            if row is None:
                raise LocalMisuse(f"subscription {subscription} is not hosted here")
            found = self._standings[subscription] = _Standing(row[0], State(row[1]), *row[2:])
        return found

    def _begin(self, change: Begin) -> None:
        wanted = (change.pattern, change.columns, change.start)
        known = self.connection.execute(
            "SELECT pattern, columns, start, state FROM hosted WHERE id = ?", (change.subscription,)
        ).fetchone()
        if known is not None:
            if known[:3] != wanted or State(known[3]) is State.ENDED:
                raise LocalMisuse(f"subscription {change.subscription} is here and is another or has ended")
            return
        row = self.connection.execute(
            "INSERT INTO hosted (id, pattern, columns, start, state) VALUES (?, ?, ?, ?, ?)",
            (change.subscription, *wanted, State.LIVE.value),
        )
        self.connection.execute(
            "INSERT INTO frontiers (hosted, generation, upto, lowest) VALUES (?, ?, ?, ?)",
            (row.lastrowid, change.generation, change.start, change.start),
        )

    def _results(self, change: Results) -> None:
        was = self._standing(change.subscription)
        generation, upto = change.frontier.generation, change.frontier.upto
        if generation < was.generation:
            raise RemoteStaleGeneration(change.subscription, was.generation, generation)
        # Also in a new generation, for it numbers on: what would go back has numbers that were given twice.
        if upto < was.upto:
            raise LocalFrontierWentBack(change.subscription, was.upto, upto)
        if was.end is not None:
            upto = max(was.upto, min(upto, was.end))
        for entry in change.entries:
            if entry.number > was.upto and max(entry.begin, was.upto) < upto:
                self._store(entry, was, upto)
        was.generation, was.upto = generation, upto
        self._moved[was.key] = was

    def _store(self, entry: Entry, was: _Standing, upto: int) -> None:
        # Only a gap can reach beyond what is new and owed; the part within is kept.
        after = None if entry.after is None else max(entry.after, was.upto)
        if entry.kind is Kind.REFERENCE:
            document, name, data = self._document(entry), "", b""
        else:
            document, name, data = None, entry.name, entry.data
        size = len(data) + len(name.encode()) + ROW_BYTES
        self.added_bytes += size
        number = min(entry.number, upto)
        self._rows.append((was.key, number, int(entry.kind), after, size, self.now, name, data, document))

    def _document(self, entry: Entry) -> int:
        """Return the row that a reference means."""
        wanted = (entry.data, entry.number)
        if wanted not in self._documents:
            self._write_rows()  # it may be among them
            row = self.connection.execute(
                "SELECT seq FROM results JOIN hosted ON hosted = key WHERE id = ? AND number = ? AND kind = ?",
                (entry.data.decode(), entry.number, Kind.BATCH),
            ).fetchone()
            if row is None:
                raise LocalMisuse(f"entry {entry.number}: {entry.data.decode()} has no such document")
            self._documents[wanted] = row[0]
        return self._documents[wanted]

    def _install(self, change: Install) -> None:
        standing = self._standing(change.subscription)
        self.connection.execute(
            "UPDATE hosted SET generation = ?, epoch = ?, revision = ?, configuration = ? WHERE key = ?"
            " AND (generation IS NULL OR (generation, epoch, revision) < (?, ?, ?))",
            (*change.version, change.body, standing.key, *change.version),
        )

    def _drain(self, change: Drain) -> None:
        was = self._standing(change.subscription)
        if was.state is State.LIVE:
            was.state, was.end = State.DRAINING, change.end
            self.connection.execute(
                "UPDATE hosted SET state = ?, end_number = ? WHERE key = ?",
                (State.DRAINING.value, change.end, was.key),
            )

    def _end(self, change: End) -> None:
        was = self._standing(change.subscription)
        if was.state is not State.ENDED:
            end = was.upto if was.end is None else min(was.upto, was.end)
            was.state, was.end = State.ENDED, end
            self.connection.execute(
                "UPDATE hosted SET state = ?, end_number = ?, ended_at = ? WHERE key = ?",
                (State.ENDED.value, end, self.now, was.key),
            )

    def _cursor(self, change: Cursor) -> None:
        was = self._standing(change.subscription)
        if change.upto > was.upto:
            raise LocalMisuse(f"cursor {change.name} of {change.subscription} is beyond the frontier {was.upto}")
        self.connection.execute(
            "INSERT INTO cursors (hosted, name, upto) VALUES (?, ?, ?)"
            " ON CONFLICT DO UPDATE SET upto = max(upto, excluded.upto)",
            (was.key, change.name, change.upto),
        )

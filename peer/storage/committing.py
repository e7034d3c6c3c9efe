"""Changes on their way into a peer's store, within one transaction.

Rows and frontiers are gathered and written together, and where everybody stands is read once: a statement costs
more than what it does here.

Those who keep step with a relay have no rows of their own. Their frontier says whom they *follow*, and moves with
that one; who has results of a document is noted once, with the document. Whatever happens to one of them alone, or
to the relay without them, has them leave first: their own frontier is written, and counts again.

Mostly the same go on with the same relay, commit after commit. So who kept *step* at the end of one is handed to
the next, which then reads nothing (``take_steps``); it holds until somebody leaves, or a commit fails.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import compress
from typing import TYPE_CHECKING, Final, assert_never

from peer.storage.budget import ROW_BYTES
from peer.storage.errors import LocalFrontierWentBack, LocalMisuse, RemoteStaleGeneration
from peer.storage.result_values import (
    Begin,
    Cursor,
    Drain,
    DropCursor,
    End,
    Entry,
    Install,
    Kind,
    Results,
    State,
    Together,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from peer.storage.result_values import Change, Followers

_STANDING: Final = (
    "key, state, end_number, s.generation, upto, follows FROM hosted JOIN standings AS s ON s.hosted = key"
)
_INSERT: Final = (
    "INSERT INTO results (hosted, number, kind, after, size, at, name, data, document)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
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
    follows: int | None


@dataclass(slots=True)
class Step:
    """Who keeps step with a relay, and where all of them stand."""

    name: str
    names: Sequence[str]
    relay: _Standing
    own: Sequence[_Standing]
    lead: bytes | None = None
    """What stands before the flags of the followers, if their keys follow on each other."""

    def __post_init__(self) -> None:
        first = self.own[0].key if self.own else 1
        if all(one.key == key for key, one in enumerate(self.own, first)):
            self.lead = bytes(first - 1)

    def flags(self, matched: bytes) -> bytes:
        """Return a byte per key, as it is stored."""
        return _flags(self.own, matched) if self.lead is None else (self.lead + matched).rstrip(b"\0")

    def is_of(self, change: Change) -> bool:
        """Say whether a change is documents of the relay, new ones, with the same followers."""
        if not isinstance(change, Together) or change.followers is None or len(change.parts) != 1:
            return False
        (first,) = change.parts
        if change.followers.names is not self.names or first.subscription != self.name:
            return False
        if first.entries and first.entries[0].number <= self.relay.upto:
            return False
        return first.frontier.generation == self.relay.generation and first.frontier.upto >= self.relay.upto


def take_steps(connection: sqlite3.Connection, changes: Sequence[Change], step: Step, now: float) -> int | None:
    """Make changes that are all steps, and return how many bytes that adds; None, and nothing is done, if some are
    others. It comes to what ``Committing`` does."""
    before, added = step.relay.upto, 0
    rows: list[tuple[int, tuple[object, ...], bytes]] = []
    for change in changes:
        if not step.is_of(change):
            step.relay.upto = before
            return None
        assert isinstance(change, Together)
        assert change.followers is not None
        (first,) = change.parts
        for entry, matched in zip(first.entries, change.followers.matched, strict=True):
            flagged = step.flags(matched)
            size = len(entry.data) + len(entry.name.encode()) + ROW_BYTES + len(flagged)
            added += size
            kind, key = int(entry.kind), step.relay.key
            row = (key, entry.number, kind, None, size, now, entry.name, entry.data, None)
            rows.append((entry.number, row, flagged))
        step.relay.upto = first.frontier.upto
    for number, values, flagged in rows:
        document = connection.execute(_INSERT, values).lastrowid
        if flagged:
            connection.execute("INSERT INTO followed VALUES (?, ?, ?)", (number, document, flagged))
    connection.execute("UPDATE frontiers SET upto = ? WHERE hosted = ?", (step.relay.upto, step.relay.key))
    return added


@dataclass(slots=True)
class Committing:
    """One transaction: ``apply`` changes, then ``finish``. ``added_bytes`` grows with each entry stored. ``step``:
    what this one leaves to the next."""

    connection: sqlite3.Connection
    now: float
    step: Step | None = None
    added_bytes: int = 0
    _documents: dict[tuple[bytes, int], int] = field(default_factory=dict)
    _standings: dict[str, _Standing] = field(default_factory=dict)
    _rows: list[tuple[object, ...]] = field(default_factory=list)
    _followed: list[tuple[object, ...]] = field(default_factory=list)
    _followers: dict[int, dict[int, _Standing]] | None = None
    """Who follows whom, by their keys."""
    _moved: dict[int, _Standing] = field(default_factory=dict)

    def apply(self, change: Change) -> None:
        """Make one change, or raise and thereby undo them all."""
        match change:
            case Begin():
                self._begin(change)
            case Results():
                self._results(change)
            case Together():
                self._together(change)
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
            "UPDATE frontiers SET generation = ?, upto = ?, follows = ? WHERE hosted = ?",
            [(moved.generation, moved.upto, moved.follows, key) for key, moved in self._moved.items()],
        )
        self._moved.clear()

    def _write_rows(self) -> None:
        self.connection.executemany(_INSERT, self._rows)
        self._rows.clear()
        self.connection.executemany(
            "INSERT INTO followed (number, document, followers)"
            " SELECT number, seq, ? FROM results WHERE hosted = ? AND number = ?",
            self._followed,
        )
        self._followed.clear()

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

    def _together(self, change: Together) -> None:
        first, *others = change.parts
        names = () if change.followers is None else change.followers.names
        self._read_standings(len(change.parts) + len(names))
        if change.followers is None:
            self._results(first)
        else:
            self._with_followers(first, change.followers)
        for part in others:
            self._results(part)

    def _with_followers(self, change: Results, followers: Followers) -> None:
        """Take documents of a relay, and with it the step that its followers take."""
        relay = self._standing(change.subscription)
        self._leave(relay)
        own = [self._standing(name) for name in followers.names]
        place = (relay.generation, relay.upto, None)
        if any((one.generation, one.upto, one.end) != place for one in (relay, *own)):
            self._one_by_one(change, followers)
            return
        staying = {one.key for one in own}
        known = self._followers_of(relay.key)
        for one in [one for key, one in known.items() if key not in staying]:
            self._leave(one)
        self.step = Step(change.subscription, followers.names, relay, own)
        self._take_step(change, followers, self.step)
        for one in own:
            one.generation, one.upto = relay.generation, relay.upto
            if one.follows != relay.key:
                one.follows, known[one.key], self._moved[one.key] = relay.key, one, one

    def _take_step(self, change: Results, followers: Followers, step: Step) -> None:
        relay = step.relay
        flags = [_flags(step.own, matched) for matched in followers.matched]
        charged = {entry.number: len(flagged) for entry, flagged in zip(change.entries, flags, strict=True)}
        new = [entry.number > relay.upto for entry in change.entries]
        self._take(change, relay, charged)
        for entry, flagged in compress(zip(change.entries, flags, strict=True), new):
            if flagged:
                self._followed.append((flagged, relay.key, entry.number))

    def _one_by_one(self, change: Results, followers: Followers) -> None:
        """Take the same where somebody does not stand where the relay does: what it has already is ignored."""
        self._results(change)
        relay = change.subscription.encode()
        for name, matched in followers.each():
            entries = [
                Entry(entry.number, Kind.REFERENCE, data=relay) for entry in compress(change.entries, matched)
            ]
            self._results(Results(name, entries, change.frontier))

    def _followers_of(self, relay: int) -> dict[int, _Standing]:
        """Return who follows a subscription. Everybody who follows anybody is read before anybody moves."""
        if self._followers is None:
            self._followers = {}
            rows = self.connection.execute(f"SELECT id, {_STANDING} WHERE follows IS NOT NULL")
            for name, key, state, *rest in rows:
                one = self._standings.setdefault(name, _Standing(key, State(state), *rest))
                if one.follows is not None:
                    self._followers.setdefault(one.follows, {})[key] = one
        return self._followers.setdefault(relay, {})

    def _leave(self, one: _Standing) -> None:
        """Have a subscription follow nobody any more: it stands where it stood with its relay."""
        if one.follows is not None:
            self._followers_of(one.follows).pop(one.key, None)
            one.follows, self._moved[one.key] = None, one
            self.step = None

    def _alone(self, one: _Standing) -> None:
        """Something happens to a subscription by itself: it follows nobody, and nobody follows it."""
        self._leave(one)
        for other in list(self._followers_of(one.key).values()):
            self._leave(other)

    def _results(self, change: Results) -> None:
        was = self._standing(change.subscription)
        self._alone(was)
        self._take(change, was, {})

    def _take(self, change: Results, was: _Standing, charged: Mapping[int, int]) -> None:
        """Take results in. ``charged``: by document, what is stored beside it."""
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
                self._store(entry, was, upto, charged.get(entry.number, 0))
        was.generation, was.upto = generation, upto
        self._moved[was.key] = was

    def _store(self, entry: Entry, was: _Standing, upto: int, charged: int) -> None:
        # Only a gap can reach beyond what is new and owed; the part within is kept.
        after = None if entry.after is None else max(entry.after, was.upto)
        if entry.kind is Kind.REFERENCE:
            document, name, data = self._document(entry), "", b""
        else:
            document, name, data = None, entry.name, entry.data
        size = len(data) + len(name.encode()) + ROW_BYTES + charged
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
            self.step = None
            was.state, was.end = State.DRAINING, change.end
            self.connection.execute(
                "UPDATE hosted SET state = ?, end_number = ? WHERE key = ?",
                (State.DRAINING.value, change.end, was.key),
            )

    def _end(self, change: End) -> None:
        was = self._standing(change.subscription)
        self._alone(was)
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


def _flags(subscriptions: Sequence[_Standing], matched: bytes) -> bytes:
    """Return a byte per key, up to the last that has one: 1 for the subscriptions that matched.

    >>> own = [_Standing(key, State.LIVE, None, 1, 7, None) for key in (2, 5, 3)]
    >>> _flags(own, bytes([1, 0, 1]))
    b'\\x00\\x01\\x01'
    """
    keys = [one.key for one in compress(subscriptions, matched)]
    flags = bytearray(max(keys, default=0))
    for key in keys:
        flags[key - 1] = 1
    return bytes(flags)

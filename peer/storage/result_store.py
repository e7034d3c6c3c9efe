"""A peer's results: per subscription the entries and the frontier they reach, committed together.

The entries are what users read and what downstreams are replayed from. Exactly once: an entry at or below the
frontier is there already and is ignored, so whatever is sent again after a crash is stored once.

``commit``, ``trim`` and ``close`` belong to the writer: one thread at a time. Everything else may be called from
any thread, beside the writer, and sees whole commits.
"""

from __future__ import annotations

import time
from contextlib import closing
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from peer.storage.budget import last_that_fits
from peer.storage.committing import Committing, take_steps
from peer.storage.database import Database
from peer.storage.log_values import Version
from peer.storage.result_schema import RESULT_SCHEMA
from peer.storage.result_trimming import TRIMMED_AT_ONCE, drop_read, drop_unread, forget_ended
from peer.storage.result_values import Entry, Frontier, Hosted, Kind, ResultLimits, State
from peer.storage.store_file import storing

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import TracebackType

    from peer.storage.committing import Step
    from peer.storage.result_trimming import Dropped
    from peer.storage.result_values import Change

_HOSTED: Final = (
    "SELECT id, pattern, columns, start, state, end_number, f.generation, upto, lowest,"
    " h.generation, epoch, revision, configuration FROM hosted AS h JOIN standings AS f ON f.hosted = h.key"
)
# What a subscription has: entries of its own, some of which refer to documents, and documents that it followed.
_FOLLOWED: Final = (
    "FROM followed AS f JOIN results AS d ON d.seq = f.document"
    " WHERE f.number > :after AND substr(f.followers, :key, 1) = x'01'"
)
_SIZES: Final = (
    "SELECT r.number AS number, coalesce(d.size, r.size), coalesce(r.after, r.number - 1) FROM results AS r"
    " LEFT JOIN results AS d ON d.seq = r.document WHERE r.hosted = :key AND r.number > :after"
    f" UNION ALL SELECT f.number, d.size, f.number - 1 {_FOLLOWED} ORDER BY number"
)
_ENTRIES: Final = (
    "SELECT r.number AS number, r.kind, coalesce(d.name, r.name), coalesce(d.data, r.data), r.after"
    " FROM results AS r LEFT JOIN results AS d ON d.seq = r.document"
    " WHERE r.hosted = :key AND r.number > :after AND r.number <= :last UNION ALL"
    f" SELECT f.number, {Kind.REFERENCE.value}, d.name, d.data, NULL {_FOLLOWED} AND f.number <= :last"
    " ORDER BY number"
)


class ResultStore:
    """An open store of results; a context manager that closes it."""

    def __init__(self, database: Database, limits: ResultLimits, clock: Callable[[], float]) -> None:
        self._database = database
        self._limits = limits
        self._clock = clock
        self._step: Step | None = None

    @classmethod
    def open(
        cls, path: Path, *, limits: ResultLimits | None = None, clock: Callable[[], float] = time.time
    ) -> ResultStore:
        """Open or make a store; ``clock`` gives seconds since 1970."""
        return cls(Database(path, RESULT_SCHEMA), limits or ResultLimits(), clock)

    def close(self) -> None:
        """Close the file; every reader has ended."""
        self._database.close()

    def __enter__(self) -> ResultStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def commit(self, changes: Sequence[Change]) -> None:
        """Make changes in their order, in one durable transaction.

        A change that cannot be raises, and nothing of the whole commit is stored: ``RemoteStaleGeneration`` and
        ``LocalFrontierWentBack`` name the subscription, ``LocalMisuse`` says what is wrong, ``Unstorable`` what
        nobody thought of, ``DiskFull`` is no fault of the changes.
        """
        step, self._step = self._step, None  # it is of no use to whoever comes after a failure
        with storing(self._database.path), self._database.transaction() as connection:
            added = None if step is None else take_steps(connection, changes, step, self._clock())
            if added is None:
                committing = Committing(connection, self._clock())
                for change in changes:
                    committing.apply(change)
                committing.finish()
                step, added = committing.step, committing.added_bytes
            if added:
                connection.execute("UPDATE totals SET held_bytes = held_bytes + ?", (added,))
        self._step = step

    def entries(self, subscription: str, after: int, upto: int, max_bytes: int) -> list[Entry]:
        """List what there is in (after, upto] in order, as much as fits into ``max_bytes`` and at least one entry.

        If owed entries behind ``after`` were trimmed, the first one is ``TRIMMED`` and says which. Gaps are cut to
        the interval. To go on, ask behind the last entry; an empty list means that there is nothing up to the
        frontier or ``upto``, whichever comes first.
        """
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT key, start, lowest FROM hosted JOIN frontiers ON hosted = key WHERE id = ?",
                (subscription,),
            ).fetchone()
            if row is None:
                return []
            key, start, lowest = row
            begin = max(after, start)
            entries = []
            if begin < min(lowest, upto):
                entries.append(Entry(min(lowest, upto), Kind.TRIMMED, after=begin))
            return entries + _stored(connection, key, (max(begin, lowest), upto), max_bytes)

    def hosted(self, subscription: str) -> Hosted | None:
        """Return a subscription as it stands here, None if it is not here."""
        with self._database.reading() as connection:
            row = connection.execute(f"{_HOSTED} WHERE id = ?", (subscription,)).fetchone()
            return None if row is None else _hosted(row)

    def subscriptions(self) -> list[Hosted]:
        """List the subscriptions that are here, ended ones included, in the order they began."""
        with self._database.reading() as connection:
            return [_hosted(row) for row in connection.execute(f"{_HOSTED} ORDER BY key")]

    def frontier(self, subscription: str) -> Frontier | None:
        """Return up to where a subscription is complete, None if it is not here."""
        row = self._progress(subscription)
        return None if row is None else Frontier(*row[:2])

    def extent(self, subscription: str) -> tuple[int, int | None] | None:
        """Return up to where a subscription is complete, and where it ends if that is known; None if not here."""
        with self._database.reading() as connection:
            row: tuple[int, int | None] | None = connection.execute(
                "SELECT upto, end_number FROM hosted JOIN standings ON hosted = key WHERE id = ?", (subscription,)
            ).fetchone()
            return row

    def lowest(self, subscription: str) -> int | None:
        """Return the number up to which entries were trimmed or never owed, None if it is not here."""
        row = self._progress(subscription)
        return None if row is None else row[2]

    def _progress(self, subscription: str) -> tuple[int, int, int] | None:
        # Not by way of ``hosted``, which reads the configuration too.
        with self._database.reading() as connection:
            row: tuple[int, int, int] | None = connection.execute(
                "SELECT f.generation, upto, lowest FROM hosted JOIN standings AS f ON f.hosted = key WHERE id = ?",
                (subscription,),
            ).fetchone()
            return row

    def cursors(self, subscription: str) -> dict[str, int]:
        """Return where the named readers of a subscription are."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT name, upto FROM cursors JOIN hosted ON hosted = key WHERE id = ? ORDER BY name",
                (subscription,),
            )
            return dict(rows.fetchall())

    def cursor(self, subscription: str, name: str) -> int | None:
        """Return up to where a named reader is done, None if there is none of that name.

        If that is below ``lowest``, entries were trimmed unread; ``entries`` behind it begins with which.
        """
        return self.cursors(subscription).get(name)

    @property
    def held_bytes(self) -> int:
        """What all entries take together, as the limits count."""
        with self._database.reading() as connection:
            [[held]] = connection.execute("SELECT held_bytes FROM totals")
            return int(held)

    def trim(self, now: float) -> dict[str, int]:
        """Drop what the limits do not allow; return the new ``lowest`` of each subscription that lost entries.

        A long trim is many transactions: a crash leaves some of it done.
        """
        lowest: dict[int, int] = {}
        self._drop(lambda connection: drop_read(connection, self._limits, now), lowest)
        self._drop(lambda connection: drop_unread(connection, self._limits), lowest)
        with self._database.transaction() as connection:
            names = dict(connection.execute("SELECT key, id FROM hosted").fetchall())
            forget_ended(connection, self._limits, now)
        return {names[hosted]: number for hosted, number in lowest.items()}

    def _drop(self, drop_some: Callable[[sqlite3.Connection], Dropped], lowest: dict[int, int]) -> None:
        while True:
            with self._database.transaction() as connection:
                gone = drop_some(connection)
            for hosted, number in gone.lowest.items():
                lowest[hosted] = max(lowest.get(hosted, 0), number)
            if gone.rows < TRIMMED_AT_ONCE:
                return


def _hosted(row: tuple[Any, ...]) -> Hosted:
    name, pattern, columns, start, state, end, generation, upto, lowest, *version, configuration = row
    return Hosted(
        id=name,
        pattern=pattern,
        columns=columns,
        start=start,
        state=State(state),
        end=end,
        frontier=Frontier(generation, upto),
        lowest=lowest,
        version=None if version[0] is None else Version(*version),
        configuration=configuration,
    )


def _stored(connection: sqlite3.Connection, key: int, interval: tuple[int, int], max_bytes: int) -> list[Entry]:
    after, upto = interval
    found = connection.execute(_SIZES, {"key": key, "after": after})
    with closing(found):
        # An entry counts by where it begins: a gap may reach out of the interval.
        inside = takewhile(lambda row: max(row[2], after) < upto, found)
        last = last_that_fits(((number, size) for number, size, _ in inside), max_bytes)
    if last is None:
        return []
    rows = connection.execute(_ENTRIES, {"key": key, "after": after, "last": last})
    return [
        Entry(min(number, upto), Kind(kind), name, data, None if begin is None else max(begin, after))
        for number, kind, name, data, begin in rows
    ]

"""What a peer's store drops: the oldest results first, and last what a cursor has yet to read.

Within a subscription arrival follows numbers, so what goes is always the beginning, and ``lowest`` says how much.
A document goes with all that refers to it, so no cursor may have yet to read any of that. What refers to it
arrived later, so of those subscriptions too the beginning goes.

Each function here is one transaction's worth of work and returns the rows that went: fewer than
``TRIMMED_AT_ONCE`` means that it is done.
"""

from __future__ import annotations

from contextlib import closing
from itertools import compress, count
from typing import TYPE_CHECKING, Final, NamedTuple

from peer.storage.result_values import State

if TYPE_CHECKING:
    import sqlite3

    from peer.storage.result_values import ResultLimits

# Bounds what one transaction of a long trim holds in the write-ahead log.
TRIMMED_AT_ONCE: Final = 5000

_OLDEST: Final = "SELECT seq, r.hosted, number, size, at FROM results AS r INDEXED BY results_in_order"
# One row per subscription with cursors is joined; no page with data is touched, however much is unread.
_OLDEST_READ: Final = (
    f"{_OLDEST} LEFT JOIN (SELECT hosted AS reader, min(upto) AS done FROM cursors GROUP BY hosted)"
    " ON reader = r.hosted WHERE (done IS NULL OR number <= done) AND NOT EXISTS (SELECT 1 FROM cursors AS c"
    " JOIN results AS own ON own.hosted = c.hosted AND own.number = r.number"
    " WHERE own.document = r.seq AND c.upto < own.number) AND NOT EXISTS (SELECT 1 FROM followed AS f"
    " JOIN cursors AS c ON c.upto < f.number WHERE f.document = r.seq"
    " AND substr(f.followers, c.hosted, 1) = x'01')"
)
_REFERRING: Final = "SELECT seq, hosted, number, size, at FROM results WHERE document = ? ORDER BY seq"
_FOLLOWERS: Final = "SELECT followers FROM followed WHERE document = ?"


class Dropped(NamedTuple):
    """How many entries went, and up to which number, by the key of their subscription."""

    rows: int
    lowest: dict[int, int]


class _Row(NamedTuple):
    seq: int
    hosted: int
    number: int
    size: int
    at: float


def drop_read(connection: sqlite3.Connection, limits: ResultLimits, now: float) -> Dropped:
    """Drop entries beyond the limits for keeping, but none that a cursor has yet to read."""
    return _drop_oldest(connection, _OLDEST_READ, limits.kept_bytes, now - limits.kept_age_s)


def drop_unread(connection: sqlite3.Connection, limits: ResultLimits) -> Dropped:
    """Drop entries beyond the hard limit, whoever has yet to read them."""
    return _drop_oldest(connection, _OLDEST, limits.hard_bytes, None)


def forget_ended(connection: sqlite3.Connection, limits: ResultLimits, now: float) -> None:
    """Forget the subscriptions that ended long ago and of which nothing is left to read."""
    connection.execute(
        "DELETE FROM hosted WHERE state = ? AND ended_at <= ?"
        " AND NOT EXISTS (SELECT 1 FROM results WHERE results.hosted = key)"
        " AND NOT EXISTS (SELECT 1 FROM followed WHERE substr(followers, key, 1) = x'01')",
        (State.ENDED.value, now - limits.kept_age_s),
    )


def _drop_oldest(
    connection: sqlite3.Connection, candidates: str, most_bytes: int, old_at: float | None
) -> Dropped:
    [[held]] = connection.execute("SELECT held_bytes FROM totals")
    gone: set[int] = set()
    lowest: dict[int, int] = {}
    with closing(connection.execute(f"{candidates} ORDER BY r.seq LIMIT {TRIMMED_AT_ONCE}")) as rows:
        for row in map(_Row._make, rows):
            if held <= most_bytes and (old_at is None or row.at > old_at):
                break
            for one in (row, *map(_Row._make, connection.execute(_REFERRING, (row.seq,)))):
                if one.seq not in gone:
                    gone.add(one.seq)
                    held -= one.size
                    _raise(lowest, one.hosted, one.number)
            for (followers,) in connection.execute(_FOLLOWERS, (row.seq,)):
                for key in compress(count(1), followers):
                    _raise(lowest, key, row.number)
    # The newest first: what refers to a document before the document.
    connection.executemany("DELETE FROM results WHERE seq = ?", [(seq,) for seq in sorted(gone, reverse=True)])
    connection.executemany(
        "UPDATE frontiers SET lowest = max(lowest, ?) WHERE hosted = ?",
        [(number, hosted) for hosted, number in lowest.items()],
    )
    connection.execute("UPDATE totals SET held_bytes = ?", (held,))
    return Dropped(len(gone), lowest)


def _raise(lowest: dict[int, int], hosted: int, number: int) -> None:
    lowest[hosted] = max(lowest.get(hosted, 0), number)

"""A disk in virtual time, with a real store on it: changes wait, a commit takes a while, a crash loses the rest.

Group commit as in the daemons: what waits when the disk is free goes into one transaction. A slow disk takes
longer. A full one makes SQLite say so; then whoever waits for an answer is told, and the rest is tried again.

A crash of the process leaves the transaction under way whole or not at all. When the power goes, any part of what
that transaction wrote into the write-ahead log is there and any is not: the file is cut anywhere, or some of its
sectors still hold what they held before. If the store does not force each commit to disk, that is so of everything
since it was opened. What the store says when it is opened again is checked by who owns it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from peer.storage.errors import DiskFull
from scenarios.simulation.tasks import Promise

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from peer.storage.database import Database
    from scenarios.simulation.agenda import Agenda

_QUICK_S: Final = 0.05
_FULL_S: Final = 0.5
_SECTOR: Final = 512
_WAL_HEADER: Final = 32
_FULL_SYNC: Final = 2
_NO_LIMIT: Final = 4_294_967_294


class Store(Protocol):
    """A store of ``peer.storage``."""

    _database: Database

    def close(self) -> None:
        """Close the file."""


Change = TypeVar("Change")
Outcome = TypeVar("Outcome")
AnyStore = TypeVar("AnyStore", bound=Store)


@dataclass(slots=True, eq=False)
class _Waiting(Generic[Change, Outcome]):
    change: Change
    answer: Promise[Outcome] | None = None


class Disk(Generic[AnyStore, Change, Outcome]):
    """``write`` commits changes to the store; ``done`` hears of each, unless the machine has crashed by then."""

    def __init__(
        self, agenda: Agenda, path: Path, opened: Callable[[Path], AnyStore],
        write: Callable[[AnyStore, Sequence[Change]], Sequence[Outcome]],
    ) -> None:  # fmt: skip
        self._agenda, self._path, self._opened, self._write = agenda, path, opened, write
        self.done: Callable[[Change, Outcome], None] = lambda change, outcome: None
        self.slowness = 1.0
        self.trap: Callable[[], None] | None = None
        """What happens in the middle of the next commit."""
        self.torn = 0
        """How often a crash left a transaction in pieces."""
        self._store: AnyStore | None = None
        self._is_full = False
        self.trouble = ""
        self._waiting: list[_Waiting[Change, Outcome]] = []
        self._writing: list[_Waiting[Change, Outcome]] = []
        self._life = 0
        self._when_opened = b""

    @property
    def store(self) -> AnyStore:
        """The store; open while the machine is up."""
        assert self._store is not None
        return self._store

    def start(self) -> AnyStore:
        """Open the store, as it was left."""
        self._store = self._opened(self._path)
        self._when_opened = self._read_wal()
        self._limit_pages()
        return self._store

    @property
    def is_full(self) -> bool:
        """Whether there is no room; SQLite may still find some within the file."""
        return self._is_full

    @is_full.setter
    def is_full(self, is_full: bool) -> None:
        self._is_full = is_full
        if self._store is not None:
            self._limit_pages()

    def put(self, change: Change) -> None:
        """Let a change wait for the next commit."""
        self._take(_Waiting(change))

    async def commit(self, change: Change) -> Outcome:
        """Commit a change, and return when it is safe; ``DiskFull`` if there is no room."""
        answer: Promise[Outcome] = Promise()
        self._take(_Waiting(change, answer))
        return await answer

    def crash(self, *, is_power: bool) -> None:
        """Lose what waits; what is being written is there, or it is not, or in pieces."""
        [[synchronous]] = self._writer.execute("PRAGMA synchronous")
        # Else the file might be brought up to date too, which no disk does before the log is safe.
        self._writer.execute("PRAGMA wal_autocheckpoint = 0").fetchall()
        before = self._read_wal() if synchronous >= _FULL_SYNC else self._when_opened
        if self._writing and (is_power or self._agenda.rng.random() < 0.5):
            self._try_write()
        file, after = self._path.read_bytes(), self._read_wal()
        left = torn(before, after, self._agenda.rng) if is_power else after
        self.torn += left not in (before, after)
        self.close()
        self._path.write_bytes(file)
        self._wal.write_bytes(left)
        self._waiting, self._writing, self.trouble = [], [], ""
        self._life += 1

    def close(self) -> None:
        """Close the store, if it is open."""
        if self._store is not None:
            self._store.close()
            self._store = None

    # How it is done.

    @property
    def _wal(self) -> Path:
        return self._path.with_name(self._path.name + "-wal")

    def _read_wal(self) -> bytes:
        return self._wal.read_bytes() if self._wal.exists() else b""

    @property
    def _writer(self) -> Any:
        return self.store._database._writer

    def _limit_pages(self) -> None:
        # SQLite raises what is below the number of pages that there are.
        self._writer.execute(f"PRAGMA max_page_count = {1 if self._is_full else _NO_LIMIT}").fetchall()

    def _take(self, entry: _Waiting[Change, Outcome]) -> None:
        self._waiting.append(entry)
        if not self._writing:
            self._begin()

    def _begin(self) -> None:
        self._writing, self._waiting = self._waiting, []
        delay = _QUICK_S * self._agenda.rng.random() * self.slowness
        if self.trap is not None:
            self._agenda.after(delay / 2, self.trap)
            self.trap = None
        self._agenda.after(delay, self._end, self._life)

    def _end(self, life: int) -> None:
        if life != self._life:
            return
        try:
            outcomes = self._write(self.store, [entry.change for entry in self._writing])
        except DiskFull as exc:
            self._put_back(exc)
            return
        written, self._writing, self.trouble = self._writing, [], ""
        for entry, outcome in zip(written, outcomes, strict=True):
            if life == self._life:
                self.done(entry.change, outcome)
                if entry.answer is not None:
                    entry.answer.keep(outcome)
        if self._waiting and not self._writing and life == self._life:
            self._begin()

    def _put_back(self, exc: DiskFull) -> None:
        """There is no room: whoever waits for an answer gets this one, the rest waits."""
        self.trouble = str(exc)
        asked = [entry.answer for entry in self._writing if entry.answer is not None]
        self._writing = [entry for entry in self._writing if entry.answer is None]
        self._agenda.after(_FULL_S, self._end, self._life)
        for answer in asked:
            answer.fail(exc)

    def _try_write(self) -> None:
        with suppress(DiskFull):
            self._write(self.store, [entry.change for entry in self._writing])


def torn(before: bytes, after: bytes, rng: random.Random) -> bytes:
    """Return what may be left of a file that was being changed when the power went.

    >>> import random
    >>> torn(b"same", b"same", random.Random(1))
    b'same'
    >>> torn(b"", b"-" * 32 + b"abcdefgh", random.Random(1))[32:]
    b'a'
    """
    if before == after:
        return after
    if before[:_WAL_HEADER] != after[:_WAL_HEADER]:
        # The log begins anew; SQLite forces its header to disk before anything else.
        before = after[:_WAL_HEADER] + before[_WAL_HEADER:]
    first = _common(before, after)
    if rng.random() < 0.5:
        cut = rng.randint(first, len(after))
        return after[:cut] + before[cut:]
    found = bytearray(before.ljust(len(after), b"\0"))
    for begin in range(first - first % _SECTOR, len(after), _SECTOR):
        if rng.random() < 0.7:
            found[begin : begin + _SECTOR] = after[begin : begin + _SECTOR]
    return bytes(found)


def _common(one: bytes, other: bytes) -> int:
    """Return how many bytes two begin with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low

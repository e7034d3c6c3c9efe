"""Group commit: whatever waits when the disk is free goes into one transaction.

Theory of operation. A transaction that the store refuses left nothing behind. If the world is to blame (the disk
is full, or broken), whoever waits for an answer is told so, everything else goes back to its place and is tried
again after a while: meanwhile ``trouble`` says why. If one of the changes is to blame, they are tried in halves
until it is alone; it is dropped, ``failed`` hears of it, and the others are committed.

A commit costs more than passing a document on, and most of that is the same for one change as for ten. So a change
that comes *gently* may be held for a moment (``peer.hosting.holding``) if nobody is waiting for what it brings,
and as long as nothing else comes.

    gentle, soon after another --held--> due with a later one, in time, or with anything else
    gentle otherwise, any other --due--> written: here and now while the disk is quick, else by ``run``
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import trio

from peer.daemon.disk_pace import DiskPace
from peer.daemon.own_time import OwnTime
from peer.daemon.questions import NotNow
from peer.hosting.holding import Holding
from peer.storage.errors import BrokenStore, DiskFull, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_LOG: Final = logging.getLogger("distributary.storage")
Change = TypeVar("Change")
Outcome = TypeVar("Outcome")


@dataclass(eq=False)
class _Entry(Generic[Change, Outcome]):
    change: Change
    done: trio.Event | None = None
    is_gathered: bool = False
    is_gentle: bool = False
    outcome: Outcome | None = None
    error: StorageError | None = None
    is_over: bool = False


@dataclass(eq=False)
class Committer(Generic[Change, Outcome]):
    """Commits changes in the order given. ``write`` may run in a thread and returns an outcome for each; ``done``
    hears of them, in order, in the event loop; ``failed`` of a change that cannot be. ``retry_s``: how long to
    wait for room on the disk. ``gather_s``: how long changes that nobody waits for are gathered; a transaction
    costs as much as many changes. ``holding``: how long and how many bytes of changes that came gently may be
    held; ``is_awaited``: whether anybody waits for them."""

    write: Callable[[Sequence[Change]], Sequence[Outcome]]
    done: Callable[[Change, Outcome], None]
    failed: Callable[[Change, StorageError], None] = lambda _, __: None
    most: int = 2_000
    retry_s: float = 1.0
    gather_s: float = 0.0
    holding: Holding = field(default_factory=Holding)
    is_awaited: Callable[[], bool] = lambda: True
    trouble: str = ""
    _pace: DiskPace = field(default_factory=DiskPace)
    _clock: OwnTime = field(default_factory=OwnTime)
    _is_running: bool = False
    _rest: trio.CancelScope = field(default_factory=trio.CancelScope)
    _waiting: list[_Entry[Change, Outcome]] = field(default_factory=list)
    _taken: list[_Entry[Change, Outcome]] = field(default_factory=list)
    _wake: trio.Event = field(default_factory=trio.Event)
    _settled: trio.Event = field(default_factory=trio.Event)

    @property
    def waiting(self) -> int:
        """How many changes wait."""
        return len(self._waiting)

    @property
    def changes(self) -> list[Change]:
        """What is not committed yet, and not let go of."""
        return [entry.change for entry in (*self._taken, *self._waiting) if not entry.is_over]

    def put(self, change: Change) -> None:
        """Let a change wait for the next transaction."""
        self._waiting.append(_Entry(change, is_gathered=True))
        self._wake.set()

    def put_gently(self, change: Change, size: int) -> None:
        """Let a change wait that may be held, of so many bytes; ``look`` is to be called soon."""
        self._waiting.append(_Entry(change, is_gentle=True))
        self.holding.came(trio.current_time(), size)

    def look(self, *, here: bool = False) -> None:
        """Decide what becomes of changes that came gently. ``here``: they may be written now."""
        if not self._waiting or self._wake.is_set():
            return
        if self._is_held():
            if self.holding.until < self._rest.deadline:
                self._rest.deadline = self.holding.until
        elif not (here and self._write_here()):
            self._wake.set()

    def hurry(self) -> None:
        """Hold nothing any longer."""
        if self._waiting:
            self._wake.set()

    def _is_held(self) -> bool:
        if self.trouble or self._taken or self.is_awaited() or not self.holding.is_held(trio.current_time()):
            return False
        return all(entry.is_gentle for entry in self._waiting)

    def _write_here(self) -> bool:
        """Write what waits without a task in between; say whether it is done. If the store refuses it, nothing has
        happened: ``run`` tries again, and does what is to be done then."""
        if self.trouble or self._taken or not (self._is_running and self._pace.is_direct):
            return False
        taken = [entry for entry in self._waiting if not entry.is_over]
        begun = self._clock.now()
        try:
            outcomes = self.write([entry.change for entry in taken])
        except StorageError:
            return False
        finally:
            self._pace.took(self._clock.now() - begun)
        self._waiting = []
        self.holding.gone()
        if self._rest.deadline < math.inf:
            self._rest.deadline = math.inf
        self._tell(taken, outcomes)
        self._settled.set()
        return True

    async def commit(self, change: Change) -> Outcome:
        """Commit a change, and return when it is safe; ``NotNow`` if there is no room or the disk is broken,
        ``StorageError`` if the change cannot be."""
        entry: _Entry[Change, Outcome] = _Entry(change, trio.Event())
        self._waiting.append(entry)
        self._wake.set()
        assert entry.done is not None
        await entry.done.wait()
        if isinstance(entry.error, DiskFull | BrokenStore):
            raise NotNow(str(entry.error)) from entry.error
        if entry.error is not None:
            raise entry.error
        assert entry.outcome is not None
        return entry.outcome

    def drop(self, unwanted: Callable[[Change], bool]) -> None:
        """Let go of changes that are not committed yet and that nobody waits for."""
        for entry in (*self._taken, *self._waiting):
            if entry.done is None and unwanted(entry.change):
                entry.is_over = True

    async def settled(self) -> None:
        """Return when nothing waits and nothing is being written."""
        while self._waiting or self._taken:
            self.hurry()
            self._settled = trio.Event()
            await self._settled.wait()

    async def run(self) -> None:
        """Commit until cancelled; what is being written then is finished first."""
        with self._clock:
            self._is_running = True
            try:
                while True:
                    await self._until_due()
                    self._taken, self._waiting = self._waiting[: self.most], self._waiting[self.most :]
                    self.holding.gone()
                    try:
                        await self._commit(self._taken)
                    except (DiskFull, BrokenStore) as exc:
                        self._put_back(exc)
                        await trio.sleep(self.retry_s)
                    self._taken = []
                    self._settled.set()
            finally:
                self._is_running = False

    async def _until_due(self) -> None:
        """Wait until something is to be written."""
        if self._waiting and not self._is_held():
            await trio.lowlevel.checkpoint()  # whatever waits, others have their turn
            return
        is_due = False
        while not is_due:
            self._wake = trio.Event()
            until = self.holding.until if self._waiting else math.inf
            with trio.CancelScope(deadline=until) as self._rest:
                await self._wake.wait()
            is_due = bool(self._waiting) and (self._wake.is_set() or not self._is_held())
        if self._is_gathering:
            await trio.sleep(self.gather_s)

    @property
    def _is_gathering(self) -> bool:
        """Whether more changes are to be waited for."""
        if any(entry.done is not None for entry in self._waiting):
            return False
        return self.gather_s > 0 and all(entry.is_gathered for entry in self._waiting)

    async def _commit(self, entries: list[_Entry[Change, Outcome]]) -> None:
        taken = [entry for entry in entries if not entry.is_over]
        try:
            with trio.CancelScope(shield=True):
                outcomes = await self._written([entry.change for entry in taken])
        except (DiskFull, BrokenStore):
            raise
        except StorageError as exc:
            await self._in_halves(taken, exc)
            return
        if self.trouble and taken:
            _LOG.warning("storing again")
            self.trouble = ""
        self._tell(taken, outcomes)

    def _tell(self, taken: list[_Entry[Change, Outcome]], outcomes: Sequence[Outcome]) -> None:
        for entry, outcome in zip(taken, outcomes, strict=True):
            entry.outcome, entry.is_over = outcome, True
            self.done(entry.change, outcome)
            if entry.done is not None:
                entry.done.set()

    async def _written(self, changes: list[Change]) -> Sequence[Outcome]:
        """Write, in a thread unless the disk is quicker than that."""
        if not self._pace.next_is_direct():
            return await trio.to_thread.run_sync(self.write, changes)
        begun = self._clock.now()
        try:
            return self.write(changes)
        finally:
            self._pace.took(self._clock.now() - begun)

    async def _in_halves(self, taken: list[_Entry[Change, Outcome]], exc: StorageError) -> None:
        """One of these cannot be committed: find it, and commit the others."""
        half = len(taken) // 2
        if half:
            await self._commit(taken[:half])
            await self._commit(taken[half:])
            return
        (entry,) = taken
        about = {"change": type(entry.change).__name__, "reason": str(exc)}
        _LOG.error("not stored", extra=about, exc_info=exc.__cause__)
        _refuse(entry, exc)
        self.failed(entry.change, exc)

    def _put_back(self, exc: StorageError) -> None:
        """There is no room now: whoever waits for an answer gets this one, the rest waits."""
        if not self.trouble:
            _LOG.error("not stored", extra={"reason": str(exc), "waiting": len(self._taken) + len(self._waiting)})
        self.trouble = str(exc)
        for entry in self._taken:
            if entry.done is not None and not entry.is_over:
                _refuse(entry, exc)
        self._waiting = [entry for entry in self._taken if not entry.is_over] + self._waiting
        self._taken = []


def _refuse(entry: _Entry[Change, Outcome], exc: StorageError) -> None:
    entry.error, entry.is_over = exc, True
    if entry.done is not None:
        entry.done.set()

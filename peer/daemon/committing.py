"""Group commit: whatever waits when the disk is free goes into one transaction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

import trio

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Change = TypeVar("Change")
Outcome = TypeVar("Outcome")


@dataclass(eq=False)
class _Entry(Generic[Change, Outcome]):
    change: Change
    done: trio.Event | None = None
    outcome: Outcome | None = None


@dataclass(eq=False)
class Committer(Generic[Change, Outcome]):
    """Commits changes in the order given. ``write`` runs in a thread and returns an outcome for each; ``done``
    hears of them, in order, in the event loop."""

    write: Callable[[Sequence[Change]], Sequence[Outcome]]
    done: Callable[[Change, Outcome], None]
    most: int = 2_000
    _waiting: list[_Entry[Change, Outcome]] = field(default_factory=list)
    _wake: trio.Event = field(default_factory=trio.Event)
    _is_writing: bool = False
    _settled: trio.Event = field(default_factory=trio.Event)

    @property
    def waiting(self) -> int:
        """How many changes wait."""
        return len(self._waiting)

    def put(self, change: Change) -> None:
        """Let a change wait for the next transaction."""
        self._waiting.append(_Entry(change))
        self._wake.set()

    async def commit(self, change: Change) -> Outcome:
        """Commit a change, and return when it is safe."""
        entry: _Entry[Change, Outcome] = _Entry(change, trio.Event())
        self._waiting.append(entry)
        self._wake.set()
        assert entry.done is not None
        await entry.done.wait()
        assert entry.outcome is not None
        return entry.outcome

    async def settled(self) -> None:
        """Return when nothing waits and nothing is being written."""
        while self._waiting or self._is_writing:
            self._settled = trio.Event()
            await self._settled.wait()

    async def run(self) -> None:
        """Commit until cancelled; what is being written then is finished first."""
        while True:
            if not self._waiting:
                self._wake = trio.Event()
                await self._wake.wait()
            taken, self._waiting = self._waiting[: self.most], self._waiting[self.most :]
            self._is_writing = True
            with trio.CancelScope(shield=True):
                outcomes = await trio.to_thread.run_sync(self.write, [entry.change for entry in taken])
            for entry, outcome in zip(taken, outcomes, strict=True):
                entry.outcome = outcome
                self.done(entry.change, outcome)
                if entry.done is not None:
                    entry.done.set()
            self._is_writing = False
            self._settled.set()

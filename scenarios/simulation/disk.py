"""A disk in virtual time: changes wait, a commit takes a while, and a crash loses what was not committed.

A commit is a transaction: a crash while it is under way leaves all of it or nothing. A slow disk takes longer; a
full one commits nothing until there is room again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from scenarios.simulation.agenda import Agenda

Change = TypeVar("Change")
_QUICK_S: Final = 0.05
_FULL_S: Final = 0.5


class Disk(Generic[Change]):
    """``apply`` makes a change durable; ``done`` hears of each commit, unless the machine has crashed by then."""

    def __init__(self, agenda: Agenda, apply: Callable[[Change], None]) -> None:
        self._agenda, self._apply = agenda, apply
        self.done: Callable[[list[Change]], None] = lambda changes: None
        self.slowness = 1.0
        self.is_full = False
        self._waiting: list[Change] = []
        self._writing: list[Change] = []
        self._life = 0

    def put(self, change: Change) -> None:
        """Let a change wait for the next commit."""
        self._waiting.append(change)
        if not self._writing:
            self._begin()

    def crash(self) -> None:
        """Lose what waits; what is being written is there, or it is not."""
        if self._writing and self._agenda.rng.random() < 0.5:
            self._write(self._writing)
        self._waiting, self._writing = [], []
        self._life += 1

    def _begin(self) -> None:
        self._writing, self._waiting = self._waiting, []
        delay = _QUICK_S * self._agenda.rng.random() * self.slowness
        self._agenda.after(delay, self._end, self._life)

    def _end(self, life: int) -> None:
        if life != self._life:
            return
        if self.is_full:
            self._agenda.after(_FULL_S, self._end, life)
            return
        written, self._writing = self._writing, []
        self._write(written)
        self.done(written)
        if self._waiting and not self._writing:
            self._begin()

    def _write(self, changes: list[Change]) -> None:
        for change in changes:
            self._apply(change)

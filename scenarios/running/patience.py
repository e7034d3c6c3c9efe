"""Asking until there is an answer, for so long; and doing so beside what else happens."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from overlay.identity import IdentityError
from peer.errors import CommandError
from scenarios.hosts.ssh import HostLost
from scenarios.processes import DaemonFailed
from scenarios.running.story import FAILED, Happened, RunFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from scenarios.timeline import Event

Found = TypeVar("Found")
_AGAIN_S: Final = 0.1
_ONE_S: Final = 75.0
"""A peer that is asked something asks the source for up to a minute."""
_LAST_S: Final = 2.0
FAILURES: Final = (CommandError, RunFailed, DaemonFailed, IdentityError, OSError)


@dataclass(slots=True)
class Patience:
    """``seconds``: how long it lasts from each question on; ``is_over``: set, it ends at once."""

    seconds: float
    is_over: threading.Event = field(default_factory=threading.Event)

    def ask(self, function: Callable[[float], Found]) -> Found:
        """Call a function until it does not fail: what is asked so may be asked twice. It is told how long it may
        take. ``RunFailed`` says why there is no answer."""
        end = time.monotonic() + self.seconds
        while True:
            try:
                return function(max(min(end - time.monotonic(), _ONE_S), _AGAIN_S))
            except FAILURES as exc:
                if time.monotonic() > end or self.is_over.is_set():
                    raise RunFailed(str(exc)) from exc
                time.sleep(_AGAIN_S)


class _Errand:
    def __init__(self, event: Event, at: float, do: Callable[[], str]) -> None:
        self.event, self.at, self._do = event, at, do
        self.outcome = f"{FAILED}it was not done in time"
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.outcome = self._do()
        except (*FAILURES, HostLost) as exc:
            self.outcome = f"{FAILED}{exc}"


class Errands:
    """What waits for answers is done beside the timeline; a context manager whose end is the end of them all."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._under_way: list[_Errand] = []

    def send(self, event: Event, at: float, do: Callable[[], str]) -> None:
        """Begin to do something; it returns what came of it."""
        self._under_way.append(_Errand(event, at, do))

    def wait(self, end: float) -> list[Happened]:
        """Wait until all are done, or it is that late, and return what came of them."""
        for one in self._under_way:
            one.thread.join(max(0.0, end - time.monotonic()))
        self._patience.is_over.set()
        for one in self._under_way:
            one.thread.join(_LAST_S)
        errands, self._under_way = self._under_way, []
        return [Happened(one.at, one.event.shown, one.outcome, one.event.number) for one in errands]

    def __enter__(self) -> Errands:
        return self

    def __exit__(self, *_: Any) -> None:
        self._patience.is_over.set()

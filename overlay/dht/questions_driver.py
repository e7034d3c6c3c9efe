"""Questions under way: who was asked what, until an answer comes or the tries are used up.

An answer counts only from the address that was asked and under the question's random call id. One timer looks
after all questions: a timer each costs more than all the rest of a question.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from overlay.dht.messages import Answer, Question, encode_message

if TYPE_CHECKING:
    from overlay.dht.contacts import Address
    from overlay.dht.settings import DhtSettings

_SWEEPS: Final = 5  # per timeout


class Send(Protocol):
    """Sends a payload to an address; ``again`` when it was sent before."""

    def __call__(self, payload: bytes, address: Address, *, again: bool) -> None: ...


@dataclass(slots=True)
class _Waiting:
    address: Address
    payload: bytes
    answer: asyncio.Future[Answer | None]
    tries: int = 0
    until: float = 0.0


class Questions:
    """The questions that wait for an answer, at most ``in_flight`` at once. Owner: the asyncio loop."""

    def __init__(self, send: Send, settings: DhtSettings) -> None:
        self._send = send
        self._settings = settings
        self._waiting: dict[bytes, _Waiting] = {}
        self._slots = asyncio.Semaphore(settings.in_flight)
        self._sweeper: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def ask(self, address: Address, question: Question) -> Answer | None:
        """Ask whoever is at an address, again if need be; None if no answer comes."""
        async with self._slots:
            if self._is_closed:
                return None
            waiting = _Waiting(address, encode_message(question), asyncio.get_running_loop().create_future())
            self._waiting[question.call] = waiting
            try:
                self._try(waiting)
                self._sweep_later()
                return await waiting.answer
            finally:
                del self._waiting[question.call]

    def take(self, answer: Answer, address: Address) -> bool:
        """Take an answer; False if nobody waits for it."""
        waiting = self._waiting.get(answer.call)
        if waiting is None or waiting.address != address:
            return False
        if not waiting.answer.done():  # a repeated question may be answered twice
            waiting.answer.set_result(answer)
        return True

    def close(self) -> None:
        """Leave all questions without an answer."""
        self._is_closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for waiting in self._waiting.values():
            if not waiting.answer.done():
                waiting.answer.set_result(None)

    def _try(self, waiting: _Waiting) -> None:
        self._send(waiting.payload, waiting.address, again=waiting.tries > 0)
        waiting.tries += 1
        waiting.until = asyncio.get_running_loop().time() + self._settings.timeout_s

    def _sweep_later(self) -> None:
        if self._sweeper is None and self._waiting and not self._is_closed:
            loop = asyncio.get_running_loop()
            self._sweeper = loop.call_later(self._settings.timeout_s / _SWEEPS, self._sweep)

    def _sweep(self) -> None:
        """Repeat or give up the questions whose time is up."""
        self._sweeper = None
        now = asyncio.get_running_loop().time()
        for waiting in self._waiting.values():
            if now < waiting.until or waiting.answer.done():
                continue
            if waiting.tries < self._settings.tries:
                self._try(waiting)
            else:
                waiting.answer.set_result(None)
        self._sweep_later()

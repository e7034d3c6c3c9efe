"""Asking another machine something, and waiting for its answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec
import trio

from overlay.wire.errors import FrameTooLarge
from overlay.wire.frames import Answer, Ask
from peer.storage.errors import DiskFull

if TYPE_CHECKING:
    from collections.abc import Callable

    from overlay.wire.frames import Frame

PATIENCE_S: Final = 10.0
_MOST_OPEN: Final = 10_000
_AGAIN: Final = "again"


class NoAnswer(Exception):
    """The other machine cannot be reached, takes too long, or refuses; the message says which."""


class AskAgain(NoAnswer):
    """Nothing is wrong with the question: it can be asked again."""


class Unreachable(AskAgain):
    """The question may not have been heard, or its answer is lost."""


class NotNow(AskAgain):
    """Whoever was asked cannot do it for now: its disk is full, say. Asking again at once is of no use."""


class NotConnected(Unreachable):
    """The question was not sent."""


@dataclass(eq=False)
class _Waiting:
    site: str
    event: trio.Event = field(default_factory=trio.Event)
    answer: Answer | None = None
    is_lost: bool = False


@dataclass(eq=False)
class Questions:
    """The questions of this machine that are not answered yet."""

    send: Callable[[str, Frame], bool]
    _waiting: dict[int, _Waiting] = field(default_factory=dict)
    _next: int = 0

    async def ask(self, site: str, what: str, body: Any, *, patience_s: float = PATIENCE_S) -> Any:
        """Ask, and return what the answer holds; ``NoAnswer`` where there is none."""
        if len(self._waiting) >= _MOST_OPEN:
            raise NoAnswer(f"{_MOST_OPEN:,} questions are open; try again later")
        asked = _encoded(body)
        self._next += 1
        number, waiting = self._next, _Waiting(site)
        self._waiting[number] = waiting
        try:
            try:
                sent = self.send(site, Ask(number, what, asked))
            except FrameTooLarge as exc:
                raise NoAnswer(str(exc)) from None
            if not sent:
                raise NotConnected(f"{site} is not connected")
            with trio.move_on_after(patience_s):
                await waiting.event.wait()
        finally:
            del self._waiting[number]
        if waiting.answer is None:
            raise Unreachable(f"{site} did not answer within {patience_s:.0f} s")
        if waiting.is_lost:
            raise Unreachable(f"the connection to {site} broke")
        try:
            found = msgspec.msgpack.decode(waiting.answer.body)
        except (msgspec.MsgspecError, ValueError, RecursionError) as exc:  # text that is no UTF-8 too
            raise NoAnswer(f"the answer of {site} cannot be read: {exc}") from None
        if not waiting.answer.ok:
            raise _refusal(found)
        return found

    def answered(self, site: str, answer: Answer) -> None:
        """An answer has come."""
        waiting = self._waiting.get(answer.question)
        if waiting is not None and waiting.site == site:
            waiting.answer = answer
            waiting.event.set()

    def lost(self, site: str) -> None:
        """A machine is gone: nobody waits for its answers any longer."""
        for waiting in self._waiting.values():
            if waiting.site == site:
                waiting.is_lost, waiting.answer = True, Answer(0, ok=False, body=b"")
                waiting.event.set()


def _encoded(body: Any) -> bytes:
    try:
        return msgspec.msgpack.encode(body)
    except (TypeError, ValueError, OverflowError) as exc:  # half a character in the text of a command, say
        raise NoAnswer(f"this cannot be asked: {exc}") from None


def answer(question: Ask, found: Any) -> Answer:
    """Answer a question."""
    return Answer(question.question, ok=True, body=msgspec.msgpack.encode(found))


def refuse(question: Ask, reason: str, *, again: bool = False) -> Answer:
    """Refuse to answer: with the reason, or {"again": reason} if the same can be asked again later."""
    told = {_AGAIN: reason[:2000]} if again else reason[:2000]
    return Answer(question.question, ok=False, body=msgspec.msgpack.encode(told))


def is_passing(why: Exception) -> bool:
    """Say whether what was asked for may well be done later."""
    return isinstance(why, AskAgain | DiskFull)


def _refusal(told: Any) -> NoAnswer:
    return NotNow(str(told[_AGAIN])) if isinstance(told, dict) and _AGAIN in told else NoAnswer(str(told))

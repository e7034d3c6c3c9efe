"""Questions between machines in virtual time: asked again after every loss until there is an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from overlay.wire.frames import Answer, Ask

if TYPE_CHECKING:
    from collections.abc import Callable

    from scenarios.simulation.agenda import Agenda
    from scenarios.simulation.wires import Wires

_AGAIN_S: Final = 2.0


class Asking:
    """The open questions of a machine's process; they end with it."""

    def __init__(self, agenda: Agenda, wires: Wires, name: str) -> None:
        self._agenda, self._wires, self._name = agenda, wires, name
        self._open: dict[int, tuple[str, Ask, Callable[[Any], None]]] = {}
        self._next = 0
        self._is_over = False

    def ask(self, site: str, what: str, body: Any, answered: Callable[[Any], None]) -> None:
        """Ask; ``answered`` hears the answer once, unless the process ends."""
        self._next += 1
        question = Ask(self._next, what, msgspec.msgpack.encode(body))
        self._open[self._next] = site, question, answered
        self._try(self._next)

    def take(self, site: str, frame: Answer) -> None:
        """An answer has come; a refusal is one too, with None."""
        found = self._open.get(frame.question)
        if found is not None and found[0] == site:
            del self._open[frame.question]
            found[2](msgspec.msgpack.decode(frame.body) if frame.ok else None)

    def again(self, site: str) -> None:
        """A machine is there (again): ask what is open."""
        for number, (where, _, _) in list(self._open.items()):
            if where == site:
                self._send(number)

    def end(self) -> None:
        """The process has ended."""
        self._open.clear()
        self._is_over = True

    def _try(self, number: int) -> None:
        if number in self._open and not self._is_over:
            self._send(number)
            self._agenda.after(_AGAIN_S, self._try, number)

    def _send(self, number: int) -> None:
        site, question, _ = self._open[number]
        self._wires.send(self._name, site, question)


def answer(question: Ask, found: Any) -> Answer:
    """Answer a question."""
    return Answer(question.question, ok=True, body=msgspec.msgpack.encode(found))


def refuse(question: Ask, why: str) -> Answer:
    """Refuse to answer."""
    return Answer(question.question, ok=False, body=msgspec.msgpack.encode(why))

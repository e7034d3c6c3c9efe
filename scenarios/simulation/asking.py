"""Questions between machines in virtual time: asked again after every loss until there is an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from overlay.wire.frames import Ask
from peer.daemon.questions import NoAnswer
from scenarios.simulation.tasks import Promise

if TYPE_CHECKING:
    from overlay.wire.frames import Answer
    from scenarios.simulation.agenda import Agenda
    from scenarios.simulation.wires import Wires

_AGAIN_S: Final = 2.0


class Asking:
    """The open questions of a machine's process; they end with it."""

    def __init__(self, agenda: Agenda, wires: Wires, name: str) -> None:
        self._agenda, self._wires, self._name = agenda, wires, name
        self._open: dict[int, tuple[str, Ask, Promise[Any]]] = {}
        # Answers to what an earlier process has asked may still be under way; real ones end with their connection.
        self._next = int(agenda.now * 1000) << 16
        self._is_over = False

    def ask(self, site: str, what: str, body: Any) -> Promise[Any]:
        """Ask; the answer, or ``NoAnswer`` for a refusal, is promised, unless the process ends."""
        self._next += 1
        question, promise = Ask(self._next, what, msgspec.msgpack.encode(body)), Promise[Any]()
        self._open[self._next] = site, question, promise
        self._try(self._next)
        return promise

    def take(self, site: str, frame: Answer) -> None:
        """An answer has come."""
        found = self._open.get(frame.question)
        if found is not None and found[0] == site:
            del self._open[frame.question]
            said = msgspec.msgpack.decode(frame.body)
            found[2].keep(said) if frame.ok else found[2].fail(NoAnswer(said))

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

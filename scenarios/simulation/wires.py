"""Connections between machines in virtual time: real framing and keep-alives over links that we make up.

A link delays, has a bandwidth, and keeps the order, as TCP does: what is lost is sent again later, and what is cut
off waits until the link is healed or somebody has lost patience. With ``chaos`` frames are lost, repeated and
overtaken for real, which a connection notices by their numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from overlay.wire.connection import Connection, Patience, Stage
from overlay.wire.errors import WireError
from overlay.wire.frames import OF_SENDER

if TYPE_CHECKING:
    from collections.abc import Callable

    from overlay.wire.frames import Frame
    from scenarios.hosts.links import Links
    from scenarios.simulation.agenda import Agenda

PATIENCE: Final = Patience(1.0, 3.0)
_BEAT_S: Final = 0.25
_AGAIN_S: Final = 0.3
_REFUSED_S: Final = 0.05
_DIAL_S: Final = 5.0


class Machine(Protocol):
    """What is told of connections. Nothing is told to a machine that is down."""

    name: str
    rate: float
    """How fast its clock goes."""

    @property
    def is_up(self) -> bool:
        """Whether its process runs."""

    def connected(self, site: str) -> None:
        """A machine is there."""

    def lost(self, site: str) -> None:
        """A machine is not there any more, or cannot be reached."""

    def heard(self, site: str, frame: Frame) -> None:
        """A frame has come."""

    def feeds(self, site: str) -> bool:
        """Say whether anything on another machine is fed by this one."""


@dataclass(slots=True)
class Chaos:
    """How often a frame is lost, comes twice, or is overtaken, though TCP would not let it."""

    lose: float = 0.0
    repeat: float = 0.0
    overtake: float = 0.0


@dataclass(slots=True, eq=False)
class _Line:
    """One connection. ``is_told``: which end knows that the other is there."""

    ends: dict[str, Connection]
    is_told: dict[str, bool] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    last_at: dict[str, float] = field(default_factory=dict)
    held: dict[str, list[bytes]] = field(default_factory=dict)
    """What an end would have got if the link were not cut."""

    def other(self, name: str) -> str:
        """Return the other end."""
        one, two = self.ends
        return two if name == one else one


class Wires:
    """All connections; see the module's text."""

    def __init__(self, agenda: Agenda, links: Links) -> None:
        self.agenda, self.links, self.chaos = agenda, links, Chaos()
        self.machines: dict[str, Machine] = {}
        self.sent_bytes: dict[str, int] = {}
        self._lines: dict[frozenset[str], _Line] = {}
        self._old: list[_Line] = []
        """Lines of which one end has given up, and the other does not know it yet."""
        agenda.after(_BEAT_S, self._beat)

    def add(self, machine: Machine) -> None:
        """Take a machine in."""
        self.machines[machine.name] = machine
        self.sent_bytes[machine.name] = 0

    def send(self, sender: str, receiver: str, frame: Frame) -> bool:
        """Send a frame; False if there is no connection, and then one is made."""
        key = frozenset((sender, receiver))
        line = self._lines.get(key)
        if line is None or sender in line.ended:
            self._dial(key, sender, receiver)
            return False
        if not line.is_told.get(sender):
            return False
        box = line.ends[sender].outbox
        box.put_feed(frame) if isinstance(frame, OF_SENDER) else box.put(frame)
        self._flush(line, sender)
        return True

    def is_connected(self, one: str, other: str) -> bool:
        """Say whether a machine believes that another is there."""
        line = self._lines.get(frozenset((one, other)))
        return line is not None and bool(line.is_told.get(one)) and one not in line.ended

    def waiting(self, name: str) -> int:
        """Return how many frames wait to be sent by a machine, at most on one connection."""
        boxes = [line.ends[name].outbox for key, line in self._lines.items() if name in key]
        return max((box.waiting for box in boxes), default=0)

    def crash(self, name: str, *, is_noticed: bool) -> None:
        """A machine's process ends. ``is_noticed``: its system says so to the others; else they must find out."""
        for line in [line for line in (*self._lines.values(), *self._old) if name in line.ends]:
            other = line.other(name)
            line.ended.add(name)
            line.ends[name].stage = Stage.CLOSED
            if is_noticed:
                self.agenda.after(self._delay(name, other), self._end, line, other)

    # How it is done.

    def _time(self, name: str) -> float:
        return self.agenda.now * self.machines[name].rate

    def _dial(self, key: frozenset[str], name: str, site: str) -> None:
        incarnations = {end: self.agenda.rng.getrandbits(32) for end in (name, site)}
        ends = {end: Connection(incarnations[end], self._time(end), 0, PATIENCE) for end in (name, site)}
        if key in self._lines:
            self._old.append(self._lines[key])
        line = self._lines[key] = _Line(ends)
        if self.links.between(name, site) is None:
            self.agenda.after(_DIAL_S, self._end, line, name)
        elif not self.machines[site].is_up:
            self.agenda.after(_REFUSED_S, self._end, line, name)
        else:
            for end in (name, site):
                self.agenda.after(self._delay(name, site), self._flush, line, end)

    def _delay(self, name: str, site: str) -> float:
        link = self.links.between(name, site) or self.links.common
        jitter = link.jitter_ms * self.agenda.rng.random() if link.jitter_ms else 0.0
        return (link.rtt_ms / 2 + jitter) / 1000

    def _flush(self, line: _Line, name: str) -> None:
        """Put on the way what an end has to say, frame by frame."""
        rng, chaos, other = self.agenda.rng, self.chaos, line.other(name)
        connection = line.ends[name]
        while connection.outbox and connection.stage is not Stage.CLOSED and name not in line.ended:
            data = connection.send(1, self._time(name))
            self.sent_bytes[name] += len(data)
            if chaos.lose and rng.random() < chaos.lose:
                continue
            link = self.links.between(name, other) or self.links.common
            delay = self._delay(name, other)
            if link.loss and rng.random() < link.loss:
                delay += _AGAIN_S * rng.randint(1, 3)
            size_s = 0.0 if link.mbit is None else len(data) * 8 / (link.mbit * 1e6)
            at = max(self.agenda.now + delay, line.last_at.get(name, 0.0)) + size_s
            line.last_at[name] = at
            if chaos.overtake and rng.random() < chaos.overtake:
                at = self.agenda.now + (at - self.agenda.now) * 3 * rng.random()
            self.agenda.after(at - self.agenda.now, self._arrive, line, other, data)
            if chaos.repeat and rng.random() < chaos.repeat:
                self.agenda.after(at - self.agenda.now + 0.01, self._arrive, line, other, data)

    def _arrive(self, line: _Line, name: str, data: bytes) -> None:
        held = line.held.setdefault(name, [])
        if held or self.links.between(name, line.other(name)) is None:
            held.append(data)  # it is sent again and again, and what comes behind it does not overtake it
            if len(held) == 1:
                self.agenda.after(_AGAIN_S, self._release, line, name)
            return
        self._take(line, name, data)

    def _release(self, line: _Line, name: str) -> None:
        if name in line.ended:
            return
        if self.links.between(name, line.other(name)) is None:
            self.agenda.after(_AGAIN_S, self._release, line, name)
            return
        held, line.held[name] = line.held[name], []
        for data in held:
            self._take(line, name, data)

    def _take(self, line: _Line, name: str, data: bytes) -> None:
        machine, connection, other = self.machines[name], line.ends[name], line.other(name)
        if name in line.ended or not machine.is_up or connection.stage is Stage.CLOSED:
            return
        self.agenda.count(data)
        try:
            frames = connection.receive(data, self._time(name))
        except WireError:
            self._break(line, name)
            return
        if connection.stage is Stage.READY and not line.is_told.get(name):
            for old in [one for one in self._old if set(one.ends) == {name, other} and one is not line]:
                self._end(old, name)  # there is one connection per pair: what hung on the old one is gone
            line.is_told[name] = True
            machine.connected(other)
        for frame in frames:
            if name not in line.ended:
                if self.agenda.is_detailed:
                    self.agenda.detail(f"{name} < {other}: {_short(frame)}")
                machine.heard(other, frame)
        self._flush(line, name)

    def _break(self, line: _Line, name: str) -> None:
        """One end gives a connection up; the other notices a little later, if the link is there."""
        self._end(line, name)
        other = line.other(name)
        if self.links.between(name, other) is not None:
            self.agenda.after(self._delay(name, other), self._end, line, other)

    def _end(self, line: _Line, name: str) -> None:
        """An end knows that the connection is gone."""
        if name in line.ended:
            return
        line.ended.add(name)
        line.ends[name].stage = Stage.CLOSED
        other = line.other(name)
        key = frozenset((name, other))
        if self._lines.get(key) is line:
            del self._lines[key]
            self._old.append(line)
        if self.machines[name].is_up and not self.is_connected(name, other):
            self.machines[name].lost(other)

    def _beat(self) -> None:
        """Keep-alives, and their absence."""
        self._old = [line for line in self._old if len(line.ended) < 2]
        for line in [*self._lines.values(), *self._old]:
            for name, connection in line.ends.items():
                if name in line.ended or not self.machines[name].is_up or connection.stage is Stage.CLOSED:
                    continue
                try:
                    connection.tick(self._time(name), self._is_calm(name, line.other(name)))
                except WireError:
                    self._break(line, name)
                    continue
                self._flush(line, name)
        self.agenda.after(_BEAT_S, self._beat)

    def _is_calm(self, name: str, other: str) -> Callable[[], bool]:
        return lambda: not self.machines[name].feeds(other)


def _short(frame: Frame) -> str:
    """Say in one line what a frame is.

    >>> from overlay.wire.frames import Frontier
    >>> _short(Frontier(1, 2, 3))
    'Frontier feed=1 after=2 upto=3'
    """
    fields = ((name, getattr(frame, name)) for name in frame.__struct_fields__)
    told = (f"{name}={f'{len(value):,} B' if isinstance(value, bytes) else value}" for name, value in fields)
    return " ".join([type(frame).__name__, *told])

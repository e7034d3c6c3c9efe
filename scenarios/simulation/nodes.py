"""Nodes of any kind in virtual time: plain messages between names, over links that delay, lose and are cut.

For protocols that are not the daemons'. A node is anything with ``heard(sender, message)``; messages are any
objects, and are handed over as they are, so nobody may change one that was sent::

    agenda = Agenda(seed=1)
    nodes = Nodes(agenda, Links(Link(rtt_ms=40, loss=0.01)))
    nodes.start("a", a)                          # also again after a crash, with a fresh object
    nodes.send("a", "b", message, size_bytes=80)
    nodes.later("a", 1.5, a.tick)                # by the clock of "a"; gone if "a" crashes before
    nodes.crash("b")
    agenda.run(until=60.0)

``Links`` has a delay, bandwidth and loss for each pair, and cuts and heals; another object with ``between`` does
as well, say one that looks up shortest paths. ``nodes.chaos`` loses, repeats and lets overtake. A message comes
at most once and in order per pair of sender and receiver, unless ``chaos`` says otherwise. It is lost if the
link loses it or is cut when it is sent or would arrive, or if the receiver is down or has crashed since: who
must know asks again. All randomness is ``agenda.rng``, so one seed is one run. A million messages among 1,000
nodes take ten seconds or so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from scenarios.simulation.wires import Chaos

if TYPE_CHECKING:
    from collections.abc import Callable

    from scenarios.hosts.links import Link
    from scenarios.simulation.agenda import Agenda

_TWICE_S: Final = 0.01


class Node(Protocol):
    """What takes part."""

    def heard(self, sender: str, message: Any) -> None:
        """A message has come."""


class Between(Protocol):
    """What lies between nodes."""

    def between(self, one: str, other: str) -> Link | None:
        """Return the link of a pair; None if it is cut."""


@dataclass(slots=True)
class Counts:
    """What a node has sent and heard since it was first started."""

    sent: int = 0
    sent_bytes: int = 0
    heard: int = 0
    heard_bytes: int = 0


@dataclass(slots=True, eq=False)
class _Life:
    """A node from its start to its crash."""

    node: Node
    rate: float


class Nodes:
    """See the module's text."""

    def __init__(self, agenda: Agenda, links: Between) -> None:
        self.agenda, self.links, self.chaos = agenda, links, Chaos()
        self.counts: dict[str, Counts] = {}
        self.lost = 0
        """Messages that never came."""
        self._lives: dict[str, _Life] = {}
        self._last_at: dict[tuple[str, str], float] = {}

    def start(self, name: str, node: Node, *, rate: float = 1.0) -> None:
        """Let a node take part; ``rate``: how fast its clock goes."""
        if name in self._lives:
            raise ValueError(f"{name} is up already")
        self._lives[name] = _Life(node, rate)
        self.counts.setdefault(name, Counts())

    def crash(self, name: str) -> None:
        """Let a node vanish at once, and with it its timers and what is on the way to it; nobody is told."""
        del self._lives[name]

    def is_up(self, name: str) -> bool:
        """Say whether a node takes part."""
        return name in self._lives

    def time(self, name: str) -> float:
        """Return what a node's own clock says."""
        return self.agenda.now * self._lives[name].rate

    def later(self, name: str, delay: float, action: Callable[..., None], *arguments: Any) -> None:
        """Let a node do something later, by its own clock, unless it crashes before."""
        life = self._lives[name]
        self.agenda.after(delay / life.rate, self._due, name, life, action, arguments)

    def send(self, sender: str, receiver: str, message: Any, size_bytes: int = 0) -> None:
        """Send a message; see the module's text for when it comes, and whether."""
        counts = self.counts[sender]
        counts.sent += 1
        counts.sent_bytes += size_bytes
        agenda, rng, chaos = self.agenda, self.agenda.rng, self.chaos
        link, life = self.links.between(sender, receiver), self._lives.get(receiver)
        if (
            link is None
            or life is None
            or (link.loss and rng.random() < link.loss)
            or (chaos.lose and rng.random() < chaos.lose)
        ):
            self.lost += 1
            return
        delay = link.rtt_ms / 2000
        if link.jitter_ms:
            delay += link.jitter_ms * rng.random() / 1000
        pair = sender, receiver
        at = max(agenda.now + delay, self._last_at.get(pair, 0.0))
        if link.mbit is not None:
            at += size_bytes * 8 / (link.mbit * 1e6)
        self._last_at[pair] = at
        delay = at - agenda.now
        if chaos.overtake and rng.random() < chaos.overtake:
            delay *= 3 * rng.random()
        agenda.after(delay, self._arrive, life, sender, receiver, message, size_bytes)
        if chaos.repeat and rng.random() < chaos.repeat:
            agenda.after(delay + _TWICE_S, self._arrive, life, sender, receiver, message, size_bytes)

    def _arrive(self, life: _Life, sender: str, receiver: str, message: Any, size_bytes: int) -> None:
        if self._lives.get(receiver) is not life or self.links.between(sender, receiver) is None:
            self.lost += 1
            return
        counts = self.counts[receiver]
        counts.heard += 1
        counts.heard_bytes += size_bytes
        life.node.heard(sender, message)

    def _due(self, name: str, life: _Life, action: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        if self._lives.get(name) is life:
            action(*arguments)

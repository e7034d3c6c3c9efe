"""Machines in virtual time that take as long as their work takes here: each does one thing after the other.

For experiments with more machines than there are cores. The hosts and the source's views are the real ones; what
handling a frame takes of this process's time, its machine is busy for, and what it sends leaves when it is done.
What has come meanwhile is handled together, as daemons do. Links delay; the disk takes a fixed time. There is no
TLS, no DHT and no SQLite here, and nothing fails.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from itertools import compress
from typing import TYPE_CHECKING, Any, Final

from overlay.feeds.items import Item, Kind
from peer.hosting.catch_up import Body
from peer.hosting.configuration import encode
from peer.hosting.host import Host
from peer.hosting.source_views import SourceViews
from scenarios.scenario_file import SOURCE
from xmlmatch import Document

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from overlay.wire.frames import Open
    from peer.hosting.configuration import Configuration
    from peer.hosting.history import Stretch
    from peer.storage.result_values import Followers
    from scenarios.simulation.agenda import Agenda
    from scenarios.simulation.nodes import Between

COMMIT_S: Final = 0.015
"""From storing until it is safe: what waits is gathered for 10 ms, and a transaction takes some."""
_TICK_S: Final = 0.5


class _Machine:
    """One machine: what has come for it, and until when it is busy."""

    def __init__(self, name: str, timed: Timed) -> None:
        self.name, self._timed = name, timed
        self._waiting: list[Callable[[], None]] = []
        self._out: list[tuple[str, Any]] = []
        self._stored: list[tuple[str, int]] = []
        self._is_due = False
        self.busy_s = 0.0

    def later(self, action: Callable[[], None]) -> None:
        """Do something as soon as there is time for it."""
        self._waiting.append(action)
        if not self._is_due:
            self._is_due = True
            agenda = self._timed.agenda
            agenda.after(max(self._timed.free_at.get(self.name, 0.0) - agenda.now, 0.0), self._work)

    def _work(self) -> None:
        waiting, self._waiting, self._is_due = self._waiting, [], False
        begun = time.process_time()
        for action in waiting:
            action()
        took = (time.process_time() - begun) * self._timed.pace
        self.busy_s += took
        agenda = self._timed.agenda
        self._timed.free_at[self.name] = agenda.now + took
        out, self._out = self._out, []
        for site, frame in out:
            self._timed.carry(self.name, site, frame, took)
        stored, self._stored = self._stored, []
        if stored:
            agenda.after(took + COMMIT_S, self.later, lambda: self.committed(stored))

    def committed(self, stored: list[tuple[str, int]]) -> None:
        """What was stored is safe."""

    # What hosts and views ask for.

    def send(self, site: str, frame: Any) -> bool:
        """Send when the work at hand is done."""
        self._out.append((site, frame))
        return True

    def store(self, subscription: str, items: Sequence[Item], upto: int) -> None:
        """Store when the work at hand is done."""
        self._stored.append((subscription, upto))
        self._timed.made.extend((self.name, subscription, item) for item in items)

    def store_together(
        self, parts: Sequence[tuple[str, Sequence[Item], int]], followers: Followers | None = None
    ) -> None:
        """Store for several."""
        for part in parts:
            self.store(*part)
        relay, items, upto = parts[0]
        for name, matched in followers.each() if followers else ():
            meant = compress(items, matched)
            self.store(
                name, [Item(one.number, Kind.REFERENCE, relay.encode(), name=one.name) for one in meant], upto
            )

    def stored(self, subscription: str, after: int, upto: int, most_bytes: int) -> Stretch:
        """Nothing needs to be read back: everybody is up to date, or begins with the next document."""
        raise LookupError(f"{subscription} on {self.name} is asked for ({after}, {upto}]")

    def forbids(self, site: str, asked: Open) -> str:
        """Everything is allowed."""
        return ""


class _Peer(_Machine):
    def __init__(self, name: str, timed: Timed) -> None:
        super().__init__(name, timed)
        self.host = Host(name, SOURCE, self, random.Random(f"{name} {timed.seed}"))
        self.later(self._tick)

    def heard(self, site: str, frames: Sequence[Any]) -> None:
        self.host.handle_all(site, frames, self._timed.agenda.now)

    def committed(self, stored: list[tuple[str, int]]) -> None:
        now = self._timed.agenda.now
        for subscription, upto in stored:
            self.host.committed(subscription, upto)
            self._timed.safe.append((subscription, upto, now))

    def _tick(self) -> None:
        self.host.tick(self._timed.agenda.now)
        self._timed.agenda.after(_TICK_S, self.later, self._tick)


class _Source(_Machine):
    def __init__(self, timed: Timed) -> None:
        super().__init__(SOURCE, timed)
        self.views = SourceViews(SOURCE, timed, self)

    def heard(self, site: str, frames: Sequence[Any]) -> None:
        for frame in frames:
            self.views.handle(site, frame)

    def publish(self, number: int, body: bytes) -> None:
        self.views.published(number, f"d{number}", body, Document.parse(body))


@dataclass(eq=False)
class Timed:
    """A source and machines; ``pace``: how many times as long as here everything takes.

    ``made``: what was stored, by machine and subscription. ``safe``: which subscription was safe up to which
    document when.
    """

    agenda: Agenda
    links: Between
    seed: int = 1
    pace: float = 1.0
    made: list[tuple[str, str, Item]] = field(default_factory=list)
    safe: list[tuple[str, int, float]] = field(default_factory=list)
    free_at: dict[str, float] = field(default_factory=dict)
    generation: int = 1
    lowest: int = 0
    _bodies: list[bytes] = field(default_factory=list)
    _together: dict[tuple[str, str], tuple[float, list[Any]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.source = _Source(self)
        self.peers: dict[str, _Peer] = {}

    @property
    def last(self) -> int:
        """The highest number of the source's log."""
        return len(self._bodies)

    def bodies(self, after: int, upto: int, most_bytes: int) -> list[Body]:
        """Read the source's log."""
        return [Body(n, f"d{n}", self._bodies[n - 1]) for n in range(after + 1, upto + 1)]

    def install(self, configurations: Sequence[Configuration]) -> None:
        """Let everybody have a configuration at once; that takes no time."""
        for one in configurations:
            if one.site not in self.peers:
                self.peers[one.site] = _Peer(one.site, self)
        for one in configurations:
            self.peers[one.site].host.install(one, encode(one), self.agenda.now)
        for peer in self.peers.values():
            peer.later(lambda: None)  # so that what they send leaves

    def publish(self, body: bytes) -> int:
        """Publish a document now; return its number."""
        self._bodies.append(body)
        number = len(self._bodies)
        self.source.later(lambda: self.source.publish(number, body))
        return number

    def carry(self, sender: str, receiver: str, frame: Any, delay: float) -> None:
        """Bring a frame over; frames that leave together arrive together."""
        link = self.links.between(sender, receiver)
        if link is None:
            raise LookupError(f"no way from {sender} to {receiver}")
        leaves = self.agenda.now + delay
        pair = (sender, receiver)
        known = self._together.get(pair)
        if known is not None and known[0] == leaves:
            known[1].append(frame)
            return
        frames = [frame]
        self._together[pair] = leaves, frames
        self.agenda.after(delay + link.rtt_ms / 2000, self._arrive, sender, receiver, frames)

    def _arrive(self, sender: str, receiver: str, frames: list[Any]) -> None:
        machine = self.source if receiver == SOURCE else self.peers[receiver]
        machine.later(lambda: machine.heard(sender, frames))

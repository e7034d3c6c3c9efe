"""A content-driven network in virtual time: the source, machines with a node and an inbox, and what can happen to
them.

Inboxes are durable, and so is what the source writes; nodes forget everything when their machine does. Everything
that was asked for is kept beside, so that ``wrong`` can say in the end who lacks what, by looking at every pair
of a message and a subscription.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from overlay.content import frames
from overlay.content.inbox import Inbox
from overlay.content.node import ContentNode
from overlay.content.origin import Origin
from overlay.payloads.desk import Desk
from rewriting.filters.disjunction import Disjunction
from scenarios.hosts.links import Link, Links
from scenarios.simulation.agenda import Agenda
from scenarios.simulation.nodes import Nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from overlay.content.journal import Record
    from rewriting.filters.region import Point, Region
    from rewriting.filters.space import Space

SOURCE: Final = "source"
_TICK_S: Final = 0.25
_PATIENCE_S: Final = 120.0


@dataclass(slots=True)
class Wanted:
    """What a subscription is owed: at this point, with this filter, the numbers in (start, end]."""

    name: str
    site: str
    start: int
    point: Point
    filter: Disjunction | None
    end: int | None = None


@dataclass(slots=True)
class Published:
    """A message: its number, what it covers and says."""

    number: int
    region: Region
    attributes: dict[str, str]


@dataclass(slots=True)
class Machine:
    """A machine: its node while it runs, and its inbox for ever. ``cap_bytes``: of its repository; None: plain
    CN."""

    world: ContentWorld
    name: str
    cap_bytes: int | None
    inbox: Inbox = field(default_factory=Inbox)
    node: ContentNode | None = None
    starts: int = 0

    def start(self) -> None:
        """Let its process begin, knowing nothing but its inbox."""
        self.starts += 1
        desk = None if self.cap_bytes is None else Desk(self.name, SOURCE, cap_bytes=self.cap_bytes)
        self.node = self.world.make_node(self.name, self.starts, desk)
        self.world.nodes.start(self.name, self)
        self._tick()

    def heard(self, sender: str, message: Any) -> None:
        """A frame has come."""
        assert self.node is not None
        if isinstance(message, frames.Deliver | frames.Seen):
            self.world.send(self.name, self.inbox.take(sender, message))
        self.world.send(self.name, self.node.handle(sender, message, self.world.agenda.now))

    def _tick(self) -> None:
        assert self.node is not None
        self.world.send(self.name, self.node.tick(self.world.agenda.now))
        self.world.nodes.later(self.name, _TICK_S, self._tick)


class ContentWorld:
    """A source and machines, in one space. See the module's text."""

    def __init__(
        self, seed: int, space: Space, *, link: Link | None = None, to_neighbours: bool = False, access: str = "",
        make_node: Callable[[str, int, Desk | None], ContentNode] | None = None,
    ) -> None:  # fmt: skip
        self.space = space
        self.agenda = Agenda(seed)
        self.links = Links(link or Link(rtt_ms=20, jitter_ms=5))
        self.nodes = Nodes(self.agenda, self.links)
        self._routing = to_neighbours, access
        self.origin = self._make_origin()
        self.records: list[Record] = []
        """What the source has written."""
        self.machines: dict[str, Machine] = {}
        self.wanted: list[Wanted] = []
        self.published: list[Published] = []
        self.sent: dict[str, int] = {}
        """Frames by kind."""
        self.crossed: Counter[tuple[str, str, bytes]] = Counter()
        """How often a payload went from one machine to another."""
        self.corrupt = 0.0
        """How often a payload is changed on its way to a machine that can fetch it again."""
        self._make = make_node
        self.nodes.start(SOURCE, self)
        self._tick()

    def _make_origin(self) -> Origin:
        to_neighbours, access = self._routing
        return Origin(SOURCE, self.space, to_neighbours=to_neighbours, access=access)

    def make_node(self, name: str, start: int, desk: Desk | None) -> ContentNode:
        """Make the node of a machine."""
        if self._make is not None:
            return self._make(name, start, desk)
        return ContentNode(name, SOURCE, self.space, incarnation=start, desk=desk)

    def add(self, name: str, *, cap_bytes: int | None = None, is_node: bool = True) -> None:
        """Let a machine begin; ``is_node``: it takes zones."""
        self.machines[name] = machine = Machine(self, name, cap_bytes)
        machine.start()
        if is_node:
            self.send(SOURCE, self.origin.join(name, self.agenda.now))

    # What the source hears and does.

    def heard(self, sender: str, message: Any) -> None:
        """The source hears a frame."""
        self.send(SOURCE, self.origin.handle(sender, message, self.agenda.now))

    def _tick(self) -> None:
        self.send(SOURCE, self.origin.tick(self.agenda.now))
        self.nodes.later(SOURCE, _TICK_S, self._tick)

    def send(self, sender: str, what: list[tuple[str, frames.Frame]]) -> None:
        """Put frames on the way; what a machine says to itself takes no time, and the source writes first."""
        if sender == SOURCE:
            self.records += self.origin.take_journal()
        for receiver, frame in what:
            if receiver == sender:
                self.agenda.after(0.0, self._to_itself, receiver, frame)
                continue
            kind = type(frame).__name__
            self.sent[kind] = self.sent.get(kind, 0) + 1
            if (key := _payload_in(frame)) is not None:
                self.crossed[sender, receiver, key] += 1
            self.nodes.send(sender, receiver, self._spoiled(receiver, frame), len(frames.encode(frame)))

    def _to_itself(self, name: str, frame: frames.Frame) -> None:
        if self.nodes.is_up(name):
            self.machines[name].heard(name, frame)

    def _spoiled(self, receiver: str, frame: frames.Frame) -> frames.Frame:
        if not self.corrupt or self.agenda.rng.random() >= self.corrupt:
            return frame
        if isinstance(frame, frames.Spread) and frame.message.payload:
            bad = bytes([frame.message.payload[0] ^ 1]) + frame.message.payload[1:]
            return frames.Spread(
                frame.prefix, frame.to_neighbours, msgspec.structs.replace(frame.message, payload=bad)
            )
        if isinstance(frame, frames.Payload) and frame.payload:
            return frames.Payload(frame.payload_id, frame.payload[:-1] + bytes([frame.payload[-1] ^ 1]))
        return frame

    # Work.

    def subscribe(self, name: str, site: str, wanted: str | Point) -> None:
        """Subscribe by a filter or a point."""
        start, sends = self.origin.subscribe(name, site, wanted, self.agenda.now)
        parsed = Disjunction.parse(wanted) if isinstance(wanted, str) else None
        self.wanted.append(Wanted(name, site, start, self.origin.catalog.live[name].point, parsed))
        self.send(SOURCE, sends)

    def unsubscribe(self, name: str) -> None:
        """End a subscription."""
        end, sends = self.origin.unsubscribe(name, self.agenda.now)
        self._live(name).end = end
        self.send(SOURCE, sends)

    def move(self, name: str, point: Point) -> None:
        """Give a subscription another point."""
        self.send(SOURCE, self.origin.move(name, point, self.agenda.now))
        self._moved(name, point)

    def relabel(self, axis: int, low: float, high: float, shift: float) -> None:
        """Shift coordinates."""
        inside = [one for one in self.wanted if one.end is None and low <= one.point[axis] < high]
        self.send(SOURCE, self.origin.relabel(axis, low, high, shift, self.agenda.now))
        for one in inside:
            point = list(one.point)
            point[axis] += shift
            self._moved(one.name, tuple(point))

    def _live(self, name: str) -> Wanted:
        return next(one for one in self.wanted if one.name == name and one.end is None)

    def _moved(self, name: str, point: Point) -> None:
        before, number = self._live(name), self.origin.number
        before.end = number
        self.wanted.append(Wanted(name, before.site, number, point, before.filter))

    def publish(
        self, attributes: Mapping[str, str], *, region: Region | None = None, payload: Collection[str] = ()
    ) -> int:
        """Publish a message."""
        number, sends = self.origin.publish(attributes, self.agenda.now, region=region, payload=payload)
        covered = self.space.region(attributes) if region is None else region
        self.published.append(Published(number, covered, dict(attributes)))
        self.send(SOURCE, sends)
        return number

    # Faults.

    def crash(self, name: str) -> None:
        """End a machine's process."""
        if self.nodes.is_up(name):
            self.nodes.crash(name)
            self.machines[name].node = None

    def crash_source(self) -> None:
        """End the source's process; until it starts again nobody can ask it for anything."""
        self.nodes.crash(SOURCE)

    def restart_source(self) -> None:
        """Start the source again, from what it has written."""
        self.origin = self._make_origin()
        self.origin.restore(self.records, self.agenda.now)
        self.nodes.start(SOURCE, self)
        self._tick()

    def restart(self, name: str) -> None:
        """Start a machine again; its links are new ones."""
        if self.nodes.is_up(name):
            return
        machine = self.machines[name]
        machine.start()
        for other in self.machines.values():
            if other.node is not None and other.node.desk is not None:
                other.node.desk.link(name, machine.starts)

    # The end.

    def finish(self) -> list[str]:
        """Bring everything back, wait until nothing is under way, and say what is wrong."""
        self.links.heal()
        self.links.put_all(Link(rtt_ms=20))
        self.nodes.chaos.lose = self.nodes.chaos.repeat = self.nodes.chaos.overtake = self.corrupt = 0.0
        for name in self.machines:
            self.restart(name)
        end = self.agenda.now + _PATIENCE_S
        while self.agenda.now < end and not self.is_quiet():
            self.agenda.run(self.agenda.now + 0.5)
        self.agenda.run(self.agenda.now + 3.0)
        return self.wrong()

    def is_quiet(self) -> bool:
        """Say whether everything has reached everybody."""
        origin = self.origin
        return origin.frontier == origin.number and not any(m.owed.numbers for m in origin.machines.values())

    def wrong(self) -> list[str]:
        """Compare what everybody has with what everybody is owed."""
        found = []
        if not self.is_quiet():
            found.append(f"complete up to {self.origin.frontier} of {self.origin.number}")
        owed: dict[str, dict[int, dict[str, str]]] = {}
        for one in self.wanted:
            for message in self.published:
                if (
                    one.start < message.number
                    and (one.end is None or message.number <= one.end)
                    and message.region.contains(one.point)
                    and (one.filter is None or one.filter.matches(message.attributes))
                ):
                    owed.setdefault(one.name, {})[message.number] = message.attributes
        sites = {one.name: one.site for one in self.wanted}
        for name, site in sites.items():
            has, should = self.machines[site].inbox.received.get(name, {}), owed.get(name, {})
            found += [f"{name} lacks {n}" for n in sorted(should.keys() - has.keys())]
            found += [f"{name} has {n} for nothing" for n in sorted(has.keys() - should.keys())]
            found += [f"{name} has another {n}" for n in has.keys() & should.keys() if has[n] != should[n]]
        strangers = {name for m in self.machines.values() for name in m.inbox.received} - sites.keys()
        return found + [f"{name} was never asked for" for name in sorted(strangers)]


def _payload_in(frame: frames.Frame) -> bytes | None:
    """Return which payload a frame carries."""
    if isinstance(frame, frames.Spread | frames.Approach):
        return frame.message.payload_id if frame.message.payload is not None else None
    return frame.payload_id if isinstance(frame, frames.Payload) and frame.payload is not None else None

"""The source's part in the content-driven network of one space.

Theory of operation. Subscriptions and messages share the numbers of the source's log. A change of a subscription
goes to the owner of its zone and counts once that has it; a message is released when every earlier change whose
point it covers does, and is stamped with the version of the map then. So whoever may take it knows every
subscription that is owed it.

A released message is under way until every zone that meets its region is covered by what was acknowledged; the
source knows the true tree, so it sees what is missing, whichever way the message went, and asks for that again.
The *frontier* is the number up to which nothing is under way; it goes out with everything, so all others can
forget.

An owner that is silent for too long is replaced: its zones are granted to others with a new fencing number. One
that has started again is granted its zones anew. A subscriber's machine that did not take a message in time is
*behind*; when it is heard again, the source hands it everything from there on itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from overlay.content import frames
from overlay.content.catalog import SpaceCatalog
from overlay.content.errors import TooMuch
from overlay.content.owed import Owed
from overlay.content.tasks import AGAIN_S, SOON_S
from overlay.payloads.directory import Directory
from overlay.payloads.payload import payload_id, put_back, take_out
from overlay.zones.balance import Plan, join, leave, rebalance
from rewriting.filters.disjunction import Disjunction

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from overlay.content.table import Key
    from rewriting.filters.region import Point, Region
    from rewriting.filters.space import Space

Sends: TypeAlias = "list[tuple[str, frames.Frame]]"
SILENT_S: Final = 4.0
"""An owner that was not heard for so long is replaced; shorter replaces it for a slow moment."""
PAGE: Final = 500
MOST_QUEUED: Final = 100_000
MOST_UNDER_WAY: Final = 1000
TRAFFIC: Final = 10.0
"""What a message handled counts against a subscription held, when load is shared out."""


@dataclass(slots=True)
class _UnderWay:
    """A message that has not reached everybody. ``asked``: prefixes, and when to ask again."""

    message: frames.Message
    region: Region
    covered: set[str] = field(default_factory=set)
    asked: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class _Machine:
    """``is_node``: it takes part; ``is_present``: and is here. ``owed``: what it was not given."""

    incarnation: int = -1
    heard_at: float = 0.0
    is_node: bool = False
    is_present: bool = False
    owed: Owed = field(default_factory=Owed)


class Origin:
    """See the module's text. ``to_neighbours``: which routing is used. ``access``: through whom messages enter
    then; empty: straight at their corner."""

    def __init__(self, me: str, space: Space, *, to_neighbours: bool = False, access: str = "") -> None:
        self.me, self.space = me, space
        self.catalog = SpaceCatalog(space)
        self.machines: dict[str, _Machine] = {}
        self.number = self.frontier = 0
        self.under_way: dict[int, _UnderWay] = {}
        self._to_neighbours, self._access = to_neighbours, access
        self._queued: dict[int, tuple[frames.Message, Region]] = {}
        self._placing: dict[tuple[Key, int], tuple[frames.Entry, float]] = {}
        self._log: dict[int, frames.Message] = {}
        """Messages that somebody may still be owed."""
        self._payloads: dict[bytes, bytes] = {}
        self._directory = Directory(1 << 15)
        self._traffic: dict[str, float] = {}
        self._now = 0.0

    # What users and machines want.

    def subscribe(self, name: str, site: str, wanted: str | Point, now: float) -> tuple[int, Sends]:
        """Subscribe by a filter or a point; return from which number on, and what to send."""
        self._now = now
        if name in self.catalog.live:
            return self.catalog.live[name].start, []
        entry = self.catalog.subscribe(self._next(), name, site, wanted)
        return entry.start, self._placed_later([entry])

    def unsubscribe(self, name: str, now: float) -> tuple[int, Sends]:
        """End a subscription; return with which number, and what to send."""
        self._now = now
        entry = self.catalog.unsubscribe(self._next(), name)
        return entry.end, self._placed_later([entry])

    def move(self, name: str, point: Point, now: float) -> Sends:
        """Give a subscription another point."""
        self._now = now
        return self._placed_later(self.catalog.move(self._next(), name, point))

    def relabel(self, axis: int, low: float, high: float, shift: float, now: float) -> Sends:
        """Shift the coordinates in [low, high) on an axis."""
        self._now = now
        return self._placed_later(self.catalog.relabel(self._next(), axis, low, high, shift))

    def publish(
        self, attributes: Mapping[str, str], now: float, *, region: Region | None = None,
        payload: Collection[str] = (),
    ) -> tuple[int, Sends]:  # fmt: skip
        """Publish a message; ``region``: what it covers, if its attributes do not say it. ``payload``: attributes
        that need not cross a link twice. Return its number, and what to send."""
        self._now = now
        if len(self._queued) >= MOST_QUEUED:
            raise TooMuch(f"{MOST_QUEUED:,} messages wait to be released")
        covered = self.space.region(attributes) if region is None else region
        rest, bulky, key = dict(attributes), None, b""
        if payload:
            rest, bulky = take_out(attributes, payload)
            key = payload_id(bulky)
            self._payloads[key] = bulky
        packed = () if region is None and not {d.attribute for d in self.space.dimensions} & set(payload) else (
            frames.pack_region(covered)
        )  # fmt: skip
        number = self._next()
        message = frames.Message(
            number, 0, 0, rest, packed, tuple(sorted(payload)), key, self.me if key else "", bulky
        )
        self._queued[number] = message, covered
        self._log[number] = message
        return number, self._release()

    def join(self, name: str, now: float) -> Sends:
        """Let a machine take a share of the zones."""
        self._now = now
        machine = self.machines.setdefault(name, _Machine())
        machine.is_node = machine.is_present = True
        machine.heard_at = now
        return self._change(join(self.catalog.history.now, name, self._loads(), self.catalog.points()))

    def leave(self, name: str, now: float) -> Sends:
        """Let others take a machine's zones."""
        self._now = now
        self.machines[name].is_node = False
        return self._without(name)

    def _without(self, name: str) -> Sends:
        self.machines[name].is_present = False
        return self._change(leave(self.catalog.history.now, name, self._present(), self._loads()))

    def rebalance(self, now: float) -> Sends:
        """Move something from the machine with most to do to the one with least, if that helps."""
        self._now = now
        return self._change(
            rebalance(self.catalog.history.now, self._present(), self._loads(), self.catalog.points())
        )

    # What machines say.

    def handle(self, sender: str, frame: frames.Frame, now: float) -> Sends:
        """Take a frame in and return what to send to whom."""
        self._now = now
        match frame:
            case frames.Done():
                return self._done(frame)
            case frames.Refused():
                return self._refused(frame)
            case frames.Placed():
                self._placing.pop(((frame.subscription, frame.start), frame.number), None)
                return self._release()
            case frames.AskMap():
                return [(sender, self._steps(frame.version))]
            case frames.AskLoad():
                return self._load(sender, frame)
            case frames.Alive():
                return self._alive(sender, frame)
            case frames.Delivered():
                return self._handed(sender, frame.number)
            case frames.Kept():
                self._directory.set(frame.payload_id, sender)
                return []
            case frames.Fetch():
                return [(sender, frames.Payload(frame.payload_id, self._payloads.get(frame.payload_id)))]
            case _:
                return []

    def tick(self, now: float) -> Sends:
        """Let time pass: ask again, replace who is silent. At least every half second."""
        self._now = now
        out: Sends = []
        for name, machine in list(self.machines.items()):
            if machine.is_present and now - machine.heard_at > SILENT_S:
                out += self._without(name)
        for key, (entry, deadline) in list(self._placing.items()):
            if deadline <= now:
                self._placing[key] = entry, now + AGAIN_S
                out += self._place(entry)
        for one in list(self.under_way.values()):
            for prefix in [prefix for prefix, deadline in one.asked.items() if deadline <= now]:
                out += self._ask(one, prefix)
        for name in self.machines:
            out += self._catch_up(name)
        return out

    def _next(self) -> int:
        self.number += 1
        return self.number

    def _placed_later(self, entries: list[frames.Entry]) -> Sends:
        out: Sends = []
        for entry in entries:
            self._placing[entry.key, entry.number] = entry, self._now + AGAIN_S
            out += self._place(entry)
        return out

    def _place(self, entry: frames.Entry) -> Sends:
        known = self.catalog.history.now
        owner = known.owner(known.tree.leaf(entry.point))
        return [] if owner is None else [(owner, frames.Place(known.version, entry))]

    def _release(self) -> Sends:
        """Let messages go that cover no change which its zone's owner does not have yet."""
        out: Sends = []
        waiting = [entry for entry, _ in self._placing.values()]
        for number, (message, region) in list(self._queued.items()):
            if len(self.under_way) >= MOST_UNDER_WAY:
                break
            if any(entry.number < number and region.contains(entry.point) for entry in waiting):
                continue
            del self._queued[number]
            stamped = msgspec.structs.replace(message, version=self.catalog.version, frontier=self.frontier)
            one = self.under_way[number] = _UnderWay(stamped, region)
            out += self._begin(one)
        self._move_frontier()
        return out

    def _begin(self, one: _UnderWay) -> Sends:
        if not self._to_neighbours:
            return self._ask(one, "")
        one.asked[self.catalog.history.now.tree.entry(one.region)] = self._now + AGAIN_S
        if self._access:
            return [(self._access, frames.Approach(self._light(self._access, one.message)))]
        return self._ask(one, self.catalog.history.now.tree.entry(one.region), to_neighbours=True)

    def _ask(self, one: _UnderWay, prefix: str, *, to_neighbours: bool = False) -> Sends:
        """Ask for a part; whatever is asked again goes over the tree."""
        known = self.catalog.history.now
        owner = known.owner(known.tree.entry(one.region, prefix))
        one.asked[prefix] = self._now + AGAIN_S
        if owner is None:
            return []
        return [(owner, frames.Spread(prefix, to_neighbours, self._light(owner, one.message)))]

    def _light(self, site: str, message: frames.Message) -> frames.Message:
        """Return a message as it goes to a machine: without a payload that this one has seen."""
        if message.payload_id and self._directory.has(message.payload_id, site):
            return msgspec.structs.replace(message, payload=None)
        return message

    def link(self, site: str, incarnation: int) -> None:
        """A machine has started: it has seen no payloads."""
        self._directory.link(site, incarnation)

    def _done(self, frame: frames.Done) -> Sends:
        one = self.under_way.get(frame.number)
        if one is None:
            return []
        one.covered.update(frame.covered)
        one.asked.pop(frame.prefix, None)
        for site in frame.behind:
            self.machines.setdefault(site, _Machine()).owed.mark(frame.number)
        if one.asked:
            return []
        missing = self.catalog.history.now.tree.covers(one.covered, one.region)
        if missing:
            return [ask for prefix in missing for ask in self._ask(one, prefix)]
        del self.under_way[frame.number]
        return self._release()

    def _refused(self, frame: frames.Refused) -> Sends:
        one = self.under_way.get(frame.number)
        if one is not None and frame.prefix in one.asked:
            one.asked[frame.prefix] = min(one.asked[frame.prefix], self._now + SOON_S)
        return []

    def _move_frontier(self) -> None:
        waiting = [*self.under_way, *self._queued, *(entry.number for entry, _ in self._placing.values())]
        frontier = min(waiting, default=self.number + 1) - 1
        if frontier <= self.frontier:
            return
        self.frontier = frontier
        self._forget()

    def _forget(self) -> None:
        """Drop what nobody is owed any more."""
        owed = {number for machine in self.machines.values() for number in machine.owed.numbers}
        self.catalog.forget(min([self.frontier, *(number - 1 for number in owed)]))
        for number in [number for number in self._log if number <= self.frontier and number not in owed]:
            del self._log[number]
        named = {message.payload_id for message in self._log.values()}
        for key in [key for key in self._payloads if key not in named]:
            del self._payloads[key]

    # Machines.

    def _alive(self, sender: str, frame: frames.Alive) -> Sends:
        machine = self.machines.setdefault(sender, _Machine())
        machine.heard_at = self._now
        for zone, count in frame.handled.items():
            self._traffic[zone] = self._traffic.get(zone, 0.0) + count
        out: Sends = []
        if machine.incarnation != frame.incarnation:
            mine = self.catalog.history.now.owned_by(sender)
            if machine.incarnation != -1 and mine:  # it has forgotten them: it loads them under a new grant
                out += self._change(Plan({}, dict.fromkeys(mine, sender)))
            machine.incarnation = frame.incarnation
            self.link(sender, frame.incarnation)
        if machine.is_node and not machine.is_present:  # it was taken for dead
            out += self.join(sender, self._now)
        upto = machine.owed.complete_upto(self.frontier)
        out.append((sender, frames.Seen(upto, self.catalog.version, machine.owed.gap)))
        if machine.is_node and frame.version < self.catalog.version:
            out.append((sender, self._steps(frame.version)))
        return out

    def _change(self, plan: Plan) -> Sends:
        if not plan:
            return []
        step = self.catalog.change(plan)
        known = self.catalog.history.now
        told = {owner for _, owner in step.grants} | {
            owner for prefix, _, _ in step.splits if (owner := known.owner(prefix + "0")) is not None
        }
        return [(name, self._steps(step.version - 1)) for name in sorted(told)]

    def _steps(self, version: int) -> frames.MapSteps:
        steps = tuple((one.version, one.splits, one.grants) for one in self.catalog.history.since(version))
        return frames.MapSteps(self.frontier, steps)

    def _load(self, sender: str, frame: frames.AskLoad) -> Sends:
        grant = self.catalog.history.now.grants.get(frame.prefix)
        if grant is None or grant != (sender, frame.fence):
            return []
        entries, more = self.catalog.page(frame.prefix, frame.after, PAGE)
        if not more:  # it could not take changes before
            leaf = self.catalog.history.now.tree.leaf
            for key, (entry, deadline) in self._placing.items():
                if leaf(entry.point) == frame.prefix:
                    self._placing[key] = entry, min(deadline, self._now + SOON_S)
        return [(sender, frames.Load(frame.prefix, frame.fence, frame.after, tuple(entries), more))]

    def _present(self) -> list[str]:
        return sorted(name for name, machine in self.machines.items() if machine.is_present)

    def _loads(self) -> dict[str, float]:
        counts = self.catalog.counts()
        return {zone: count + TRAFFIC * self._traffic.get(zone, 0.0) for zone, count in counts.items()}

    # Those who were behind.

    def _catch_up(self, name: str) -> Sends:
        """Hand a machine that is here again what it was not given, by looking at its subscriptions alone."""
        machine = self.machines[name]
        if not machine.owed.numbers or self._now - machine.heard_at > AGAIN_S:
            return []
        return [(name, self._whole(name, number)) for number in machine.owed.due(self._now)]

    def _whole(self, name: str, number: int) -> frames.Deliver:
        message = self._log[number]
        whole = message.attributes if message.payload is None else put_back(message.attributes, message.payload)
        region = frames.region_of(message, self.space)
        found = [
            entry.subscription
            for entry in self.catalog.entries()
            if entry.site == name and entry.owes(number) and region.contains(entry.point)
            and (not entry.filter or Disjunction.parse(entry.filter).matches(whole))
        ]  # fmt: skip
        return frames.Deliver(number, "", tuple(sorted(found)), dict(whole))

    def _handed(self, sender: str, number: int) -> Sends:
        """A machine has stored what it was behind with."""
        machine = self.machines.get(sender)
        if machine is None or number not in machine.owed.numbers:
            return []
        machine.owed.stored(number)
        self._forget()
        return self._catch_up(sender)

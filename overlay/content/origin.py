"""The source's part in the content-driven network of one space.

Theory of operation. Subscriptions and messages share the numbers of the source's log, each higher than all before
it in this space; those between belong to others. ``spreading`` brings
changes to their zones and messages to everybody. The *frontier* is the number up to which nothing is under way;
it goes out with everything, so all others can forget.

An owner that is silent for too long is replaced: its zones are granted to others with a new fencing number. One
that has started again is granted its zones anew. A subscriber's machine that did not take a message in time is
*behind*; when it is heard again, the source hands it what it is owed itself.

Everything that must not be forgotten is put into ``journal``; the driver writes that before it sends what a call
returned (``take_journal``). ``restore`` makes a source that starts again from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from overlay.content import frames
from overlay.content.announcing import message_of
from overlay.content.catalog import SpaceCatalog
from overlay.content.errors import TooMuch
from overlay.content.journal import (
    Announced,
    Behind,
    Changed,
    GaveUp,
    Mapped,
    Moved,
    Published,
    Reached,
    Relabelled,
    Subscribed,
    Takes,
    Unsubscribed,
)
from overlay.content.owed import Owed
from overlay.content.spreading import Spreading
from overlay.content.tasks import AGAIN_S
from overlay.payloads.payload import put_back
from overlay.zones.balance import Plan, join, leave, rebalance
from overlay.zones.zone_map import Change
from rewriting.filters.disjunction import Disjunction

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from overlay.content.journal import Entered, Record
    from rewriting.filters.region import Point, Region
    from rewriting.filters.space import Space

Sends: TypeAlias = "list[tuple[str, frames.Frame]]"
SILENT_S: Final = 4.0
"""An owner that was not heard for so long is replaced; shorter replaces it for a slow moment."""
PAGE: Final = 500
MOST_QUEUED: Final = 100_000
TRAFFIC: Final = 10.0
"""What a message handled counts against a subscription held, when load is shared out."""


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
        self.spreading = Spreading(self.catalog, to_neighbours=to_neighbours, access=access)
        self.machines: dict[str, _Machine] = {}
        self.number = self.frontier = 0
        self.journal: list[Record] = []
        self._log: dict[int, frames.Message] = {}
        """Messages that somebody may still be owed."""
        self._payloads: dict[bytes, bytes] = {}
        self._traffic: dict[str, float] = {}
        self._now = 0.0

    def take_journal(self) -> list[Record]:
        """Return what is to be written before anything else is sent."""
        records, self.journal = self.journal, []
        return records

    # What users and machines want.

    def subscribe(self, name: str, site: str, wanted: str | Point, now: float) -> tuple[int, Sends]:
        """Subscribe by a filter or a point; return from which number on, and what to send."""
        if name in self.catalog.live:
            return self.catalog.live[name].start, []
        return self._count(Subscribed(self.number + 1, name, site, wanted), now)

    def unsubscribe(self, name: str, now: float) -> tuple[int, Sends]:
        """End a subscription; return with which number, and what to send."""
        return self._count(Unsubscribed(self.number + 1, name), now)

    def move(self, name: str, point: Point, now: float) -> Sends:
        """Give a subscription another point."""
        return self._count(Moved(self.number + 1, name, point), now)[1]

    def relabel(self, axis: int, low: float, high: float, shift: float, now: float) -> Sends:
        """Shift the coordinates in [low, high) on an axis."""
        return self._count(Relabelled(self.number + 1, axis, low, high, shift), now)[1]

    def publish(
        self, attributes: Mapping[str, str], now: float, *, region: Region | None = None,
        payload: Collection[str] = (),
    ) -> tuple[int, Sends]:  # fmt: skip
        """Publish a message; ``region``: what it covers, if its attributes do not say it. ``payload``: attributes
        that need not cross a link twice. Return its number, and what to send."""
        packed = () if region is None else frames.pack_region(region)
        entry = Published(self.number + 1, dict(attributes), tuple(sorted(payload)), packed)
        return self._count(entry, now)

    def _count(self, entry: Entered, now: float) -> tuple[int, Sends]:
        """Take in an entry that is numbered here, where no log does it."""
        self.check(entry)
        self.journal.append(entry)
        return entry.number, self.enter(entry, now)

    def check(self, entry: Entered) -> None:
        """Refuse what cannot be entered, before it gets a number: ``ContentError`` or ``RewritingError``."""
        if not isinstance(entry, Published):
            self.catalog.check(entry)
            return
        message_of(entry, self.space, self.me)
        if len(self.spreading.queued) >= MOST_QUEUED:
            raise TooMuch(f"{MOST_QUEUED:,} messages wait to be released")

    def enter(self, entry: Entered, now: float) -> Sends:
        """Take in an entry that was checked and is durable under its number; return what to send."""
        self._now = now
        changed = self._entered(entry)
        return self._release() if isinstance(entry, Published) else self.spreading.place(changed, now)

    def _entered(self, entry: Entered) -> list[frames.Entry]:
        """Take an entry in; return what it changes in the catalog."""
        self.number = max(self.number, entry.number)
        if isinstance(entry, Published):
            self._announced(message_of(entry, self.space, self.me))
            return []
        return self.catalog.enter(entry)

    def _announced(self, message: frames.Message) -> None:
        self._log[message.number] = message
        if message.payload is not None:
            self._payloads[message.payload_id] = message.payload
        self.spreading.queued[message.number] = message, frames.region_of(message, self.space)

    def join(self, name: str, now: float) -> Sends:
        """Let a machine take a share of the zones."""
        self._now = now
        machine = self._machine(name)
        machine.is_node = machine.is_present = True
        machine.heard_at = now
        self.journal.append(Takes(name, True))
        return self._change(join(self.catalog.history.now, name, self._loads(), self.catalog.points))

    def leave(self, name: str, now: float) -> Sends:
        """Let others take a machine's zones."""
        self._now = now
        self._machine(name).is_node = False
        self.journal.append(Takes(name, False))
        return self._without(name)

    def rebalance(self, now: float) -> Sends:
        """Move something from the machine with most to do to the one with least, if that helps."""
        self._now = now
        plan = rebalance(self.catalog.history.now, self._present(), self._loads(), self.catalog.points)
        self._traffic = {zone: count / 2 for zone, count in self._traffic.items() if count >= 1}  # the past fades
        return self._change(plan)

    # What machines say.

    def handle(self, sender: str, frame: frames.Frame, now: float) -> Sends:
        """Take a frame in and return what to send to whom."""
        self._now = now
        match frame:
            case frames.Done():
                for site in frame.behind if frame.number in self.spreading.under_way else ():
                    self._machine(site).owed.mark(frame.number)
                    self.journal.append(Behind(site, frame.number))
                return self.spreading.done(frame, now) + self._release()
            case frames.Refused():
                self.spreading.refused(frame, now)
            case frames.Placed():
                self.spreading.placed(frame)
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
                self.spreading.directory.set(frame.payload_id, sender)
            case frames.Fetch():
                return [(sender, frames.Payload(frame.payload_id, self._payloads.get(frame.payload_id)))]
        return []

    def tick(self, now: float) -> Sends:
        """Let time pass: ask again, replace who is silent. At least every half second."""
        self._now = now
        out: Sends = []
        for name, machine in list(self.machines.items()):
            if machine.is_present and now - machine.heard_at > SILENT_S:
                out += self._without(name)
        out += self.spreading.tick(now) + self._release()
        for name in self.machines:
            out += self._catch_up(name)
        return out

    def _release(self) -> Sends:
        out = self.spreading.release(self.frontier, self._now)
        frontier = self.spreading.reached(self.number)
        if frontier > self.frontier:
            self.frontier = frontier
            self.journal.append(Reached(frontier, self.number))
            self._forget()
        return out

    def _forget(self) -> None:
        """Drop what nobody is owed any more."""
        owed = {number for machine in self.machines.values() for number in machine.owed.numbers}
        self.catalog.forget(min([self.frontier, *(number - 1 for number in owed)]))
        for number in [number for number in self._log if number <= self.frontier and number not in owed]:
            del self._log[number]
        named = {message.payload_id for message in self._log.values()}
        for key in [key for key in self._payloads if key not in named]:
            del self._payloads[key]

    # Machines and zones.

    def _machine(self, name: str) -> _Machine:
        return self.machines.setdefault(name, _Machine())

    def link(self, site: str, incarnation: int) -> None:
        """A machine has started: it has seen no payloads."""
        self.spreading.directory.link(site, incarnation)

    def _alive(self, sender: str, frame: frames.Alive) -> Sends:
        machine = self._machine(sender)
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

    def _without(self, name: str) -> Sends:
        self.machines[name].is_present = False
        return self._change(leave(self.catalog.history.now, name, self._present(), self._loads()))

    def _change(self, plan: Plan) -> Sends:
        if not plan:
            return []
        step = self.catalog.change(plan)
        self.journal.append(Mapped(*step))
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
        if not more:
            self.spreading.loaded(frame.prefix, self._now)
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
        machine = self._machine(sender)
        if number not in machine.owed.numbers:
            return []
        machine.owed.stored(number)
        self.journal.append(Behind(sender, number, is_over=True))
        self._forget()
        return self._catch_up(sender)

    # Starting again.

    def restore(self, records: Iterable[Record], now: float) -> None:
        """Become what the records say. What is not known to have reached everybody goes out at the next tick."""
        self._now = now
        for record in records:
            self._again(record)
        for message in list(self._log.values()):
            if message.number <= self.frontier:
                del self.spreading.queued[message.number]
        self.spreading.place([entry for entry in self.catalog.entries() if entry.number > self.frontier], now)
        for name in self.catalog.history.now.owners():
            self._machine(name).is_present = True
        for machine in self.machines.values():
            machine.heard_at = now
        self._forget()

    def _again(self, record: Record) -> None:
        match record:
            case Takes():
                self._machine(record.site).is_node = record.is_node
            case Mapped():
                self.catalog.take_step(Change(record.version, record.splits, record.grants))
            case Changed():
                self.number = max(self.number, record.number)
                for entry in record.entries:
                    self.catalog.put(entry)
            case Announced():
                self.number = max(self.number, record.message.number)
                self._announced(record.message)
            case Behind():
                owed = self._machine(record.site).owed
                owed.stored(record.number) if record.is_over else owed.mark(record.number)
            case GaveUp():
                self._machine(record.site).owed.gap = record.upto
            case Reached():
                self.frontier, self.number = record.frontier, max(self.number, record.number)
            case _:
                self._entered(record)

    def snapshot(self) -> list[Record]:
        """Return records that say the same as all that were given out so far."""
        records: list[Record] = [Takes(name, one.is_node) for name, one in sorted(self.machines.items())]
        records += [Mapped(*step) for step in self.catalog.history.steps]
        records += [Changed(entry.number, (entry,)) for entry in sorted(self.catalog.entries(), key=_by_number)]
        records += [Announced(message) for _, message in sorted(self._log.items())]
        for name, machine in sorted(self.machines.items()):
            records += [GaveUp(name, machine.owed.gap)] if machine.owed.gap else []
            records += [Behind(name, number) for number in sorted(machine.owed.numbers)]
        return [*records, Reached(self.frontier, self.number)]


def _by_number(entry: frames.Entry) -> int:
    return entry.number

"""The catalog of a space, at the source: who subscribes to what, where that lies, and who owns the zones.

It is the truth that zones are loaded from. Every change is an entry of the source's log and carries its number; a
subscription is owed the numbers in (start, end]. One that moves ends at its old point and begins at the new one
with the same number, so nothing is missed or comes twice. What has ended stays until the frontier has passed its
end: a message from before may still have to be matched by a zone's next owner.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from overlay.content.errors import UnknownSubscription
from overlay.content.frames import Entry
from overlay.content.journal import Moved, Relabelled, Subscribed, Unsubscribed
from overlay.zones.tree import Split
from overlay.zones.zone_map import History
from rewriting.filters.disjunction import Disjunction

if TYPE_CHECKING:
    from collections.abc import Iterable

    from overlay.content.table import Key
    from overlay.zones.balance import Plan
    from overlay.zones.zone_map import Change as Step
    from rewriting.filters.region import Point
    from rewriting.filters.space import Space

Change: TypeAlias = Subscribed | Unsubscribed | Moved | Relabelled


class SpaceCatalog:
    """The subscriptions and zones of one space."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.history = History.begin(space.axes)
        self.live: dict[str, Entry] = {}
        """The newest entry of every subscription that has not ended."""
        self._zones: dict[str, dict[Key, Entry]] = {"": {}}
        self._order: dict[str, list[Key]] = {}
        self._ended: list[Entry] = []

    @property
    def version(self) -> int:
        """Of the map."""
        return self.history.now.version

    def check(self, change: Change) -> None:
        """Refuse a change that cannot be entered: ``ContentError`` or ``RewritingError``."""
        match change:
            case Subscribed():
                self._place_of(change.wanted)
            case Unsubscribed():
                self._find(change.subscription)
            case Moved():
                self._find(change.subscription)
                self.space.check(change.point)
            case Relabelled():
                for _, point in self._shifted(change):
                    self.space.check(point)

    def enter(self, change: Change) -> list[Entry]:
        """Take in a change that was checked; return the entries it makes, the ended ones too."""
        number = change.number
        match change:
            case Subscribed():
                return [self._subscribe(change)]
            case Unsubscribed():
                entry = self._find(change.subscription)
                return [self.put(msgspec.structs.replace(entry, number=number, end=number))]
            case Moved():
                return self._move(number, change.subscription, change.point)
            case Relabelled():
                return [
                    entry for name, point in self._shifted(change) for entry in self._move(number, name, point)
                ]

    def _subscribe(self, new: Subscribed) -> Entry:
        if new.subscription in self.live:
            return self.live[new.subscription]
        point, text = self._place_of(new.wanted)
        return self.put(Entry(new.subscription, new.site, new.number, new.number, -1, point, text))

    def _place_of(self, wanted: str | Point) -> tuple[Point, str]:
        """Return where a filter or a chosen point lies, and the filter."""
        point = self.space.point(Disjunction.parse(wanted)) if isinstance(wanted, str) else wanted
        self.space.check(point)
        return point, wanted if isinstance(wanted, str) else ""

    def _move(self, number: int, name: str, point: Point) -> list[Entry]:
        """Give a subscription another point: it ends at the old one and begins at the new one."""
        before = self._find(name)
        ended = self.put(msgspec.structs.replace(before, number=number, end=number))
        return [ended, self.put(msgspec.structs.replace(before, number=number, start=number, end=-1, point=point))]

    def _shifted(self, change: Relabelled) -> list[tuple[str, Point]]:
        """List the subscriptions that a relabelling moves, by name, and where to."""
        inside = [one for one in self.live.values() if change.low <= one.point[change.axis] < change.high]
        return [
            (one.subscription, tuple(x + change.shift if i == change.axis else x for i, x in enumerate(one.point)))
            for one in sorted(inside, key=lambda one: one.subscription)
        ]

    def page(self, zone: str, after: Key, most: int) -> tuple[list[Entry], bool]:
        """Return the next entries of a zone, and whether there are more."""
        order = self._order.get(zone)
        if order is None:
            order = self._order[zone] = sorted(self._zones.get(zone, {}))
        begin = bisect_right(order, after)
        keys = order[begin : begin + most]
        return [self._zones[zone][key] for key in keys], begin + most < len(order)

    def change(self, plan: Plan) -> Step:
        """Change the map."""
        step = self.history.change(plan.splits, plan.grants)
        self._follow(step)
        return step

    def take_step(self, step: Step) -> None:
        """Change the map as it was changed before."""
        self.history.now.apply(step)
        self.history.steps.append(step)
        self._follow(step)

    def _follow(self, step: Step) -> None:
        for prefix, axis, value in step.splits:
            self._split(prefix, Split(axis, value))

    def points(self, zone: str) -> list[Point]:
        """Return where the subscriptions of a zone lie."""
        return [entry.point for entry in self._zones.get(zone, {}).values()]

    def counts(self) -> dict[str, float]:
        """Return how many subscriptions every zone has."""
        return {zone: float(len(entries)) for zone, entries in self._zones.items()}

    def forget(self, frontier: int) -> None:
        """Drop what has ended, and had everything."""
        for entry in [entry for entry in self._ended if entry.end <= frontier]:
            self._ended.remove(entry)
            zone = self.history.now.tree.leaf(entry.point)
            del self._zones[zone][entry.key]
            self._order.pop(zone, None)

    def entries(self) -> Iterable[Entry]:
        """List all entries, also those that have ended."""
        return (entry for entries in self._zones.values() for entry in entries.values())

    def _find(self, name: str) -> Entry:
        try:
            return self.live[name]
        except KeyError:
            raise UnknownSubscription(f"there is no subscription {name}") from None

    def put(self, entry: Entry) -> Entry:
        """Take an entry in, in place of an earlier one of the same start."""
        zone = self.history.now.tree.leaf(entry.point)
        entries = self._zones.setdefault(zone, {})
        if entry.key not in entries and zone in self._order:
            insort(self._order[zone], entry.key)
        entries[entry.key] = entry
        if entry.end < 0:
            self.live[entry.subscription] = entry
            return entry
        self._ended.append(entry)
        if self.live.get(entry.subscription, entry).key == entry.key:
            self.live.pop(entry.subscription, None)
        return entry

    def _split(self, prefix: str, at: Split) -> None:
        entries = self._zones.pop(prefix, {})
        self._order.pop(prefix, None)
        halves: tuple[dict[Key, Entry], dict[Key, Entry]] = ({}, {})
        for key, entry in entries.items():
            halves[entry.point[at.axis] >= at.value][key] = entry
        self._zones[prefix + "0"], self._zones[prefix + "1"] = halves

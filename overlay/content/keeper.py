"""The zones of a machine: what it knows of the map, and the subscriptions in what it owns.

Theory of operation. The map comes from the source in steps, or as a whole from the directory. A zone that is
granted to this machine is loaded from the catalog, page by page, under the grant's fencing number; until all is
here the machine takes no message for it. Changes (``Place``) are acknowledged only for a loaded zone: before, they
come with the pages. When a zone was split and one half stays, that half keeps what was loaded. A zone granted to
somebody else, or anew, is dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from overlay.content.frames import AskLoad, AskMap, Load, MapSteps, Place, Placed
from overlay.content.table import PlainLoop, ZoneTable
from overlay.content.tasks import SOON_S
from overlay.zones.zone_map import Change, ZoneMap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from overlay.content.frames import Frame
    from overlay.content.table import Matching

Sends: TypeAlias = "list[tuple[str, Frame]]"


class ZoneKeeper:
    """What a machine knows of zones, and has of its own; ``known`` may be shared where it does not change."""

    def __init__(
        self, me: str, origin: str, known: ZoneMap, make_matcher: Callable[[], Matching] = PlainLoop
    ) -> None:
        self.me, self.origin, self.known = me, origin, known
        self.tables: dict[str, ZoneTable] = {}
        self._make_matcher = make_matcher
        self._map_asked_at = self._load_asked_at = -1e9

    def has(self, zones: Iterable[str]) -> bool:
        """Say whether zones are loaded."""
        return all(zone in self.tables and self.tables[zone].is_loaded for zone in zones)

    def learn(self, frame: MapSteps, now: float) -> Sends:
        """Take steps of the map in; those that leave some out are asked for again."""
        for version, splits, grants in frame.steps:
            if version == self.known.version + 1:
                self.known.apply(Change(version, splits, grants))
        return self._settle(now)

    def adopt(self, found: ZoneMap, now: float) -> Sends:
        """Take a whole map in, that somebody else than the source had; nothing happens if it is not newer."""
        if found.version <= self.known.version:
            return []
        self.known.become(found)
        return self._settle(now)

    def _settle(self, now: float) -> Sends:
        """The map has changed: give up what is not ours any more, and load what is."""
        mine = self.known.owned_by(self.me)
        for zone in [zone for zone in self.tables if zone not in mine]:
            self._give_up(zone, mine)
        for zone in mine:
            fence = self.known.grants[zone].fence
            if zone not in self.tables or self.tables[zone].fence != fence:
                self.tables[zone] = ZoneTable(fence, self._make_matcher)
        self._load_asked_at = -1e9
        return self.ask_loads(now)

    def _give_up(self, zone: str, mine: list[str]) -> None:
        table = self.tables.pop(zone)
        for half in mine:
            if half.startswith(zone) and self.known.grants[half].fence == table.fence and half not in self.tables:
                kept = self.tables[half] = ZoneTable(table.fence, self._make_matcher)
                kept.is_loaded = table.is_loaded
                box = self.known.tree.box(half)
                for entry in table.entries.values():
                    if box.contains(entry.point):
                        kept.merge(entry)

    def ask_map(self, now: float) -> Sends:
        """Ask what has changed, now and then."""
        if now - self._map_asked_at < SOON_S:
            return []
        self._map_asked_at = now
        return [(self.origin, AskMap(self.known.version))]

    def ask_loads(self, now: float) -> Sends:
        """Ask for what is missing of own zones, now and then."""
        if now - self._load_asked_at < SOON_S:
            return []
        self._load_asked_at = now
        missing = [(zone, table) for zone, table in self.tables.items() if not table.is_loaded]
        return [(self.origin, AskLoad(zone, table.fence, table.loaded_upto)) for zone, table in missing]

    def load(self, frame: Load) -> Sends:
        """Take a page of a zone in. A page follows on what was here when it was asked for, so nothing is
        skipped."""
        table = self.tables.get(frame.prefix)
        if table is None or table.fence != frame.fence or table.is_loaded:
            return []
        for entry in frame.entries:
            table.merge(entry)
            table.loaded_upto = max(table.loaded_upto, entry.key)
        if frame.more:
            return [(self.origin, AskLoad(frame.prefix, table.fence, table.loaded_upto))]
        table.is_loaded = True
        return []

    def place(self, sender: str, frame: Place, now: float) -> Sends:
        """Take a change of a subscription in."""
        if frame.version > self.known.version:
            return self.ask_map(now)
        table = self.tables.get(self.known.tree.leaf(frame.entry.point))
        if table is None or not table.is_loaded:
            return []
        table.merge(frame.entry)
        return [(sender, Placed(*frame.entry.key, frame.entry.number))]

    def forget(self, frontier: int) -> None:
        """Drop the subscriptions that have ended, and had everything."""
        for table in self.tables.values():
            table.forget(frontier)

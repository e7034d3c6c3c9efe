"""What is under way from the source: changes on their way to their zones, and messages on their way to everybody.

Theory of operation. A change of a subscription goes to the owner of its zone until that says it has it. A message
waits until every earlier change whose point it covers has arrived; then it is stamped with the version of the map
and goes out. So whoever may take it knows every subscription that is owed it. It is under way until every zone of
the true tree that meets its region lies under a prefix that was acknowledged; what is missing, whichever way the
message went, is asked for over the tree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from overlay.content import frames
from overlay.content.tasks import AGAIN_S, SOON_S
from overlay.payloads.directory import Directory

if TYPE_CHECKING:
    from collections.abc import Iterable

    from overlay.content.catalog import SpaceCatalog
    from overlay.content.table import Key
    from rewriting.filters.region import Region

Sends: TypeAlias = "list[tuple[str, frames.Frame]]"
MOST_UNDER_WAY: Final = 1000
"""How many messages go out before the first of them has reached everybody; the rest waits."""


@dataclass(slots=True)
class _UnderWay:
    """A message that has not reached everybody. ``asked``: prefixes, and when to ask again."""

    message: frames.Message
    region: Region
    covered: set[str] = field(default_factory=set)
    asked: dict[str, float] = field(default_factory=dict)


class Spreading:
    """Changes and messages under way. ``to_neighbours`` and ``access``: as ``Origin`` says."""

    def __init__(self, catalog: SpaceCatalog, *, to_neighbours: bool, access: str) -> None:
        self._catalog, self._to_neighbours, self._access = catalog, to_neighbours, access
        self.under_way: dict[int, _UnderWay] = {}
        self.queued: dict[int, tuple[frames.Message, Region]] = {}
        self.directory = Directory(1 << 15)
        self._placing: dict[tuple[Key, int], tuple[frames.Entry, float]] = {}

    def reached(self, number: int) -> int:
        """Return up to where nothing is under way, if ``number`` was given last."""
        placing = (entry.number for entry, _ in self._placing.values())
        first = next(iter(self.queued), number + 1)  # they wait in order
        return min([first, *self.under_way, *placing]) - 1

    # Changes.

    def place(self, entries: Iterable[frames.Entry], now: float) -> Sends:
        """Bring changes to the owners of their zones."""
        out: Sends = []
        for entry in entries:
            self._placing[entry.key, entry.number] = entry, now + AGAIN_S
            out += self._place(entry)
        return out

    def placed(self, frame: frames.Placed) -> None:
        """A change has arrived."""
        self._placing.pop(((frame.subscription, frame.start), frame.number), None)

    def loaded(self, zone: str, now: float) -> None:
        """A zone has an owner again who can take changes: do not wait longer with them."""
        leaf = self._catalog.history.now.tree.leaf
        for key, (entry, deadline) in self._placing.items():
            if leaf(entry.point) == zone:
                self._placing[key] = entry, min(deadline, now + SOON_S)

    def _place(self, entry: frames.Entry) -> Sends:
        known = self._catalog.history.now
        owner = known.owner(known.tree.leaf(entry.point))
        return [] if owner is None else [(owner, frames.Place(known.version, entry))]

    # Messages.

    def release(self, frontier: int, now: float) -> Sends:
        """Let messages go that cover no change which its zone's owner does not have yet."""
        out: Sends = []
        waiting = [entry for entry, _ in self._placing.values()]
        room = MOST_UNDER_WAY - len(self.under_way)
        ready: list[int] = []
        for number, (_, region) in self.queued.items():
            if len(ready) >= room:
                break
            # By where it started: the end of one may wait whose beginning has not arrived either.
            if not any(entry.start < number and region.contains(entry.point) for entry in waiting):
                ready.append(number)
        for number in ready:
            message, region = self.queued.pop(number)
            stamped = msgspec.structs.replace(message, version=self._catalog.version, frontier=frontier)
            one = self.under_way[number] = _UnderWay(stamped, region)
            out += self._begin(one, now)
        return out

    def _begin(self, one: _UnderWay, now: float) -> Sends:
        if not self._to_neighbours:
            return self._ask(one, "", now)
        entry = self._catalog.history.now.tree.entry(one.region)
        if not self._access:
            return self._ask(one, entry, now, to_neighbours=True)
        one.asked[entry] = now + AGAIN_S
        return [(self._access, frames.Approach(self._light(self._access, one.message)))]

    def _ask(self, one: _UnderWay, prefix: str, now: float, *, to_neighbours: bool = False) -> Sends:
        """Ask for a part; whatever is asked again goes over the tree."""
        known = self._catalog.history.now
        owner = known.owner(known.tree.entry(one.region, prefix))
        one.asked[prefix] = now + AGAIN_S
        if owner is None:
            return []
        return [(owner, frames.Spread(prefix, to_neighbours, self._light(owner, one.message)))]

    def _light(self, site: str, message: frames.Message) -> frames.Message:
        """Return a message as it goes to a machine: without a payload that this one has seen."""
        if message.payload_id and self.directory.has(message.payload_id, site):
            return msgspec.structs.replace(message, payload=None)
        return message

    def done(self, frame: frames.Done, now: float) -> Sends:
        """A part has been reached; ask for what is missing when all that was asked for has."""
        one = self.under_way.get(frame.number)
        if one is None:
            return []
        one.covered.update(frame.covered)
        one.asked.pop(frame.prefix, None)
        if one.asked:
            return []
        missing = self._catalog.history.now.tree.covers(one.covered, one.region)
        if not missing:
            del self.under_way[frame.number]
        return [ask for prefix in missing for ask in self._ask(one, prefix, now)]

    def refused(self, frame: frames.Refused, now: float) -> None:
        """Somebody could not take a message: ask again soon."""
        one = self.under_way.get(frame.number)
        if one is not None and frame.prefix in one.asked:
            one.asked[frame.prefix] = min(one.asked[frame.prefix], now + SOON_S)

    def tick(self, now: float) -> Sends:
        """Ask again where nothing was heard."""
        out: Sends = []
        for key, (entry, deadline) in list(self._placing.items()):
            if deadline <= now:
                self._placing[key] = entry, now + AGAIN_S
                out += self._place(entry)
        for one in list(self.under_way.values()):
            for prefix in [prefix for prefix, deadline in one.asked.items() if deadline <= now]:
                out += self._ask(one, prefix, now)
        return out

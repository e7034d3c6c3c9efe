"""Maps of spaces in the DHT: the source puts there what has changed, and machines that cannot reach it look there.

The source's catalog is the truth, and machines are told directly. What is here is for those who miss a step while
the source is away: they learn who owns which zone, and can pass on messages that are under way. What they find is
signed by the source and is a whole map or nothing (``overlay.zones.map_walk``); one that is not newer is refused.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import trio

from overlay.zones.errors import MalformedZone
from overlay.zones.map_walk import MapWalk, changed_records
from overlay.zones.records import encode_zone, record_name
from overlay.zones.zone_map import ZoneMap

if TYPE_CHECKING:
    from collections.abc import Callable

    from overlay.zones.records import ZoneRecord
    from overlay.zones.zone_map import History
    from peer.daemon.directory import Directory

_LOG: Final = logging.getLogger("distributary.spaces")
_GATHER_S: Final = 0.3
_AT_ONCE: Final = 8
_AGAIN_S: Final = 3.0
"""So long after a look a machine looks again: the source may be away for long."""


class ZonePushing:
    """What waits to be pushed: of every space, up to which version."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[History, int]] = {}
        self._pushed: dict[str, ZoneMap] = {}
        self._wake = trio.Event()

    def put(self, space: str, history: History, version: int) -> None:
        """Let a version of a map be pushed, which is written."""
        if version > (self._pushed[space].version if space in self._pushed else 0):
            self._waiting[space] = history, version
            self._wake.set()

    async def run(self, directory: Directory) -> None:
        """Push until cancelled."""
        while True:
            await self._wake.wait()
            await trio.sleep(_GATHER_S)
            self._wake = trio.Event()
            taken, self._waiting = self._waiting, {}
            for space, (history, version) in taken.items():
                known = self._pushed.setdefault(space, ZoneMap(history.now.tree.axes))
                records = changed_records(known, history.steps[known.version : version])
                head = records.pop("", None)
                await _push(directory, space, records)
                if head is not None:
                    await _push(directory, space, {"": head})


async def _push(directory: Directory, space: str, records: dict[str, ZoneRecord]) -> None:
    queue = iter(records.items())

    async def work() -> None:
        for prefix, record in queue:
            await directory.push_zone(record_name(space, prefix), record.version, encode_zone(record))

    async with trio.open_nursery() as nursery:
        for _ in range(_AT_ONCE):
            nursery.start_soon(work)


class ZoneFinding:
    """Looks maps up that are wanted, one at a time, and not too often; ``found`` hears of each."""

    def __init__(self, found: Callable[[str, ZoneMap], None]) -> None:
        self._found = found
        self._wanted: dict[str, tuple[int, int]] = {}
        self._looked_at: dict[str, float] = {}
        self._wake = trio.Event()

    def want(self, space: str, axes: int, after: int) -> None:
        """A map newer than a version is needed, and the source does not answer."""
        if trio.current_time() - self._looked_at.get(space, -1e9) >= _AGAIN_S:
            self._wanted[space] = axes, after
            self._wake.set()

    async def run(self, directory: Directory) -> None:
        """Look until cancelled."""
        while True:
            await self._wake.wait()
            self._wake = trio.Event()
            for space, (axes, after) in list(self._wanted.items()):
                self._looked_at[space] = trio.current_time()
                del self._wanted[space]
                found = await find_map(directory, space, axes, after)
                if found is not None:
                    _LOG.info("map found in the directory", extra={"space": space, "version": found.version})
                    self._found(space, found)


async def find_map(directory: Directory, space: str, axes: int, after: int) -> ZoneMap | None:
    """Put the map of a space together from the directory; None if there is none that is whole and newer."""
    walk = MapWalk(axes, after)

    async def look(prefix: str) -> None:
        payloads[prefix] = await directory.find_zone(record_name(space, prefix))

    try:
        while walk.wanted:
            payloads: dict[str, bytes | None] = {}
            async with trio.open_nursery() as nursery:
                for prefix in sorted(walk.wanted)[:_AT_ONCE]:
                    nursery.start_soon(look, prefix)
            for prefix, payload in payloads.items():
                walk.take(prefix, payload)
    except MalformedZone as exc:
        _LOG.info("no map in the directory", extra={"space": space, "reason": str(exc)})
        return None
    return walk.outcome

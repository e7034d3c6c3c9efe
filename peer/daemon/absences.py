"""Machines that stay away: after a while the source plans around them, and takes them back when they return.

Their direct downstreams have moved by themselves long before; this is for those who would be given such a machine
as an alternative, or join later. A machine is away when it has no connection with the source. Before the source
believes that it is dead it dials it: a broken connection is no death. Who was given up is kept, so a restart of
the source changes nothing; what was set aside on purpose (``drain``) is none of this module's.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from peer.daemon.questions import NoAnswer
from peer.storage.errors import StorageError

if TYPE_CHECKING:
    from peer.daemon.catalog import Catalog
    from peer.daemon.links import Links
    from peer.daemon.one_writer import OneWriter
    from peer.storage.source_log import SourceLog

_LOG: Final = logging.getLogger("distributary.source")
_ABSENT: Final = "absent"
_LOOK_S: Final = 1.0
_PROBE_S: Final = 8.0
_AT_ONCE: Final = 16
"""How many machines are probed at a time: a network that comes back after a power failure dials by itself."""
_SETTLING: Final = 8
"""How many rounds of searching for better feeds follow a change."""


class Absences:
    """Who is away, since when, and who was given up. ``away_s``: how long is too long."""

    def __init__(self, log: SourceLog, alone: OneWriter, catalog: Catalog, links: Links, away_s: float) -> None:
        self._log, self._alone, self._catalog, self._links = log, alone, catalog, links
        self._away_s = away_s
        self._since: dict[str, float] = {}
        self.given_up = set(msgspec.json.decode(log.get_state(_ABSENT) or b"[]", type=list[str]))
        self.probed: set[str] = set()
        """Machines that are being dialled; all others dial the source."""
        self._unsettled = 0

    async def watch(self) -> None:
        """Look at who is there until cancelled."""
        while True:
            await trio.sleep(min(_LOOK_S, self._away_s / 4))
            try:
                await self._look(trio.current_time())
            except (NoAnswer, StorageError) as exc:
                _LOG.error("not planned around", extra={"reason": str(exc)})

    async def _look(self, now: float) -> None:
        here = set(self._links.sites)
        for site in here:
            self._since.pop(site, None)
        for site in self._catalog.sites.keys() - here - self._links.revocations.sites.keys():
            self._since.setdefault(site, now)
        for site in sorted(self.given_up & here):
            await self._take_back(site)
        due = [site for site, since in self._since.items() if now - since >= self._away_s]
        late = sorted(set(due) - self.given_up)[:_AT_ONCE]
        async with trio.open_nursery() as nursery:
            for site in late:
                nursery.start_soon(self._probe, site)
        for site in late:
            if site not in self._links.sites:
                await self._give_up(site)
        if self._unsettled:
            self._unsettled -= 1
            await self._catalog.settle()

    async def _probe(self, site: str) -> None:
        """Dial a machine; whether it is connected then says whether it lives."""
        self.probed.add(site)
        try:
            with trio.move_on_after(_PROBE_S):
                self._links.dial(site)
                # Either side may be the one whose dialling succeeds, so there is no one event to wait for.
                while self._links.is_dialling(site) and site not in self._links.sites:  # noqa: ASYNC110
                    await trio.sleep(0.05)
        finally:
            self.probed.discard(site)

    async def _give_up(self, site: str) -> None:
        if self._catalog.is_aside(site):
            return
        _LOG.warning("planning around a machine that stays away", extra={"site": site, "seconds": self._away_s})
        self._keep(self.given_up | {site})
        await self._catalog.set_aside(site)
        self._unsettled = _SETTLING

    async def _take_back(self, site: str) -> None:
        _LOG.warning("a machine that was away is used again", extra={"site": site})
        await self._catalog.take_back(site)
        self._keep(self.given_up - {site})
        self._unsettled = _SETTLING

    def _keep(self, sites: set[str]) -> None:
        self._alone(self._log.put_state, _ABSENT, msgspec.json.encode(sorted(sites)))
        self.given_up = sites

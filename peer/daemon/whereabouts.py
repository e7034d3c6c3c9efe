"""Where other machines are: as the directory says, as the source says, or as it was before.

The directory is asked first, unless a machine was not where it says; then the source; if that is away, the
directory all the same, and last what was remembered in the home: a peer that starts while the source is away finds
its way back into the network through machines that it has known.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from overlay.identity import Address, BadName
from peer.daemon.questions import NoAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peer.daemon.directory import Directory
    from peer.daemon.own_identity import OwnIdentity
    from peer.daemon.questions import Questions
    from peer.daemon.remembered import Remembered

_LOG: Final = logging.getLogger("distributary.peer")


class Whereabouts:
    """Addresses of machines; ``directory`` is set while there is one."""

    def __init__(self, identity: OwnIdentity, questions: Questions, remembered: Remembered, source: str) -> None:
        self._identity, self._questions, self._remembered, self._source = identity, questions, remembered, source
        self.directory: Directory | None = None
        self._found: dict[str, tuple[Address, ...]] = {}
        self._doubted: set[str] = set()
        self._source_elsewhere: tuple[Address, ...] = ()

    @property
    def bootstrap(self) -> tuple[Address, ...]:
        """Where nodes of the DHT may be."""
        machines = [addresses[0] for addresses in self._remembered.machines().values() if addresses]
        known = (*self._identity.credential.settings.source, *self._remembered.nodes()[-8:], *machines[-8:])
        return tuple(dict.fromkeys(known))

    def reached(self, site: str) -> None:
        """A machine is connected."""
        self._doubted.discard(site)
        if site in self._found:
            self._remembered.keep_machines({site: self._found[site]})

    def lost(self, site: str) -> None:
        """A machine is not where it was said to be, or has gone."""
        self._found.pop(site, None)
        self._doubted.add(site)

    def told(self, machines: Mapping[str, list[str]]) -> None:
        """The source has said where some machines are."""
        try:
            found = {site: tuple(map(Address.parse, texts)) for site, texts in machines.items()}
        except BadName as exc:
            _LOG.warning("bad addresses", extra={"reason": str(exc)})
            return
        self._remembered.keep_machines(found)

    def remember(self) -> None:
        """Keep where the nodes of the DHT are now, for the next start."""
        if self.directory is not None:
            self._remembered.keep_nodes(self.directory.nodes)

    async def find(self, site: str) -> tuple[Address, ...]:
        """Say where a machine can be dialled; nothing if nobody knows."""
        if site == self._source:
            return tuple(dict.fromkeys((*self._identity.credential.settings.source, *self._source_elsewhere)))
        if site not in self._found:
            found = await self._looked_up(site)
            if not found:
                return ()
            self._found[site] = found
        return self._found[site]

    async def seek_source(self) -> None:
        """The source is away: perhaps the directory knows where it is now."""
        if self.directory is not None:
            self._source_elsewhere = await self.directory.find_site(self._source)

    async def _looked_up(self, site: str) -> tuple[Address, ...]:
        is_doubted = site in self._doubted
        if not is_doubted and (told := await self._in_directory(site)):
            return told
        try:
            found: Any = await self._questions.ask(self._source, "address", {"site": site})
            return tuple(Address.parse(text) for text in found)
        except (NoAnswer, BadName, TypeError):
            return (is_doubted and await self._in_directory(site)) or self._remembered.machines().get(site, ())

    async def _in_directory(self, site: str) -> tuple[Address, ...]:
        return () if self.directory is None else await self.directory.find_site(site)

"""The directory: where sites are and how subscriptions are fed, as the DHT tells it.

It is the daemons' face of the DHT, in three modules: ``directory_records`` (how records prove who wrote them),
``directory_node`` (the node, kept alive and joined), and here what daemons ask for. The directory may omit and
never lies, so "nothing found" always means: ask the source. Nothing but a bind error at the start and
cancellation leaves it; whatever else goes wrong is logged.

The UDP port is best the number of the TCP port where the site listens: then whoever knows a site's address can
join through it.
"""

from __future__ import annotations

import logging
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec
import trio

from overlay.dht import DhtSettings, Version
from overlay.dht.records import CHUNK
from overlay.identity import Address, BadName
from overlay.identity.address import MOST_ADDRESSES, parse_addresses
from overlay.identity.dht_keys import DHT_GRACE
from overlay.zones.records import KIND as ZONE
from peer.daemon.directory_node import DirectoryNode
from peer.daemon.directory_records import CONFIGURATION, CURRENT, EPOCH, SITE, Notary, Pieces, dated, undated

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence

    from overlay.dht import Record
    from overlay.dht.dht_driver import Dht
    from overlay.identity import Credential, RevocationList

_LOG: Final = logging.getLogger("distributary.directory")
_SETTINGS: Final = DhtSettings(grace_s=DHT_GRACE.total_seconds())
_AT_ONCE: Final = 8
# Higher: more is found on slow links; lower: the source is asked sooner.
_FIND_S: Final = 5.0
_PUT_S: Final = 30.0
_ADDRESSES: Final = msgspec.msgpack.Decoder(list[str])


@dataclass(frozen=True, slots=True)
class Pushed:
    """What a push did: configurations that another node holds now, the fewest nodes that hold one, the time."""

    pushed: int
    replicas: int
    seconds: float


@dataclass(frozen=True, slots=True)
class DirectoryStatistics:
    """What the directory counted, datagrams since its node was opened, and what it holds now."""

    found: int
    missed: int
    refused_records: int
    is_open: bool = False
    peers: int = 0
    records: int = 0
    record_bytes: int = 0
    own_records: int = 0
    sent: int = 0
    received: int = 0
    refused_datagrams: dict[str, int] = field(default_factory=dict)
    put: int = 0


class Directory:
    """An open directory; ``open_directory`` makes one. ``joined`` is set when there is somebody to ask."""

    def __init__(
        self, credential: Credential, revocations: Callable[[], RevocationList], bootstrap: Sequence[Address],
        settings: DhtSettings,
    ) -> None:  # fmt: skip
        self._notary = Notary(credential, revocations)
        self._node = DirectoryNode(self, self._notary, bootstrap, settings)
        self.joined, self.run = self._node.joined, self._node.run
        self._addresses: tuple[Address, ...] = ()
        self._number = self._announced = self._found = self._missed = 0
        self._versions: dict[str, Version] = {}
        self._pieces = Pieces()

    @property
    def port(self) -> int:
        """The node's UDP port; 0 while it is closed."""
        return 0 if self._node.dht is None else self._node.dht.address[1]

    @property
    def nodes(self) -> list[Address]:
        """Where the other nodes are that this one knows."""
        return [] if self._node.dht is None else [Address(*one) for one in self._node.dht.peers]

    @property
    def statistics(self) -> DirectoryStatistics:
        """Count records, peers, datagrams and what was looked for."""
        own = (self._found, self._missed, self._notary.refused)
        if self._node.dht is None:
            return DirectoryStatistics(*own)
        node = self._node.dht.statistics
        return DirectoryStatistics(
            *own, True, node.peers, node.records, node.record_bytes, node.own_records, node.sent, node.received,
            {reason.value: count for reason, count in node.refused.items()}, self._node.records_put,
        )  # fmt: skip

    def use(self, credential: Credential) -> None:
        """Go on with a renewed credential; a new DHT key in it is taken into use."""
        self._notary.credential = credential
        if self._node.dht is not None:
            self._node.dht.rotate(credential.settings.dht_keys.current.secret)

    def revoked(self, revocations: RevocationList) -> None:
        """There is a newer list: if it names a DHT key that is not here, the one that is will not do for long."""
        keys = self._notary.credential.settings.dht_keys
        if self._node.dht is not None and revocations.dht_key > keys.current.number:
            self._node.dht.retire_key()

    # Sites.

    async def announce(self, addresses: Iterable[Address]) -> int:
        """Say where this site is, from now on; how many other nodes know it now."""
        self._addresses = tuple(addresses)[:MOST_ADDRESSES]
        site = self._notary.credential.member.site
        self._announced = await self._node.call(self._put_site, 0, what="announce", name=site, limit_s=_PUT_S)
        return self._announced

    async def find_site(self, name: str) -> tuple[Address, ...]:
        """Tell where a site is; nothing means: ask the source."""
        found = await self._find(SITE, name)
        try:
            return () if found is None else parse_addresses(_ADDRESSES.decode(found[1]))
        except (msgspec.MsgspecError, ValueError, RecursionError, BadName) as exc:
            _LOG.warning("bad addresses", extra={"site": name, "reason": str(exc)})
            return ()

    async def _put_site(self, dht: Dht) -> int:
        site = self._notary.credential.member.site
        replicas = await self._put_addresses(dht, site)
        if not replicas and (held := await dht.get(SITE, site)) and held.version.revision > self._number:
            self._number = held.version.revision  # the clock was set back since that was announced
            replicas = await self._put_addresses(dht, site)
        return replicas

    async def _put_addresses(self, dht: Dht, site: str) -> int:
        self._number = max(self._number + 1, int(time.time() * 1000))
        value = msgspec.msgpack.encode([str(address) for address in self._addresses])
        return await self._node.put(dht, *self._notary.make(SITE, site, Version(0, 0, self._number), value))

    # Configurations.

    async def push(
        self, configurations: Mapping[str, bytes], versions: Mapping[str, Version], epoch: Version
    ) -> Pushed:
        """Put the configurations that say something newer than what was pushed, some at once, and then the epoch.

        Source only: nodes refuse it from anybody else. What nobody takes now is put again later.
        """
        begin, held = trio.current_time(), []
        queue = iter(sorted(configurations))

        async def work() -> None:
            for name in queue:
                if self._is_due(name, versions.get(name)):
                    push = partial(self._push, name, versions, configurations[name])
                    held.append(await self._node.call(push, 0, what="push", name=name, limit_s=_PUT_S))

        async with trio.open_nursery() as nursery:
            for _ in range(_AT_ONCE):
                nursery.start_soon(work)
        pushed = sum(1 for replicas in held if replicas)
        push = partial(self._push_epoch, epoch)
        held.append(await self._node.call(push, 0, what="push", name=CURRENT, limit_s=_PUT_S))
        return Pushed(pushed, min(held), trio.current_time() - begin)

    def _is_due(self, name: str, version: Version | None) -> bool:
        """Say whether a configuration is to be put. A new epoch begins with what was said before, at revision 0
        (``peer.steering.issuing``); and what is in the DHT is a good permit in the epoch after its own."""
        put = self._versions.get(name)
        if put is None or version is None:
            return put is None
        return version > put and version != Version(put.generation, put.epoch + 1, 0)

    def forget(self, name: str) -> None:
        """Stop keeping a configuration: its subscription has ended. The DHT clears it when it expires."""
        self._versions.pop(name, None)
        _, stale = self._pieces.use(name, [])
        if self._node.dht is not None:
            self._node.dht.forget(CONFIGURATION, name)
            for chunk in stale:
                self._node.dht.forget(CHUNK, chunk)

    async def find_configuration(self, name: str) -> bytes | None:
        """Find how a subscription is fed, as the source pushed it; None means: ask the source."""
        found = await self._find(CONFIGURATION, name)
        return None if found is None else found[1]

    async def current_epoch(self) -> Version | None:
        """Find the version that was pushed last; None means: ask the source."""
        found = await self._find(EPOCH, CURRENT)
        return None if found is None else undated(found[0].version)

    # Zones.

    async def push_zone(self, name: str, version: int, body: bytes) -> int:
        """Put what is so of a zone; how many other nodes hold it now. Source only."""
        push = partial(self._push_zone, name, version, body)
        return await self._node.call(push, 0, what="push", name=name, limit_s=_PUT_S)

    async def find_zone(self, name: str) -> bytes | None:
        """Find what the source pushed of a zone; None means: ask the source."""
        found = await self._find(ZONE, name)
        return None if found is None else found[1]

    async def _push_zone(self, name: str, version: int, body: bytes, dht: Dht) -> int:
        dated_version = dated(Version(0, 0, version), datetime.now(UTC))
        return await self._node.put(dht, *self._notary.make(ZONE, name, dated_version, body))

    async def _push_epoch(self, epoch: Version, dht: Dht) -> int:
        return await self._node.put(dht, *self._notary.make(EPOCH, CURRENT, dated(epoch, datetime.now(UTC)), b""))

    async def _push(self, name: str, versions: Mapping[str, Version], body: bytes, dht: Dht) -> int:
        version = versions[name]
        record, chunks = self._notary.make(CONFIGURATION, name, dated(version, datetime.now(UTC)), body)
        fresh, stale = self._pieces.use(name, [chunk.name for chunk in chunks])
        for chunk in stale:
            dht.forget(CHUNK, chunk)
        self._versions[name] = version
        try:
            return await self._node.put(dht, record, [chunk for chunk in chunks if chunk.name in fresh])
        except BaseException:
            if self._versions.get(name) == version:  # another push may have overtaken this one
                self.forget(name)
            raise

    async def _find(self, kind: str, name: str) -> tuple[Record, bytes] | None:
        found = await self._node.call(
            lambda dht: self._node.get(dht, kind, name), None, what="find", name=name, limit_s=_FIND_S
        )
        self._found, self._missed = self._found + (found is not None), self._missed + (found is None)
        return found

    # What the node tells.

    def opened(self) -> None:
        """Begin anew with a node that keeps nothing yet."""
        self._announced, self._versions, self._pieces = 0, {}, Pieces()
        self.revoked(self._notary.revocations())

    async def meet(self) -> None:
        """Announce what nobody took."""
        if self._addresses and not self._announced:
            await self.announce(self._addresses)


@asynccontextmanager
async def open_directory(
    credential: Credential, revocations: Callable[[], RevocationList], host: str, port: int, *,
    bootstrap: Sequence[Address], settings: DhtSettings | None = None,
) -> AsyncIterator[Directory]:  # fmt: skip
    """Run a node of the network's DHT while the block runs; ``OSError`` if its UDP port cannot be bound.

    ``bootstrap`` is where other nodes may be, the source above all; joining goes on in the background.
    """
    directory = Directory(credential, revocations, bootstrap, settings or _SETTINGS)
    broken: OSError | None = None
    async with trio.open_nursery() as nursery:
        try:
            await nursery.start(directory.run, host, port)
        except OSError as exc:
            broken = exc  # as itself: whether there is a nursery here is nobody's concern
        else:
            yield directory
        nursery.cancel_scope.cancel()
    if broken is not None:
        raise broken

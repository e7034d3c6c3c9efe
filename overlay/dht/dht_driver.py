"""The DHT as the rest of the program sees it, on trio: ``open_dht`` runs a node while its block runs.

The node is asyncio code and runs through trio-asyncio, in the loop that is open where ``open_dht`` is called, or
else in one of its own. Leaving the block, also by cancellation, ends the node's tasks and closes its socket.

The DHT may omit, never lie: what ``get`` returns was signed by somebody who may; None means: ask the source.
"""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import trio
import trio_asyncio  # type: ignore[import-untyped] # ships no types

from overlay.dht.datagrams import NetworkKey, Refusal
from overlay.dht.errors import LocalBadRecord
from overlay.dht.large_values import Assembly
from overlay.dht.node_driver import DhtNode
from overlay.dht.own_records import OwnRecords
from overlay.dht.records import CHUNK, Record, Verify, encode_record, is_valid, record_key
from overlay.dht.settings import DhtSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence

    from overlay.dht.contacts import Address
    from overlay.dht.datagrams import KeyRing
    from overlay.dht.own_records import Renew

AT_ONCE: Final = 8
_TICKS: Final = 8
_CLOSE_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class DhtStatistics:
    """What a node counted so far, and what it holds now."""

    received: int
    sent: int
    dropped: int
    refused: dict[Refusal, int]
    records: int
    record_bytes: int
    own_records: int
    peers: int


class Dht:
    """An open node of the DHT; ``open_dht`` makes one."""

    def __init__(self, node: DhtNode, own: OwnRecords, loop: Any) -> None:
        self._node = node
        self._own = own
        self._loop = loop
        self._changed, self._settles_at = trio.Event(), 0.0

    @property
    def address(self) -> Address:
        """The node's IP address and port."""
        return self._node.address

    @property
    def node_id(self) -> bytes:
        """The node's id."""
        return self._node.id

    @property
    def peers(self) -> list[Address]:
        """The addresses of the nodes in the routing table."""
        return [contact.address for contact in self._node.protocol.router.contacts()]

    @property
    def statistics(self) -> DhtStatistics:
        """Count datagrams, records and peers."""
        protocol, store = self._node.protocol, self._node.store
        return DhtStatistics(
            protocol.received,
            protocol.sent,
            protocol.dropped,
            dict(protocol.refused),
            store.records,
            store.size_bytes,
            self._own.records,
            sum(1 for _ in protocol.router.contacts()),
        )

    async def bootstrap(self, addresses: Iterable[Address]) -> int:
        """Join the network through some of its nodes; how many of them answered."""
        reached: int = await self._aio(self._node.bootstrap(list(addresses)))
        return reached

    async def put(self, record: Record, *, keep: bool = True) -> int:
        """Store a record, and again now and then if it is to be kept; how many other nodes hold it now.

        ``LocalBadRecord`` if no member would take it. Cancelled, it may be stored on some nodes.
        """
        encoded = encode_record(record)
        if not is_valid(record, self._node.verify):
            raise LocalBadRecord(f"{record.kind}/{record.name}", "its signature is not valid")
        if keep:
            self._own.add(record, now=self._node.clock())
        replicas: int = await self._aio(self._node.put(encoded))
        self._own.note_put(record, replicas, now=self._node.clock())
        return replicas

    async def put_many(self, records: Iterable[Record], *, at_once: int = AT_ONCE, keep: bool = True) -> list[int]:
        """Store many records, some at once; for each, in order, how many other nodes hold it now."""
        todo = list(records)
        replicas = [0] * len(todo)
        queue = iter(enumerate(todo))

        async def work() -> None:
            for i, record in queue:
                replicas[i] = await self.put(record, keep=keep)

        async with trio.open_nursery() as nursery:
            for _ in range(min(at_once, len(todo))):
                nursery.start_soon(work)
        return replicas

    async def get(self, kind: str, name: str) -> Record | None:
        """Find the newest record of a name; None means: ask the source."""
        record: Record | None = await self._aio(self._node.get(record_key(kind, name)))
        return record

    async def put_large(self, record: Record, chunks: Sequence[Record], *, at_once: int = AT_ONCE) -> int:
        """Store a value's chunks and then the record that names them; the fewest nodes that hold one of them.

        If nobody holds one of the chunks, the record is not stored.
        """
        fewest = min(await self.put_many(chunks, at_once=at_once), default=0)
        return min(fewest, await self.put(record)) if fewest else 0

    async def get_whole(self, record: Record, *, at_once: int = AT_ONCE) -> bytes | None:
        """Read the value of a record that came from ``get``; None if chunks are missing: ask the source.

        ``RemoteCorruptValue`` if its author signed a manifest that does not add up.
        """
        if not record.whole_bytes:
            return record.payload
        assembly = Assembly(record.payload, record.whole_bytes)
        while assembly.value is None:
            payloads = await self._get_chunks(assembly.wanted, at_once)
            if len(payloads) < len(assembly.wanted):
                return None
            assembly.give(payloads)
        return assembly.value

    def forget(self, kind: str, name: str) -> None:
        """Stop storing an own record again; the DHT keeps it until it expires."""
        self._own.forget(record_key(kind, name))

    def rotate(self, key: bytes) -> None:
        """Take a new network key into use; the one before is accepted for the grace time. Then those leave the
        routing table who do not answer under the new one."""
        seal, grace_s = self._node.seal, self._node.settings.grace_s
        self._change_keys(seal.keys.rotated(NetworkKey.of(key), now=self._node.clock(), grace_s=grace_s))

    def retire_key(self) -> None:
        """Hear nobody after the grace time, until ``rotate``: the network has another key, which is not here."""
        seal, grace_s = self._node.seal, self._node.settings.grace_s
        self._change_keys(seal.keys.retired(now=self._node.clock(), grace_s=grace_s))

    def _change_keys(self, keys: KeyRing) -> None:
        if keys != self._node.seal.keys:
            self._node.seal.keys = keys
            self._settles_at = trio.current_time() + self._node.settings.grace_s
            self._changed.set()

    async def _settle_forever(self) -> None:
        """End the grace time of keys, by a clock that nobody sets, and drop who does not know the new one."""
        while True:
            await self._changed.wait()
            await trio.sleep_until(self._settles_at)
            if trio.current_time() < self._settles_at:
                continue  # they have changed again
            self._changed = trio.Event()
            self._node.seal.keys = self._node.seal.keys.settled()
            await self._aio(self._node.drop_silent())

    async def _get_chunks(self, names: list[str], at_once: int) -> dict[str, bytes]:
        payloads: dict[str, bytes] = {}
        queue = iter(names)

        async def work() -> None:
            for name in queue:
                if (chunk := await self.get(CHUNK, name)) is not None:
                    payloads[name] = chunk.payload

        async with trio.open_nursery() as nursery:
            for _ in range(min(at_once, len(names))):
                nursery.start_soon(work)
        return payloads

    async def _republish_forever(self) -> None:
        while True:
            await trio.sleep(self._own.every_s / _TICKS)
            await self.put_many(self._own.due(self._node.clock()))

    async def _aio(self, work: Coroutine[Any, Any, Any]) -> Any:
        return await self._loop.run_aio_coroutine(work)


@asynccontextmanager
async def open_dht(
    key: bytes, verify: Verify, *,
    host: str = "127.0.0.1", port: int = 0, node_id: bytes | None = None, settings: DhtSettings | None = None,
    renew: Renew | None = None, clock: Callable[[], float] = time.time,
) -> AsyncIterator[Dht]:  # fmt: skip
    """Run a node of the DHT. ``BrokenEndpoint`` cancels the block if the node's socket goes.

    ``renew`` is given own records that soon expire, chunks included, and returns a successor with a higher version
    and a later expiry, or None.
    """
    settings = settings or DhtSettings()
    async with _one_by_one(), _loop() as loop:
        node = DhtNode(NetworkKey.of(key), verify, settings, clock=clock, node_id=node_id)
        await loop.run_aio_coroutine(node.open(host, port))
        own = OwnRecords(settings.republish_s, settings.renew_before_s, settings.most_own, renew)
        dht = Dht(node, own, loop)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(loop.run_aio_coroutine, node.run())
                nursery.start_soon(dht._republish_forever)
                nursery.start_soon(dht._settle_forever)
                yield dht
                nursery.cancel_scope.cancel()
        finally:
            with trio.move_on_after(_CLOSE_S, shield=True):
                await loop.run_aio_coroutine(node.close())


@asynccontextmanager
async def _one_by_one() -> AsyncIterator[None]:
    """Let a single exception out as itself: that there are nurseries here is nobody's concern."""
    try:
        yield
    except BaseExceptionGroup as group:
        only: BaseException = group
        while isinstance(only, BaseExceptionGroup) and len(only.exceptions) == 1:
            only = only.exceptions[0]
        if only is group:
            raise
        raise only from only.__cause__


@asynccontextmanager
async def _loop() -> AsyncIterator[Any]:
    """Give the trio-asyncio loop that is open here, or open one."""
    loop = trio_asyncio.current_loop.get()
    if loop is not None:
        yield loop
    else:
        async with trio_asyncio.open_loop() as loop:
            yield loop

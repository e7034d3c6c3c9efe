"""A node of the DHT, on asyncio: lookups, storing on the nearest nodes, and the work between questions.

Kademlia's ``Server`` is not used: it says a value was set though every store failed, hands newcomers keys that are
hashed twice, refreshes on a fixed hour through tasks that nobody owns, and saves its state by pickle.

Work that nobody waits for (pinging strangers, handing records to newcomers, mending outdated replicas) goes
through one bounded queue of *errands*. When it is full an errand is dropped: strangers come again, and refreshing
stores again what was not handed on.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import socket
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from overlay.dht.contacts import ID_BYTES, Address, Contact
from overlay.dht.datagrams import INSTANCE_BYTES, KeyRing, Seal
from overlay.dht.errors import BrokenEndpoint, MalformedRecord
from overlay.dht.lookup import FoundRecords, Lookup
from overlay.dht.lookup_driver import drive, end
from overlay.dht.messages import Found, Nodes
from overlay.dht.protocol_driver import DhtProtocol
from overlay.dht.record_store import RecordStore
from overlay.dht.records import Record, Verify, decode_record_untrusted, is_valid
from overlay.dht.table import as_id

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from overlay.dht.datagrams import NetworkKey
    from overlay.dht.settings import DhtSettings

_ERRANDS: Final = 1024
_ERRAND_WORKERS: Final = 8
_HAND_AT_ONCE: Final = 16
_RECEIVE_BUFFER: Final = 1 << 20
_HANDED_S: Final = 60.0
"""So often at most the same node is given what it is near to: one that is slow to answer comes and goes."""


class DhtNode:
    """One node; ``open`` its socket, then keep ``run`` running, then ``close``."""

    def __init__(
        self, key: NetworkKey, verify: Verify, settings: DhtSettings, *,
        clock: Callable[[], float], node_id: bytes | None = None,
    ) -> None:  # fmt: skip
        self.id = node_id or secrets.token_bytes(ID_BYTES)
        self.settings = settings
        self.verify = verify
        self.clock = clock
        self.store = RecordStore(verify, settings.limits)
        self.seal = Seal(KeyRing(key), secrets.token_bytes(INSTANCE_BYTES), settings.most_skew_s)
        self.protocol: DhtProtocol
        self.address: Address
        self._random = random.Random(self.id)
        self._errands: asyncio.Queue[Callable[[], Awaitable[None]]] = asyncio.Queue(_ERRANDS)
        self._pinging: set[Address] = set()
        self._handed: dict[bytes, float] = {}

    async def open(self, host: str, port: int) -> None:
        """Bind the socket; port 0 picks a free one."""
        sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
            sock.bind((host, port))
            self.address = sock.getsockname()[:2]
            own = Contact(self.id, *self.address)
            _, self.protocol = await asyncio.get_running_loop().create_datagram_endpoint(
                partial(DhtProtocol, own, self.store, self.seal, sock, settings=self.settings, clock=self.clock),
                sock=sock,
            )
        except BaseException:
            sock.close()
            raise
        self.protocol.on_stranger = self._note_stranger
        self.protocol.on_newcomer = self._note_newcomer

    async def close(self) -> None:
        """Close the socket; returns when it is closed."""
        self.protocol.transport.close()
        await self.protocol.closed

    async def run(self) -> None:
        """Do errands and refresh until cancelled; ``BrokenEndpoint`` if the socket goes."""
        tasks: list[asyncio.Future[Any]] = [asyncio.create_task(self._work()) for _ in range(_ERRAND_WORKERS)]
        tasks.append(asyncio.create_task(self._refresh_forever()))
        try:
            done, _ = await asyncio.wait([self.protocol.closed, *tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in done - {self.protocol.closed}:
                task.result()  # workers only end by an error of ours
            raise BrokenEndpoint(self.protocol.closed.result())
        finally:
            await end(tasks)

    async def bootstrap(self, addresses: Iterable[Address]) -> int:
        """Join through nodes at some addresses; how many of them answered."""
        met = await asyncio.gather(*(self.protocol.call_stranger(address) for address in addresses))
        reached = sum(contact is not None for contact in met)
        if reached:
            await self.nearest(self.id)
            # Paper, sec. 2.3: a joining node refreshes its further buckets, which also makes it known there.
            await self._refresh_table()
        return reached

    async def drop_silent(self) -> None:
        """Ask everybody in the table; who does not answer leaves it."""
        await asyncio.gather(*(self.protocol.call_ping(one) for one in list(self.protocol.router.contacts())))

    async def nearest(self, target: bytes) -> list[Contact]:
        """Look for the k live nodes nearest to an id, this one aside."""
        lookup = self._lookup(target)
        await drive(lookup, partial(self._ask_nodes, lookup, target), alpha=self.settings.alpha)
        return lookup.found()

    async def put(self, encoded: bytes) -> int:
        """Store a record on the nodes nearest to its key; how many others hold it now."""
        key = decode_record_untrusted(encoded).key
        nodes = await self.nearest(key)
        number = int.from_bytes(key, "big")
        own_distance = int.from_bytes(self.id, "big") ^ number
        if len(nodes) < self.settings.k or own_distance < nodes[-1].long_id ^ number:
            self.store.offer(encoded, now=self.clock())
        held = await asyncio.gather(*(self.protocol.call_store(node, encoded) for node in nodes))
        return sum(held)

    async def get(self, key: bytes) -> Record | None:
        """Find the newest record of a key that a few nodes hold; None if none of the nearest holds one."""
        found = FoundRecords(self.settings.readers)
        if held := self.store.find(key, now=self.clock()):
            found.add(held.record, held.encoded, None)
        lookup = self._lookup(key)
        ask = partial(self._ask_value, lookup, key, found)
        await drive(lookup, ask, alpha=self.settings.alpha, found=found)
        if found.best is None:
            return None
        record, encoded = found.best
        for contact in found.outdated(lookup.found()):
            self._errand(partial(self._hand, contact, encoded))
        return record

    def _lookup(self, target: bytes) -> Lookup:
        number = int.from_bytes(target, "big")
        lookup = Lookup(number, self.settings.k, self.id)
        lookup.learn(self.protocol.router.find_neighbors(number))
        return lookup

    async def _ask_nodes(self, lookup: Lookup, target: bytes, contact: Contact) -> None:
        answer = await self.protocol.call_find_node(contact, target)
        if answer is None:
            lookup.failed(contact)
        else:
            lookup.heard(contact, answer.contacts)

    async def _ask_value(self, lookup: Lookup, key: bytes, found: FoundRecords, contact: Contact) -> None:
        answer = await self.protocol.call_find_value(contact, key)
        match answer:
            case Nodes():
                lookup.heard(contact, answer.contacts)
            case Found() if record := self._checked(key, answer.record, found):
                lookup.heard(contact)
                found.add(record, answer.record, contact)
            case _:
                lookup.failed(contact)

    def _checked(self, key: bytes, encoded: bytes, found: FoundRecords) -> Record | None:
        """Decode a record that a node gave; None unless it is of this key, valid and not expired."""
        if found.best is not None and found.best[1] == encoded:
            return found.best[0]
        try:
            record = decode_record_untrusted(encoded)
        except MalformedRecord:
            return None
        now = self.clock()
        return record if record.key == key and now < record.expires_at and is_valid(record, self.verify) else None

    def _errand(self, errand: Callable[[], Awaitable[None]]) -> bool:
        try:
            self._errands.put_nowait(errand)
        except asyncio.QueueFull:
            return False
        return True

    async def _work(self) -> None:
        while True:
            await (await self._errands.get())()

    def _note_stranger(self, contact: Contact) -> None:
        if contact.address not in self._pinging and self._errand(partial(self._ping, contact)):
            self._pinging.add(contact.address)

    def _note_newcomer(self, contact: Contact) -> None:
        now = self.clock()
        self._handed = {node: at for node, at in self._handed.items() if abs(now - at) < _HANDED_S}
        if contact.id not in self._handed and self._errand(partial(self._hand_over, contact)):
            self._handed[contact.id] = now

    async def _ping(self, contact: Contact) -> None:
        try:
            await self.protocol.call_ping(contact)
        finally:
            self._pinging.discard(contact.address)

    async def _hand(self, contact: Contact, encoded: bytes) -> None:
        await self.protocol.call_store(contact, encoded)

    async def _hand_over(self, newcomer: Contact) -> None:
        """Give a newcomer the records it is near to, where this node is one of the nearest that have them."""
        keys = self.store.keys()
        for at in range(0, len(keys), _HAND_AT_ONCE):
            batch = [held for key in keys[at : at + _HAND_AT_ONCE] if (held := self._owed(newcomer, key))]
            await asyncio.gather(*(self.protocol.call_store(newcomer, encoded) for encoded in batch))
            await asyncio.sleep(0)  # a full store takes a while to go through; others get their turn

    def _owed(self, newcomer: Contact, key: bytes) -> bytes | None:
        """Name the bytes of a record that this node should hand to a newcomer, if it should."""
        number = int.from_bytes(key, "big")
        near = self.protocol.router.find_neighbors(number)
        if newcomer not in near:
            return None
        own_distance = int.from_bytes(self.id, "big") ^ number
        nearer = sum(contact.long_id ^ number < own_distance for contact in near if contact != newcomer)
        held = self.store.find(key, now=self.clock())
        return held.encoded if held and nearer < self.settings.handers else None

    async def _refresh_forever(self) -> None:
        while True:
            # Spread in time, so that of the nodes that hold a record one stores it again before the others try.
            await asyncio.sleep(self.settings.refresh_s * self._random.uniform(0.75, 1.25))
            await self._refresh_table()
            now = self.clock()
            for held in self.store.not_heard_since(now - self.settings.refresh_s, now=now):
                held.heard_at = now
                await self.put(held.encoded)

    async def _refresh_table(self) -> None:
        for target in self.protocol.router.refresh_ids(self._random):
            await self.nearest(as_id(target))

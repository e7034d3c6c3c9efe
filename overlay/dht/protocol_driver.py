"""One UDP endpoint of the DHT: kademlia's protocol, with every datagram sealed and every answer checked.

Of the base class the routing table's place and the vocabulary remain (``call_ping`` and its like). Replaced is all
that touches the wire: names from the wire never select a method, one malformed datagram never raises, an answer
counts only from the address and node that were asked, a question is repeated before its contact is dropped.

A contact enters the table only after it *answered* a question under our own random call id from its address. A
question alone proves nothing: an outsider can catch one and send it on from its own address. Who asks and is not
in the table is therefore reported through ``on_stranger``, to be pinged.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, assert_never

from kademlia.protocol import KademliaProtocol  # type: ignore[import-untyped] # ships no types

from overlay.dht.contacts import Address, Contact
from overlay.dht.datagrams import MOST_DATAGRAM, Refusal
from overlay.dht.errors import MalformedMessage
from overlay.dht.messages import (
    CALL_BYTES,
    Answer,
    FindNode,
    FindValue,
    Found,
    Nodes,
    Ping,
    Pong,
    Question,
    Store,
    Stored,
    decode_message_untrusted,
    encode_message,
)
from overlay.dht.questions_driver import Questions
from overlay.dht.table import Table

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from overlay.dht.datagrams import NetworkKey, Seal
    from overlay.dht.record_store import RecordStore
    from overlay.dht.settings import DhtSettings

log = logging.getLogger(__name__)

# What may wait in the process for a full socket buffer; beyond it datagrams are dropped, as a full buffer would.
_MOST_WAITING_BYTES: Final = 256 * 1024
_MORE_AT_ONCE: Final = 63


class DhtProtocol(KademliaProtocol):  # type: ignore[misc] # its base has no types
    """Answers questions of other nodes, and asks them. Owner: the asyncio loop of its endpoint."""

    def __init__(
        self, own: Contact, store: RecordStore, seal: Seal, sock: socket.socket, *,
        settings: DhtSettings, clock: Callable[[], float],
    ) -> None:  # fmt: skip
        super().__init__(own, store, settings.k)
        self.router = Table(own, settings.k)
        self.own = own
        self.store = store
        self.seal = seal
        self.sock = sock
        self.settings = settings
        self.clock = clock
        self.refused: Counter[Refusal] = Counter()
        self.received = self.sent = self.dropped = 0
        self.on_stranger: Callable[[Contact], None] = lambda _: None
        self.on_newcomer: Callable[[Contact], None] = lambda _: None
        self.closed: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        self.questions = Questions(self._ask, settings)

    def __getattr__(self, name: str) -> Any:
        # The base class makes a remote call of any name it does not know.
        raise AttributeError(name)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Tell whoever watches ``closed`` that the endpoint is gone."""
        self.questions.close()
        if not self.closed.done():
            self.closed.set_result(exc)

    def datagram_received(self, data: bytes, addr: tuple[Any, ...]) -> None:
        """Take in what arrived, and what else waits in the socket; never raises."""
        self._receive(data, addr)
        # A wake-up through trio-asyncio costs several times what a datagram does, and brings only one.
        for _ in range(_MORE_AT_ONCE):
            try:
                more = self.sock.recvfrom(MOST_DATAGRAM + 1)
            except OSError:  # nothing more, or an error that the next wake-up meets again
                return
            self._receive(*more)

    def _receive(self, data: bytes, addr: tuple[Any, ...]) -> None:
        self.received += 1
        try:
            refusal = self._take(data, (addr[0], addr[1]))
        except Exception:  # one datagram's supervisor: whatever a member made us do ends with its datagram
            log.exception("datagram_failed")
            refusal = Refusal.FAILED
        if refusal is not None:
            self.refused[refusal] += 1

    def _take(self, data: bytes, address: Address) -> Refusal | None:
        opened = self.seal.open_untrusted(data, now=self.clock())
        if isinstance(opened, Refusal):
            return opened
        try:
            message = decode_message_untrusted(opened.payload)
        except MalformedMessage:
            return Refusal.BAD_MESSAGE
        if message.sender == self.own.id or not address[1]:
            return Refusal.BAD_MESSAGE
        if isinstance(message, Question):
            contact = Contact(message.sender, *address)
            self._send(encode_message(self._answer(message, contact)), address, opened.key)
            self.welcome_if_new(contact)
            return None
        return None if self.questions.take(message, address) else Refusal.UNASKED

    def _answer(self, question: Question, asker: Contact) -> Answer:
        head = (question.call, self.own.id)
        match question:
            case Ping():
                return Pong(*head)
            case Store():
                return Stored(*head, self.store.offer(question.record, now=self.clock()).is_held)
            case FindValue() if held := self.store.find(question.target, now=self.clock()):
                return Found(*head, held.encoded)
            case FindNode() | FindValue():
                near = self.router.find_neighbors(int.from_bytes(question.target, "big"), exclude=asker)
                return Nodes(*head, tuple(near))
            case _:
                assert_never(question)

    def welcome_if_new(self, node: Contact) -> None:
        """Note a question's sender: a known contact moves to its bucket's end, a stranger is reported."""
        if self.router.contains(node):
            self.router.add_contact(node)
        else:
            self.on_stranger(node)

    def met(self, contact: Contact) -> None:
        """Take a contact that answered into the table; report it if it was not there."""
        is_new = not self.router.contains(contact)
        doubtful = self.router.add_contact(contact)
        if doubtful is not None:
            self.on_stranger(doubtful)
        if is_new and self.router.contains(contact):
            self.on_newcomer(contact)

    async def call_ping(self, contact: Contact) -> bool:
        """Ask whether a contact is there."""
        return isinstance(await self._call(contact, Ping(_new_call(), self.own.id)), Pong)

    async def call_store(self, contact: Contact, record: bytes) -> bool:
        """Ask a contact to hold a record; whether it does."""
        answer = await self._call(contact, Store(_new_call(), self.own.id, record))
        return isinstance(answer, Stored) and answer.is_held

    async def call_find_node(self, contact: Contact, target: bytes) -> Nodes | None:
        """Ask a contact for nodes near an id; None if it is not there."""
        answer = await self._call(contact, FindNode(_new_call(), self.own.id, target))
        return answer if isinstance(answer, Nodes) else None

    async def call_find_value(self, contact: Contact, target: bytes) -> Nodes | Found | None:
        """Ask a contact for a record or nodes near it; None if it is not there."""
        answer = await self._call(contact, FindValue(_new_call(), self.own.id, target))
        return answer if isinstance(answer, Nodes | Found) else None

    async def call_stranger(self, address: Address) -> Contact | None:
        """Ask who is at an address; None if nobody is."""
        answer = await self.questions.ask(address, Ping(_new_call(), self.own.id))
        if answer is None:
            return None
        contact = Contact(answer.sender, *address)
        self.met(contact)
        return contact

    async def _call(self, contact: Contact, question: Question) -> Answer | None:
        """Ask a contact; the table learns whether it is there."""
        answer = await self.questions.ask(contact.address, question)
        if answer is None or answer.sender != contact.id:
            self.router.remove_contact(contact)
            return None
        self.met(contact)
        return answer

    def _ask(self, payload: bytes, address: Address, *, again: bool) -> None:
        keys = self.seal.keys.accepted(self.clock())
        # A member that does not know the new key yet cannot answer the first time.
        for key in keys if again else keys[:1]:
            self._send(payload, address, key)

    def _send(self, payload: bytes, address: Address, key: NetworkKey) -> None:
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        if transport.get_write_buffer_size() > _MOST_WAITING_BYTES:
            self.dropped += 1
            return
        datagram = self.seal.seal(payload, now=self.clock(), key=key)
        self.sent += 1
        transport.sendto(datagram, address)


def _new_call() -> bytes:
    return secrets.token_bytes(CALL_BYTES)

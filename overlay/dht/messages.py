"""What nodes say to each other, inside a sealed datagram.

Four questions (ping, store, find a node, find a value) and their answers, each a MessagePack array that starts
with a tag. An answer repeats the 16 random bytes of its question. A record is stored under the key that follows
from the record itself, so a question cannot put it elsewhere. Only these types are ever decoded, and sizes are
checked while decoding: the decoder of the kademlia package (umsgpack, which recurses as deep as the sender likes
and makes objects of extension types) is never reached.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from overlay.dht.contacts import Contact, NodeId, is_host
from overlay.dht.errors import MalformedMessage
from overlay.dht.records import MOST_RECORD

CALL_BYTES: Final = 16
MOST_CONTACTS: Final = 32
CallId = Annotated[bytes, msgspec.Meta(min_length=CALL_BYTES, max_length=CALL_BYTES)]
Encoded = Annotated[bytes, msgspec.Meta(max_length=MOST_RECORD)]


class _Message(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    call: CallId
    sender: NodeId


class Ping(_Message, tag=1, frozen=True):
    """Are you there?"""


class Store(_Message, tag=2, frozen=True):
    """Hold this record."""

    record: Encoded


class FindNode(_Message, tag=3, frozen=True):
    """Which nodes do you know near this id?"""

    target: NodeId


class FindValue(_Message, tag=4, frozen=True):
    """Which record do you hold under this key? Or else: which nodes do you know near it?"""

    target: NodeId


class Pong(_Message, tag=5, frozen=True):
    """I am."""


class Stored(_Message, tag=6, frozen=True):
    """Whether I now hold the record."""

    is_held: bool


class Nodes(_Message, tag=7, frozen=True):
    """The nodes I know near it, nearest first."""

    contacts: Annotated[tuple[Contact, ...], msgspec.Meta(max_length=MOST_CONTACTS)]


class Found(_Message, tag=8, frozen=True):
    """The record I hold."""

    record: Encoded


Question = Ping | Store | FindNode | FindValue
Answer = Pong | Stored | Nodes | Found
Message = Question | Answer

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Message)


def encode_message(message: Message) -> bytes:
    """Encode a message."""
    return _ENCODER.encode(message)


def decode_message_untrusted(data: bytes) -> Message:
    """Decode what a member sent; ``MalformedMessage`` unless it is one message and nothing else."""
    try:
        message: Message = _DECODER.decode(data)
    except (ValueError, RecursionError) as exc:
        raise MalformedMessage(str(exc)) from exc
    if isinstance(message, Nodes):
        strange = next((contact.ip for contact in message.contacts if not is_host(contact.ip)), None)
        if strange is not None:
            raise MalformedMessage(f"{strange!r} is not the address of a host")
    return message

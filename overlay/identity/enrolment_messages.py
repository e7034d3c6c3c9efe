"""The messages of enrolment: four, in this order, or a refusal in place of the last two.

    joiner                     source
    Hello(nonce)          ->
                          <-   Proof(root, chain, nonce, signature)
    Request(secret, key, signature)  ->
                          <-   Answer(chain, DHT key, addresses, revocation list's number)  or  Refused(reason)

Each is a MessagePack array that begins with its tag. Elements beyond those known are passed over, so that a later
version can add some. ``enrolment`` says what the parts are for.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from overlay.identity.address import LONGEST_ADDRESS, MOST_ADDRESSES
from overlay.identity.certificates import LARGEST_CERTIFICATE, MOST_SINCE
from overlay.identity.dht_keys import DHT_KEY_BYTES
from overlay.identity.invitation import SECRET_BYTES
from overlay.identity.keys import PUBLIC_KEY_BYTES, SIGNATURE_BYTES
from overlay.identity.untrusted import decode_untrusted

LARGEST_MESSAGE: Final = 16 * 1024
NONCE_BYTES: Final = 32

_Certificate = Annotated[bytes, msgspec.Meta(max_length=LARGEST_CERTIFICATE)]
_DhtKey = Annotated[bytes, msgspec.Meta(min_length=DHT_KEY_BYTES, max_length=DHT_KEY_BYTES)]
_Nonce = Annotated[bytes, msgspec.Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]
_PublicKey = Annotated[bytes, msgspec.Meta(min_length=PUBLIC_KEY_BYTES, max_length=PUBLIC_KEY_BYTES)]
_Secret = Annotated[bytes, msgspec.Meta(min_length=SECRET_BYTES, max_length=SECRET_BYTES)]
_Signature = Annotated[bytes, msgspec.Meta(min_length=SIGNATURE_BYTES, max_length=SIGNATURE_BYTES)]
_Address = Annotated[str, msgspec.Meta(max_length=LONGEST_ADDRESS)]


class Hello(msgspec.Struct, frozen=True, array_like=True, tag="hello-1"):
    """The joiner begins; the nonce makes the proof one for this conversation."""

    nonce: _Nonce


class Proof(msgspec.Struct, frozen=True, array_like=True, tag="proof-1"):
    """The source shows who it is, before it is told anything secret."""

    root: _Certificate
    chain: tuple[_Certificate, _Certificate]
    nonce: _Nonce
    signature: _Signature


class Request(msgspec.Struct, frozen=True, array_like=True, tag="request-1"):
    """The joiner redeems its invitation for a key that it proves to hold."""

    secret: _Secret
    public_key: _PublicKey
    signature: _Signature


class Answer(msgspec.Struct, frozen=True, array_like=True, tag="answer-1"):
    """What makes the joiner a member."""

    chain: tuple[_Certificate, _Certificate]
    dht_key_number: Annotated[int, msgspec.Meta(ge=1, le=MOST_SINCE)]
    dht_key: _DhtKey
    source: Annotated[list[_Address], msgspec.Meta(max_length=MOST_ADDRESSES)]
    revocations: Annotated[int, msgspec.Meta(ge=0, le=MOST_SINCE)]


class Refused(msgspec.Struct, frozen=True, array_like=True, tag="refused-1"):
    """Why the joiner does not become a member: the name of an ``errors.Refusal``."""

    reason: Annotated[str, msgspec.Meta(max_length=32)]


FromJoiner = Hello | Request
FromSource = Proof | Answer | Refused

_FROM_JOINER: Final[msgspec.msgpack.Decoder[FromJoiner]] = msgspec.msgpack.Decoder(FromJoiner)
_FROM_SOURCE: Final[msgspec.msgpack.Decoder[FromSource]] = msgspec.msgpack.Decoder(FromSource)


def encode(message: FromJoiner | FromSource) -> bytes:
    """Return a message as bytes."""
    return msgspec.msgpack.encode(message)


def decode_from_joiner_untrusted(data: bytes) -> FromJoiner:
    """Read what a joiner sent, or raise ``MalformedFrame``."""
    return decode_untrusted(_FROM_JOINER, data, what="enrolment message", most_bytes=LARGEST_MESSAGE)


def decode_from_source_untrusted(data: bytes) -> FromSource:
    """Read what should be from the source, or raise ``MalformedFrame``."""
    return decode_untrusted(_FROM_SOURCE, data, what="enrolment message", most_bytes=LARGEST_MESSAGE)

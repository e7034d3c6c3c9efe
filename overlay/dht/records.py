"""Records: the signed, versioned values that the DHT holds.

A record's key is its kind and name (``site/a``, ``epoch/current``, ``zone/space/0110``, ``chunk/<sha256>``). It is
encoded as a MessagePack array of its fields; the signature covers a prefix and the encoding with an empty
signature. There is one encoding of each record: bytes that decode to a record but are not its encoding are
refused, so records are equal exactly when their bytes are.

The highest valid version wins, wherever records meet; of equal versions with other bytes the first is kept. A
chunk has no author: its name is the hash of its payload, and its version is its expiry, so that whoever needs it
longest extends its life.
"""

from __future__ import annotations

import logging
from hashlib import blake2b, sha256
from typing import Annotated, Final, Protocol

import msgspec

from overlay.dht.errors import LocalBadRecord, MalformedRecord

log = logging.getLogger(__name__)

# With the headers around it, a record of this size fills one Ethernet frame: IP fragments get lost together.
MOST_RECORD: Final = 1330
MOST_PAYLOAD: Final = 1000
MOST_SIGNATURE: Final = 256
MOST_WHOLE: Final = 1 << 20
KEY_BYTES: Final = 20
CHUNK: Final = "chunk"
_SIGNED_PREFIX: Final = b"distributary record 1\0"
_COUNT = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class Verify(Protocol):
    """Says whether a signature stands under the signed bytes by somebody who may write this kind and name."""

    def __call__(self, kind: str, name: str, signed: bytes, signature: bytes, /) -> bool: ...


class Version(msgspec.Struct, frozen=True, array_like=True, order=True, forbid_unknown_fields=True):
    """When a record was made: the log's generation, the epoch, the revision; compared in this order."""

    generation: _COUNT
    epoch: _COUNT
    revision: _COUNT


class Record(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A value of the DHT. ``expires_at`` is in seconds since 1970 and only clears storage.

    ``whole_bytes`` is 0 where the payload is the value itself; otherwise the payload is a manifest of a value of
    that many bytes (see ``large_values``).
    """

    kind: Annotated[str, msgspec.Meta(pattern="^[a-z]{1,16}$")]
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    version: Version
    expires_at: _COUNT
    payload: Annotated[bytes, msgspec.Meta(max_length=MOST_PAYLOAD)]
    whole_bytes: Annotated[int, msgspec.Meta(ge=0, le=MOST_WHOLE)] = 0
    signature: Annotated[bytes, msgspec.Meta(max_length=MOST_SIGNATURE)] = b""

    @property
    def key(self) -> bytes:
        """Where the record lies in the DHT."""
        return record_key(self.kind, self.name)


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Record)


def record_key(kind: str, name: str) -> bytes:
    """Where a record lies in the DHT: 20 bytes, spread evenly.

    >>> record_key("site", "a").hex()
    'ab31bd40cf29d1d7161b33f3fbf7c4b5bd392b33'
    """
    return blake2b(f"{kind}/{name}".encode(), digest_size=KEY_BYTES).digest()


def encode_record(record: Record) -> bytes:
    """Encode a record of ours; ``LocalBadRecord`` if no member would decode it."""
    encoded = _ENCODER.encode(record)
    try:
        decode_record_untrusted(encoded)
    except MalformedRecord as exc:
        raise LocalBadRecord(f"{record.kind}/{record.name}", exc.why) from exc
    return encoded


def decode_record_untrusted(encoded: bytes) -> Record:
    """Decode bytes from anywhere; every size is bounded. Says nothing about who made them."""
    if len(encoded) > MOST_RECORD:
        raise MalformedRecord(f"it has {len(encoded)} bytes, above {MOST_RECORD}")
    try:
        record = _DECODER.decode(encoded)
        again = _ENCODER.encode(record)
    except (ValueError, RecursionError) as exc:
        raise MalformedRecord(str(exc)) from exc
    if again != encoded:
        raise MalformedRecord("it is encoded in another way than records are")
    return record


def signed_bytes(record: Record) -> bytes:
    """Name what a record's signature stands under; the signature it has does not count."""
    return _SIGNED_PREFIX + _ENCODER.encode(msgspec.structs.replace(record, signature=b""))


def make_chunk(payload: bytes, expires_at: int) -> Record:
    """Make the record of a piece of a larger value."""
    return Record(CHUNK, sha256(payload).hexdigest(), Version(0, 0, expires_at), expires_at, payload)


def is_valid(record: Record, verify: Verify) -> bool:
    """Whether a record may be believed: signed by somebody who may, or a chunk that is what its name says."""
    if record.kind == CHUNK:
        return record == make_chunk(record.payload, record.expires_at)
    try:
        return verify(record.kind, record.name, signed_bytes(record), record.signature)
    except Exception:  # it is foreign code before hostile bytes: whatever it raises means no
        log.exception("verify_failed")
        return False

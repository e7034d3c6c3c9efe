"""Zones in the directory: ``zone/<space>/<prefix>`` says how a zone was split, or who owns it.

The payload is a MessagePack array: version, axis and value of the split (axis -1: not split), owner, fencing
number, hash. The whole space has the prefix ``-``; its record is the *head*: its version is that of the map, its
hash that of the map as a whole, so that a map put together from records can be told from one in which an older
record stands (``map_walk``). The source's catalog signs; versions make the newest win (``overlay.dht``).
"""

from __future__ import annotations

import math
from typing import Annotated, Final

import msgspec

from overlay.zones.errors import MalformedZone
from overlay.zones.tree import MAX_DEPTH

KIND: Final = "zone"
HASH_BYTES: Final = 20
_COUNT = Annotated[int, msgspec.Meta(ge=0, le=(1 << 62))]


class ZoneRecord(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What the directory says of a prefix."""

    version: _COUNT
    axis: Annotated[int, msgspec.Meta(ge=-1, le=64)]
    value: float
    owner: Annotated[str, msgspec.Meta(max_length=200)]
    fence: _COUNT
    digest: Annotated[bytes, msgspec.Meta(max_length=HASH_BYTES)] = b""

    @property
    def is_split(self) -> bool:
        """Whether it is a zone no more."""
        return self.axis >= 0


def record_name(space: str, prefix: str) -> str:
    """Return the name under which a zone is looked up.

    >>> record_name("market", "011"), record_name("market", "")
    ('market/011', 'market/-')
    """
    return f"{space}/{prefix or '-'}"


def encode_zone(record: ZoneRecord) -> bytes:
    """Write the payload of a record."""
    return msgspec.msgpack.encode(record)


def decode_zone_untrusted(payload: bytes) -> ZoneRecord:
    """Read a payload; ``MalformedZone`` for anything that is none."""
    try:
        record = msgspec.msgpack.decode(payload, type=ZoneRecord)
    except (msgspec.DecodeError, ValueError, RecursionError) as exc:  # text that is no UTF-8 is a ValueError
        raise MalformedZone(str(exc)) from None
    if math.isnan(record.value) or (record.is_split and not math.isfinite(record.value)):
        raise MalformedZone("a split at no number")
    return record


def is_prefix(text: str) -> bool:
    """Say whether a text can name a zone."""
    return len(text) <= MAX_DEPTH and not text.strip("01")

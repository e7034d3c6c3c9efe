"""Payloads: some attributes of a message, encoded together, and known by the hash of that."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

ID_BYTES: Final = 16
MAX_PAYLOAD: Final = 8 << 20


class BadPayload(Exception):
    """Bytes that are no payload, or not the one they are said to be."""


def payload_id(payload: bytes) -> bytes:
    """Return what a payload is known by: a hash of its content."""
    return blake2b(payload, digest_size=ID_BYTES).digest()


def take_out(attributes: Mapping[str, str], names: Collection[str]) -> tuple[dict[str, str], bytes]:
    """Part a message into what stays in it and its payload.

    >>> rest, payload = take_out({"topic": "sport", "photo": "..."}, ["photo"])
    >>> rest, put_back(rest, payload)
    ({'topic': 'sport'}, {'topic': 'sport', 'photo': '...'})
    """
    rest = {name: value for name, value in attributes.items() if name not in names}
    bulky = [(name, attributes[name]) for name in sorted(names) if name in attributes]
    payload = msgspec.msgpack.encode(bulky)
    if len(payload) > MAX_PAYLOAD:
        raise BadPayload(f"a payload of {len(payload):,} bytes, above {MAX_PAYLOAD:,}")
    return rest, payload


def put_back(rest: Mapping[str, str], payload: bytes) -> dict[str, str]:
    """Put a message together again; ``BadPayload`` if it cannot be read."""
    try:
        bulky = msgspec.msgpack.decode(payload, type=list[tuple[str, str]])
    except (msgspec.DecodeError, ValueError, RecursionError) as exc:  # text that is no UTF-8 is a ValueError
        raise BadPayload(str(exc)) from None
    return {**rest, **dict(bulky)}

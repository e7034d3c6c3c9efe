"""Decoding what came from elsewhere: bounded first, and one error only."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from overlay.identity.errors import MalformedFrame

T = TypeVar("T")


def decode_untrusted(decoder: msgspec.msgpack.Decoder[T], data: bytes, *, what: str, most_bytes: int) -> T:
    """Decode bytes of at most a size, or raise ``MalformedFrame``."""
    if len(data) > most_bytes:
        raise MalformedFrame(what, f"it has {len(data):,} bytes, and at most {most_bytes:,} are taken")
    try:
        return decoder.decode(data)
    # Deep nesting ends in a RecursionError, a text that is no UTF-8 in a ValueError.
    except (msgspec.MsgspecError, RecursionError, ValueError) as exc:
        raise MalformedFrame(what, _one_line(str(exc))) from exc


def _one_line(text: str) -> str:
    # The decoder quotes what it refuses, and that may be made to look like a line of a log.
    return "".join(char if char.isprintable() else "?" for char in text[:160])

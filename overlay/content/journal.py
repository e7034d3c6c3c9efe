"""What the source's part must not forget: records to write before anything is sent that follows from them.

A source that starts again is made from its records (``Origin.restore``): what is not known to have reached
everybody goes out again, and others know it by its number. ``Origin.snapshot`` gives fewer records that say the
same.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from overlay.content.errors import MalformedContent
from overlay.content.frames import Entry, Message  # noqa: TC001  # msgspec reads the annotations


class _Record(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What all records are."""


class Takes(_Record, tag=1, frozen=True):
    """A machine takes part, or does no more."""

    site: str
    is_node: bool


class Mapped(_Record, tag=2, frozen=True):
    """A step of the map."""

    version: int
    splits: tuple[tuple[str, int, float], ...]
    grants: tuple[tuple[str, str], ...]


class Changed(_Record, tag=3, frozen=True):
    """A change of subscriptions, as the entries it made."""

    number: int
    entries: tuple[Entry, ...]


class Announced(_Record, tag=4, frozen=True):
    """A message was published."""

    message: Message


class Behind(_Record, tag=5, frozen=True):
    """A machine was not there to take a message; ``is_over``: it has it now."""

    site: str
    number: int
    is_over: bool = False


class Reached(_Record, tag=6, frozen=True):
    """Everything up to this number has reached everybody who was there; ``number``: the last one given."""

    frontier: int
    number: int


Record: TypeAlias = Takes | Mapped | Changed | Announced | Behind | Reached

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Record)


def encode_record(record: Record) -> bytes:
    """Write a record.

    >>> decode_record(encode_record(Reached(7, 9)))
    Reached(frontier=7, number=9)
    """
    return _ENCODER.encode(record)


def decode_record(data: bytes) -> Record:
    """Read a record of one's own; ``MalformedContent`` if it is none."""
    try:
        record: Record = _DECODER.decode(data)
    except (msgspec.DecodeError, RecursionError) as exc:
        raise MalformedContent(str(exc)) from None
    return record

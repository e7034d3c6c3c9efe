"""What the source's part must not forget: records to write before anything is sent that follows from them.

A source that starts again is made from its records (``Origin.restore``): what is not known to have reached
everybody goes out again, and others know it by its number. ``Origin.snapshot`` gives fewer records that say the
same.

Some records are *entries*: what users asked for, under a number. Where the source has a log they are entries of
that, numbered and written there first (``Origin.enter``); else the origin counts for itself and puts them into its
journal.
"""

from __future__ import annotations

from typing import Final, TypeAlias, TypeVar

import msgspec

from overlay.content.errors import MalformedContent
from overlay.content.frames import Entry, Message  # noqa: TC001  # msgspec reads the annotations
from rewriting.filters.region import Point  # noqa: TC001


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
    """A change of subscriptions, as the entries of the catalog that it made."""

    number: int
    entries: tuple[Entry, ...]


class Announced(_Record, tag=4, frozen=True):
    """A message was published, as it goes out."""

    message: Message


class Behind(_Record, tag=5, frozen=True):
    """A machine was not there to take a message; ``is_over``: it has it now."""

    site: str
    number: int
    is_over: bool = False


class GaveUp(_Record, tag=12, frozen=True):
    """Of what a machine was behind with, some was given up: it has a gap up to this number."""

    site: str
    upto: int


class Reached(_Record, tag=6, frozen=True):
    """Everything up to this number has reached everybody who was there; ``number``: the last one given."""

    frontier: int
    number: int


class Subscribed(_Record, tag=7, frozen=True):
    """Somebody subscribed, by a filter or by a point."""

    number: int
    subscription: str
    site: str
    wanted: str | Point


class Unsubscribed(_Record, tag=8, frozen=True):
    """A subscription ended."""

    number: int
    subscription: str


class Moved(_Record, tag=9, frozen=True):
    """A subscription was given another point."""

    number: int
    subscription: str
    point: Point


class Relabelled(_Record, tag=10, frozen=True):
    """The coordinates in [low, high) on an axis were shifted."""

    number: int
    axis: int
    low: float
    high: float
    shift: float


class Published(_Record, tag=11, frozen=True):
    """A message was published. ``payload``: which attributes are bulky; ``region``: what it covers, as
    ``frames.pack_region`` says, empty if its attributes say it."""

    number: int
    attributes: dict[str, str]
    payload: tuple[str, ...] = ()
    region: tuple[Point, ...] = ()


Entered: TypeAlias = Subscribed | Unsubscribed | Moved | Relabelled | Published
Record: TypeAlias = Takes | Mapped | Changed | Announced | Behind | GaveUp | Reached | Entered

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final[msgspec.msgpack.Decoder[Record]] = msgspec.msgpack.Decoder(Record)
_ENTRY_DECODER: Final[msgspec.msgpack.Decoder[Entered]] = msgspec.msgpack.Decoder(Entered)
_Kind = TypeVar("_Kind")


def encode_record(record: Record) -> bytes:
    """Write a record.

    >>> decode_record(encode_record(Reached(7, 9)))
    Reached(frontier=7, number=9)
    """
    return _ENCODER.encode(record)


def decode_entry(data: bytes, number: int) -> Entered:
    """Read an entry, under the number that the log gave it; ``MalformedContent`` if it is none.

    >>> decode_entry(encode_record(Unsubscribed(0, "s")), 7)
    Unsubscribed(number=7, subscription='s')
    """
    return msgspec.structs.replace(_decoded(_ENTRY_DECODER, data), number=number)


def decode_record(data: bytes) -> Record:
    """Read a record of one's own; ``MalformedContent`` if it is none."""
    return _decoded(_DECODER, data)


def _decoded(decoder: msgspec.msgpack.Decoder[_Kind], data: bytes) -> _Kind:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as exc:  # text that is no UTF-8 is a ValueError
        raise MalformedContent(str(exc)) from None


def number_in(data: bytes) -> int:
    """Return the number up to which a record says that numbers were given; 0 if it says nothing of them.

    >>> number_in(encode_record(Reached(7, 9))), number_in(encode_record(Takes("p", True)))
    (9, 0)
    """
    match decode_record(data):
        case Takes() | Mapped() | Behind() | GaveUp():
            return 0
        case Announced(message=message):
            return message.number
        case record:
            return record.number

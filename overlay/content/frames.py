"""What the machines of a content-driven network say to each other, and its encoding.

Every frame belongs to one space; whoever carries them says which. A frame is a MessagePack array that begins with
its tag. Numbers are those of the source's log; prefixes name zones (``overlay.zones.tree``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import msgspec

from overlay.content.errors import MalformedContent
from rewriting.filters.errors import RegionError
from rewriting.filters.region import Point, Quadrants, Rectangle, Region

if TYPE_CHECKING:
    from rewriting.filters.space import Space

MAX_BYTES: Final = 16 << 20
_COUNT = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
_PREFIX = Annotated[str, msgspec.Meta(pattern="^[01]{0,120}$")]
_NAME = Annotated[str, msgspec.Meta(max_length=200)]


class _Frame(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What all frames are: arrays without the names of their fields."""


class Message(_Frame, frozen=True):
    """A published message. ``version``: of the map, when it was released; ``frontier``: everything up to there has
    reached everybody. ``region``: what it covers, as ``pack_region`` says; empty if its attributes say it.

    ``payload_attrs``, ``payload_id`` and ``source`` are CN*'s: which attributes are left out of ``attributes`` and
    make up ``payload``, what their hash is, and who is likely to have them. ``payload`` is None where it stayed
    behind.
    """

    number: _COUNT
    version: _COUNT
    frontier: _COUNT
    attributes: dict[str, str]
    region: tuple[Point, ...] = ()
    payload_attrs: tuple[str, ...] = ()
    payload_id: bytes = b""
    source: _NAME = ""
    payload: bytes | None = None


class Spread(_Frame, tag=1, frozen=True):
    """Bring a message to everybody under a prefix. ``to_neighbours``: and from that zone on to its neighbours."""

    prefix: _PREFIX
    to_neighbours: bool
    message: Message


class Approach(_Frame, tag=2, frozen=True):
    """Bring a message to its corner, from neighbour to neighbour; there it begins to spread. ``hops``: so far."""

    message: Message
    hops: _COUNT = 0


class Done(_Frame, tag=3, frozen=True):
    """A message that was asked for under ``prefix`` has reached everybody under the prefixes ``covered``, but for
    the machines that were ``behind``: the source owes them."""

    number: _COUNT
    prefix: _PREFIX
    covered: tuple[_PREFIX, ...]
    behind: tuple[_NAME, ...] = ()


class Refused(_Frame, tag=4, frozen=True):
    """Not by me: I own nothing there, or am not ready. ``version``: of the map I know."""

    number: _COUNT
    prefix: _PREFIX
    version: _COUNT


class Deliver(_Frame, tag=5, frozen=True):
    """A message for subscriptions of a machine, whole; ``prefix``: the zone, to be named in the answer."""

    number: _COUNT
    prefix: _PREFIX
    subscriptions: tuple[_NAME, ...]
    attributes: dict[str, str]


class Delivered(_Frame, tag=6, frozen=True):
    """It is stored."""

    number: _COUNT
    prefix: _PREFIX


class AskMap(_Frame, tag=7, frozen=True):
    """What has changed since this version of the map?"""

    version: _COUNT


class MapSteps(_Frame, tag=8, frozen=True):
    """The next steps of the map: version, splits (prefix, axis, value), grants (prefix, owner)."""

    frontier: _COUNT
    steps: tuple[tuple[_COUNT, tuple[tuple[_PREFIX, int, float], ...], tuple[tuple[_PREFIX, _NAME], ...]], ...]


class AskLoad(_Frame, tag=9, frozen=True):
    """Which subscriptions are in my zone? After that one, in order; I have the grant with this fencing number."""

    prefix: _PREFIX
    fence: _COUNT
    after: tuple[_NAME, _COUNT] = ("", 0)


class Entry(_Frame, frozen=True):
    """A subscription in a zone: it is owed the numbers in (start, end] (``end`` -1: not ended). ``number``: of the
    entry of the log that said so. ``filter`` is empty where the point alone counts."""

    subscription: _NAME
    site: _NAME
    number: _COUNT
    start: _COUNT
    end: int
    point: Point
    filter: str

    @property
    def key(self) -> tuple[str, int]:
        """What makes it the same entry: a subscription that moves has one for each place."""
        return self.subscription, self.start

    def owes(self, number: int) -> bool:
        """Say whether it is owed a message with this number."""
        return self.start < number and (self.end < 0 or number <= self.end)


class Load(_Frame, tag=10, frozen=True):
    """Subscriptions of a zone after the one that was asked for; ``more``: ask again after the last one."""

    prefix: _PREFIX
    fence: _COUNT
    after: tuple[_NAME, _COUNT]
    entries: tuple[Entry, ...]
    more: bool


class Place(_Frame, tag=11, frozen=True):
    """A subscription has come, gone or moved; ``version``: of the map that says it is yours."""

    version: _COUNT
    entry: Entry


class Placed(_Frame, tag=12, frozen=True):
    """I have it."""

    subscription: _NAME
    start: _COUNT
    number: _COUNT


class Alive(_Frame, tag=13, frozen=True):
    """I am here, since this start of mine; how many messages my zones have handled since the last time."""

    incarnation: _COUNT
    version: _COUNT
    handled: dict[str, int]


class Seen(_Frame, tag=14, frozen=True):
    """I have heard you. Everything up to ``frontier`` has reached you, but for what was given up, up to ``gap``;
    the map has this version."""

    frontier: _COUNT
    version: _COUNT
    gap: _COUNT = 0


class Kept(_Frame, tag=15, frozen=True):
    """I understand payloads that stay behind, and have seen this one."""

    payload_id: bytes


class Fetch(_Frame, tag=16, frozen=True):
    """Send me this payload."""

    payload_id: bytes


class Payload(_Frame, tag=17, frozen=True):
    """The payload, or None: I do not have it any more."""

    payload_id: bytes
    payload: bytes | None


Frame: TypeAlias = (
    Spread | Approach | Done | Refused | Deliver | Delivered | AskMap | MapSteps | AskLoad | Load | Place | Placed
    | Alive | Seen | Kept | Fetch | Payload
)  # fmt: skip

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Frame)


def encode(frame: Frame) -> bytes:
    """Write a frame.

    >>> decode_untrusted(encode(Done(7, "01", ("01",))))
    Done(number=7, prefix='01', covered=('01',), behind=())
    """
    return _ENCODER.encode(frame)


def decode_untrusted(data: bytes) -> Frame:
    """Read a frame; ``MalformedContent`` for anything that is none."""
    if len(data) > MAX_BYTES:
        raise MalformedContent(f"a frame of {len(data):,} bytes, above {MAX_BYTES:,}")
    try:
        frame: Frame = _DECODER.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as exc:  # text that is no UTF-8 is a ValueError
        raise MalformedContent(str(exc)) from None
    if isinstance(frame, Spread | Approach) and frame.message.region:
        unpack_region(frame.message.region)
    return frame


def pack_region(region: Region) -> tuple[Point, ...]:
    """Write a region: a rectangle as an empty row, its lows, highs and corner; quadrants as their corners."""
    match region:
        case Rectangle():
            return (), region.lows, region.highs, region.corner
        case Quadrants():
            return region.corners


def region_of(message: Message, space: Space) -> Region:
    """Return what a message covers: what it says, or what its attributes do."""
    return unpack_region(message.region) if message.region else space.region(message.attributes)


def unpack_region(rows: tuple[Point, ...]) -> Region:
    """Read a region; ``MalformedContent`` if it is none.

    >>> unpack_region(pack_region(Quadrants(((1.0, 2.0),))))
    Quadrants(corners=((1.0, 2.0),))
    """
    try:
        if rows[0]:
            return Quadrants(rows)
        _, lows, highs, corner = rows
        return Rectangle(lows, highs, corner)
    except (RegionError, ValueError, IndexError) as exc:
        raise MalformedContent(f"a region that is none: {exc}") from None

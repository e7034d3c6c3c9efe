"""Frames: everything two hosts say to each other, and its encoding.

On the wire a frame is a length (4 bytes, big-endian, of what follows), its number on this connection (4 bytes),
and a MessagePack array that begins with the tag below. Sizes are checked before anything is allocated. A feed is
named by a number that its receiver chose; which way a frame travels says whose number it is. Intervals are
(after, upto]: what an interval covers and does not carry is empty.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from overlay.wire.errors import FrameTooLarge, MalformedFrame

MAX_FRAME: Final = 16 << 20
"""The most a frame may have after its length. Results travel in fragments; some answers are large."""
FRAGMENT: Final = 64 << 10
"""How much of a batch travels in one frame, so that the feeds of a connection take turns."""
HEAD: Final = 8
LONGEST_CALM_S: Final = 600.0
_MOST: Final = 1 << 62
MOST_MARKS: Final = 2048
"""The most bytes that marks may have."""


class _Frame(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """What all frames are: arrays without the names of their fields."""


class Hello(_Frame, tag=1, frozen=True):
    """The first frame of both sides: the versions spoken, the incarnation of the process, its revocation list."""

    lowest: int
    highest: int
    incarnation: int
    revocation: int


class Alive(_Frame, tag=2, frozen=True):
    """Said when nothing else was for a while; also asks for nothing."""

    revocation: int


class Bye(_Frame, tag=3, frozen=True):
    """The connection ends on purpose."""

    reason: str


class Open(_Frame, tag=4, frozen=True):
    """Feed me: the results of ``upstream`` (empty: of the pattern ``query``, by the source) after a document.

    ``link``: what of the results, and filtered how; empty for all of them. ``permit``: the signed configuration of
    the receiver that names this feed. ``credit``: how many bytes may be sent before more is granted.
    """

    feed: int
    upstream: str
    downstream: str
    query: str
    link: bytes
    permit: bytes
    generation: int
    after: int
    credit: int


class Opened(_Frame, tag=5, frozen=True):
    """The feed is open and covers what comes after ``after``: more than was asked where the rest is gone."""

    feed: int
    after: int
    level: int


class Batch(_Frame, tag=6, frozen=True):
    """The results for one document, or a fragment of them with more to come; covers (after, number]."""

    feed: int
    after: int
    number: int
    name: str
    data: bytes
    more: bool


class Marked(Batch, tag=19, frozen=True):
    """A batch, or the last fragment of one, with advice on it that means nothing here (``peer.hosting.marks``).
    Spoken from version 6 on; before it is a ``Batch``."""

    marks: bytes

    @property
    def plain(self) -> Batch:
        """The same without the advice."""
        return Batch(self.feed, self.after, self.number, self.name, self.data, self.more)


class Frontier(_Frame, tag=7, frozen=True):
    """There is nothing for the documents in (after, upto]."""

    feed: int
    after: int
    upto: int


class Failed(_Frame, tag=8, frozen=True):
    """Nothing for the documents in (after, number), and ``number`` cannot be processed, for this reason."""

    feed: int
    after: int
    number: int
    name: str
    reason: str


class Gap(_Frame, tag=9, frozen=True):
    """Nobody can serve the documents in (after, upto] any more."""

    feed: int
    after: int
    upto: int


class Ended(_Frame, tag=10, frozen=True):
    """The sender ends or refuses a feed. ``why``: ``busy``, ``moved``, ``gone``, ``forbidden``, ``lost``."""

    feed: int
    why: str
    text: str


class Credit(_Frame, tag=11, frozen=True):
    """Up to so many bytes may have been sent since the feed was opened; and what is committed up to where."""

    feed: int
    total: int
    acknowledged: int


class Cancel(_Frame, tag=12, frozen=True):
    """The receiver ends a feed."""

    feed: int


class Pace(_Frame, tag=20, frozen=True):
    """Whether what the receiver gets may be held for a moment and come together: nobody is waiting for it. Spoken
    from version 6 on; a feed that is opened is not gentle."""

    feed: int
    is_gentle: bool


class Ask(_Frame, tag=13, frozen=True):
    """A question with a number of its own; the answer carries it back."""

    question: int
    what: str
    body: bytes


class Answer(_Frame, tag=14, frozen=True):
    """The answer to a question, or why there is none."""

    question: int
    ok: bool
    body: bytes


class Level(_Frame, tag=15, frozen=True):
    """How many links the sender is away from the source now; spoken from version 2 on."""

    feed: int
    level: int


class Content(_Frame, tag=16, frozen=True):
    """A frame of the content-driven network of a space (``overlay.content``); spoken from version 3 on."""

    space: str
    body: bytes


class Again(_Frame, tag=17, frozen=True):
    """A batch, or a fragment of one, whose data crossed this connection before: ``name_of_data`` says which.
    Spoken from version 4 on; ``Connection`` makes a ``Batch`` of it."""

    feed: int
    after: int
    number: int
    name: str
    name_of_data: bytes
    more: bool


class Calm(_Frame, tag=18, frozen=True):
    """A sign of life where nothing hangs on the connection: the next follows within ``seconds``, sooner if
    anything is said. Spoken from version 5 on."""

    revocation: int
    seconds: float


Frame: TypeAlias = (
    Hello | Alive | Bye | Open | Opened | Batch | Marked | Frontier | Failed | Gap | Ended | Credit | Cancel | Ask
    | Answer | Level | Content | Calm | Pace
)  # fmt: skip
OnTheWire: TypeAlias = Frame | Again
SignOfLife: TypeAlias = Alive | Calm
FromReceiver: TypeAlias = Open | Credit | Cancel | Pace
FromSender: TypeAlias = Opened | Batch | Marked | Frontier | Failed | Gap | Ended | Level

OF_SENDER: Final = (Opened, Batch, Marked, Frontier, Failed, Gap, Ended, Level)
"""The frames of ``FromSender``, which wait for their turn; all others go before them."""

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(OnTheWire)


def encode(frame: OnTheWire, number: int) -> bytes:
    """Write a frame, with its head.

    >>> decode_untrusted(encode(Frontier(1, 5, 9), 3)[HEAD:])
    Frontier(feed=1, after=5, upto=9)
    """
    return with_head(encode_body(frame), number)


def encode_body(frame: OnTheWire) -> bytes:
    """Write a frame without its head; ``FrameTooLarge`` if nobody would take it."""
    body = _ENCODER.encode(frame)
    if len(body) + 4 > MAX_FRAME:
        raise FrameTooLarge(len(body), MAX_FRAME - 4)
    return body


def with_head(body: bytes, number: int) -> bytes:
    """Put the head before a frame's body."""
    return b"".join(((len(body) + 4).to_bytes(4), (number & 0xFFFFFFFF).to_bytes(4), body))


def decode_untrusted(body: bytes | bytearray | memoryview) -> OnTheWire:
    """Read a frame's body; raise ``MalformedFrame`` for anything that is none."""
    try:
        frame: OnTheWire = _DECODER.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError) as exc:  # text that is no UTF-8 is a ValueError
        raise MalformedFrame(str(exc)) from None
    _check(frame)
    return frame


def _check(frame: OnTheWire) -> None:
    """Refuse numbers that no honest host would send."""
    if isinstance(frame, Batch):  # most of all frames; the others are looked at field by field
        is_wrong = not (0 <= frame.feed < _MOST and 0 <= frame.after < frame.number < _MOST)
    else:
        is_wrong = True
    for name in frame.__struct_fields__ if is_wrong else ():
        value = getattr(frame, name)
        if isinstance(value, int) and not 0 <= value < _MOST:
            raise MalformedFrame(f"{name} is {value}")
    if isinstance(frame, Calm) and not 0 < frame.seconds <= LONGEST_CALM_S:
        raise MalformedFrame(f"seconds is {frame.seconds}")
    if isinstance(frame, Marked) and len(frame.marks) > MOST_MARKS:
        raise MalformedFrame(f"marks of {len(frame.marks):,} bytes; the most is {MOST_MARKS:,}")
    if isinstance(frame, Batch | Again | Frontier | Failed | Gap):
        end = frame.upto if isinstance(frame, Frontier | Gap) else frame.number
        if end <= frame.after:
            raise MalformedFrame(f"({frame.after}, {end}] is empty")

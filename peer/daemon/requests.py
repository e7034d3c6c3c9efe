"""What machines ask of the source, with the limits of every field: checked before anything is done about it."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec

from overlay.identity.keys import PUBLIC_KEY_BYTES, SIGNATURE_BYTES
from peer.daemon.numbering import MOST_AT_ONCE
from peer.daemon.questions import NoAnswer
from peer.hosting.rows import read_pattern
from xmlmatch import Pattern

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
_Number = Annotated[int, msgspec.Meta(ge=0, le=1 << 60)]


class Greet(msgspec.Struct, frozen=True):
    """Here I am: where I can be dialled, how many feeds I bear, and what I have of the log and the catalog.

    ``generation`` and ``frontier``: the highest generation and number of the log that anything here has seen.
    ``revocations``: the number of the list of the revoked. ``subscriptions``: those that live here. ``in_parts``:
    configurations that are too many for one answer are asked for (``More``); else they come all at once."""

    addresses: Annotated[list[Annotated[str, msgspec.Meta(max_length=300)]], msgspec.Meta(max_length=8)]
    capacity: _Count | None = None
    is_first: bool = False
    """Whether this process greets for the first time: then a machine that was drained feeds again."""
    generation: _Number = 0
    frontier: _Number = 0
    revocations: _Number = 0
    subscriptions: Annotated[list[_Name], msgspec.Meta(max_length=100_000)] = []
    in_parts: bool = False


class More(msgspec.Struct, frozen=True):
    """How are my subscriptions fed that come after one, by their names?"""

    after: _Name


class Subscribe(msgspec.Struct, frozen=True):
    """Make a subscription of mine."""

    subscription: _Name
    pattern: Annotated[str, msgspec.Meta(max_length=100_000)]
    columns: Annotated[bytes, msgspec.Meta(max_length=100_000)]
    start: str | _Number = "now"
    limit: _Count | None = None

    def checked(self) -> Pattern:
        """Return the pattern, or say what is wrong."""
        if isinstance(self.start, str) and self.start not in ("now", "earliest"):
            raise NoAnswer(f"start {self.start[:50]!r}: expected now, earliest, or a number")
        pattern = Pattern.parse(self.pattern)
        if pattern.contradiction:
            raise NoAnswer(f"this pattern never matches: {pattern.contradiction}")
        try:
            chosen = read_pattern(pattern.text, self.columns).selection
        except (msgspec.MsgspecError, ValueError) as exc:
            raise NoAnswer(f"the columns: {exc}") from None
        if any(not 0 <= node < len(pattern.nodes) for node, _ in chosen):
            raise NoAnswer("the columns name nodes that the pattern does not have")
        return pattern


class Publish(msgspec.Struct, frozen=True):
    """Publish a document of mine."""

    name: Annotated[str, msgspec.Meta(max_length=1000)]
    key: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    body: bytes


class Of(msgspec.Struct, frozen=True):
    """Something about one subscription."""

    subscription: _Name


class Drain(msgspec.Struct, frozen=True):
    """Let me feed nobody, or (``is_over``) feed again."""

    is_over: bool = False


class Trace(msgspec.Struct, frozen=True):
    """What became of a document for a subscription?"""

    subscription: _Name
    document: _Number


class Renew(msgspec.Struct, frozen=True):
    """Give me my next certificate, for this key: it has signed the proof."""

    public_key: Annotated[bytes, msgspec.Meta(min_length=PUBLIC_KEY_BYTES, max_length=PUBLIC_KEY_BYTES)]
    proof: Annotated[bytes, msgspec.Meta(min_length=SIGNATURE_BYTES, max_length=SIGNATURE_BYTES)]


class Numbers(msgspec.Struct, frozen=True):
    """What numbers do these patterns have, which my relay matches?"""

    patterns: Annotated[
        list[Annotated[str, msgspec.Meta(max_length=100_000)]], msgspec.Meta(max_length=MOST_AT_ONCE)
    ]


class Where(msgspec.Struct, frozen=True):
    """Where is a machine?"""

    site: _Name


Request = TypeVar("Request", bound=msgspec.Struct)


def read(body: bytes, kind: type[Request]) -> Request:
    """Read a request; ``NoAnswer`` says what is wrong with it."""
    try:
        found: Any = msgspec.msgpack.decode(body, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as exc:  # text that is no UTF-8 too
        raise NoAnswer(f"this is no {kind.__name__.lower()}: {exc}") from None
    return found  # type: ignore[no-any-return]  # msgspec has checked it

"""Declared spaces: each with its generation, so that one that is made again, or brought back from a backup, is
another one.

A source that was restored does not know which zones it has granted since the backup, and with which versions of
the map; machines that know would take its grants for old ones, or old ones for its. The generation is part of the
key that frames carry: what belongs to another one is nobody's concern, and machines begin anew with the map. Their
subscriptions they announce again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec

from peer.daemon.questions import NoAnswer
from rewriting.errors import RewritingError
from rewriting.filters import Space

_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True)
class Declared:
    """A space as it was declared; ``generation``: when, or when it was restored, in nanoseconds since 1970;
    ``begins``: all its messages lie above this number of the log, or are in the backup.

    >>> from rewriting.filters import Dimension
    >>> one = Declared(Space("market", (Dimension("price", low=0, high=9),)), 17)
    >>> one.key, decode_declared(encode_declared(one)) == one
    ('market@17', True)
    """

    space: Space
    generation: int
    begins: int = 0

    @property
    def key(self) -> str:
        """What frames, records and subscriptions call it."""
        return f"{self.space.name}@{self.generation}"

    def restored(self, moment_ns: int, begins: int) -> Declared:
        """Return the same space after a restore."""
        return replace(self, generation=max(moment_ns, self.generation + 1), begins=begins)


def name_of(key: str) -> str:
    """Return the name of the space that a key is of.

    >>> name_of("market@17")
    'market'
    """
    return key.partition("@")[0]


def encode_declared(declared: Declared) -> bytes:
    """Write a declared space."""
    return msgspec.json.encode(declared)


def decode_declared(body: bytes) -> Declared:
    """Read a declared space; ``NoAnswer`` if it is none."""
    return _decoded(body, Declared)


def decode_space(body: bytes) -> Space:
    """Read a space that is to be declared; ``NoAnswer`` if it is none."""
    return _decoded(body, Space)


def _decoded(body: bytes, kind: type[_Kind]) -> _Kind:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError, RewritingError) as exc:
        raise NoAnswer(f"this is no space: {exc}") from exc

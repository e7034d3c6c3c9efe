"""Declared spaces: each with its generation, so that one that is made again after it was lost is another one.

A source that was restored without its spaces, and declares one of the same name, counts from 1 again; machines
that know the earlier one would take its messages for old. The generation is part of the key that frames carry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import msgspec

from peer.daemon.questions import NoAnswer
from rewriting.errors import RewritingError
from rewriting.filters import Space

_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True)
class Declared:
    """A space as it was declared; ``generation``: when, in nanoseconds since 1970.

    >>> from rewriting.filters import Dimension
    >>> one = Declared(Space("market", (Dimension("price", low=0, high=9),)), 17)
    >>> one.key, decode_declared(encode_declared(one)) == one
    ('market@17', True)
    """

    space: Space
    generation: int

    @property
    def key(self) -> str:
        """What frames, records and subscriptions call it."""
        return f"{self.space.name}@{self.generation}"


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
    except (msgspec.MsgspecError, RewritingError) as exc:
        raise NoAnswer(f"this is no space: {exc}") from exc

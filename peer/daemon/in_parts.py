"""Signed configurations in parts: a machine may have more than one frame can carry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overlay.wire import frames

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def in_parts(bodies: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Cut a list of bytes into lists that fit a frame each, with room for what else is said; at least one each.

    >>> [len(part) for part in in_parts([bytes(1 << 20)] * 5)]
    [2, 2, 1]
    """
    # Larger: fewer answers to wait for; smaller: the other side takes in less before others have their turn.
    most = frames.MAX_FRAME // 8
    part: list[bytes] = []
    size = 0
    for body in bodies:
        if part and size + len(body) > most:
            yield part
            part, size = [], 0
        part.append(body)
        size += len(body)
    if part:
        yield part

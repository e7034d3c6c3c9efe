"""Cutting, joining and looking at encoded columns, each in one compiled call: the quick way for what is usual.

Each returns None where it is not (names, values to be filtered or made, anything malformed): then ``columns`` and
``execution`` take the same steps one by one, and say what is wrong. Nothing is decided here that they would
decide otherwise, to the byte.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final

import numpy as np

from rewriting import at_once_kernels as kernels
from rewriting.columns import LIMITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rewriting.execution import Link, Rewriting

_LIMITS: Final = np.array(
    [LIMITS.max_level, LIMITS.max_names, LIMITS.max_lists, LIMITS.max_positions, LIMITS.max_bytes], np.int64
)


def holds(link: Link, data: bytes) -> bool | None:
    """Say whether columns hold just what a link carries, and not nothing."""
    if not link.is_simple or len(data) > LIMITS.max_bytes:
        return None
    texts = np.zeros((2, 2), np.int64)
    code = kernels.look(np.frombuffer(data, np.uint8), _LIMITS, link.carried, texts)
    return None if _is_unusual(code, data, texts) else code == kernels.MADE


def cut(link: Link, whole: Link, data: bytes) -> bytes | None:
    """Make what a link carries from whole results; ``whole`` is the link that carries those. Empty for nothing."""
    if not link.is_simple or not whole.is_simple or len(data) > LIMITS.max_bytes:
        return None
    texts = np.zeros((2, 2), np.int64)
    code, found = kernels.cut(np.frombuffer(data, np.uint8), _LIMITS, whole.carried, link.carried, texts)
    if _is_unusual(code, data, texts):
        return None
    return found.tobytes() if code == kernels.MADE else b""


def join(rewriting: Rewriting, inputs: Sequence[bytes]) -> bytes | None:
    """Compute the whole results of a query from what its links carry, in their order. Empty for nothing."""
    carried, last, fixed, more = rewriting.as_arrays
    if len(inputs) != len(last) or max(map(len, inputs)) > LIMITS.max_bytes:
        return None
    first = np.array([0, *accumulate(map(len, inputs))])
    data, texts = b"".join((*inputs, more)), np.zeros((2 * len(inputs), 2), np.int64)
    query = rewriting.query
    code, found = kernels.join(
        np.frombuffer(data, np.uint8), first, _LIMITS, carried, last, query.parents, query.axes, fixed, texts
    )
    if _is_unusual(code, data, texts):
        return None
    return found.tobytes() if code == kernels.MADE else b""


def _is_unusual(code: int, data: bytes, texts: NDArray[np.int64]) -> bool:
    """Say whether a call came to no answer, or to one from texts that are not UTF-8."""
    try:
        for start, end in texts.tolist():
            data[start:end].decode()
    except UnicodeDecodeError:
        return True
    return code == kernels.UNUSUAL

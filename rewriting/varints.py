"""Whole numbers of one to nine bytes, seven bits each, the lowest first: most of ours fit into one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from rewriting.kernels import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_BYTES: Final = 9


def encode(numbers: NDArray[np.integer]) -> bytes:
    """Write numbers from 0 to 2**63 - 1 one after the other.

    >>> encode(np.array([1, 300])).hex()
    '01ac02'
    """
    out = np.empty(_MOST_BYTES * len(numbers), np.uint8)
    return out[: _encode(numbers.astype(np.int64), out)].tobytes()


@kernel
def _encode(numbers: NDArray[np.int64], out: NDArray[np.uint8]) -> int:
    at = 0
    for number in numbers:
        while number >= 128:
            out[at] = number & 127 | 128
            number >>= 7
            at += 1
        out[at] = number
        at += 1
    return at


@kernel
def decode(data: NDArray[np.uint8], at: int, out: NDArray[np.int64]) -> int:
    """Fill ``out`` from ``data[at:]``; return where the rest begins, -1 if data end or a number is wrong."""
    for i in range(out.size):
        number, shift = np.int64(0), 0
        while True:
            if at >= data.size or shift >= 7 * _MOST_BYTES:
                return -1
            byte = np.int64(data[at])
            at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        if number < 0 or (byte == 0 and shift > 7):
            return -1  # a number has one spelling
        out[i] = number
    return at

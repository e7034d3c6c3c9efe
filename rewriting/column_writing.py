"""Columns to bytes: one compiled pass that counts, one that writes into a buffer of that size."""

from __future__ import annotations

from typing import Any, Final

from rewriting.column_reading import ALL, BITMAP, DIFFERENCES, differences_size, number_size
from rewriting.kernels import kernel

VERSION: Final = 1


@kernel
def _put(out: Any, at: int, number: int) -> int:
    """Write a varint if there is room (there is none while counting) and return where the next byte goes."""
    if not out.size:
        return at + number_size(number)
    while number >= 128:
        out[at] = number & 127 | 128
        number >>= 7
        at += 1
    out[at] = number
    return at + 1


@kernel
def _texts(out: Any, at: int, slices: Any, payload: Any) -> int:
    """Write how many texts there are; if any, their lengths and all bytes."""
    given = 0
    for i in range(slices.shape[1]):
        given += slices[0, i] >= 0
    at = _put(out, at, given)
    if given == 0:
        return at
    for i in range(slices.shape[1]):
        at = _put(out, at, slices[1, i] - slices[0, i] + 1 if slices[0, i] >= 0 else 0)
    for i in range(slices.shape[1]):
        if slices[0, i] >= 0:
            if out.size:
                out[at : at + slices[1, i] - slices[0, i]] = payload[slices[0, i] : slices[1, i]]
            at += slices[1, i] - slices[0, i]
    return at


@kernel
def _list(out: Any, at: int, count: int, positions: Any) -> int:
    """Write positions among ``count`` nodes in the shortest way."""
    if positions.size == count:
        return _put(out, at, ALL)
    width = (count + 7) // 8
    if width <= differences_size(positions):
        at = _put(out, at, BITMAP)
        if out.size:
            out[at : at + width] = 0
            for position in positions:
                out[at + position // 8] |= 128 >> (position % 8)
        return at + width
    at = _put(out, at, DIFFERENCES)
    at = _put(out, at, positions.size)
    last = -1
    for position in positions:
        at = _put(out, at, position - last - 1)
        last = position
    return at


@kernel
def write(
    out: Any, pre: Any, span: Any, level: Any, label: Any, names: Any, vals: Any, conts: Any, payload: Any,
    numbers: Any, ends: Any, flat: Any,
) -> int:  # fmt: skip
    """Write columns into ``out``, or count their bytes if it is empty.

    ``names``: the dictionary as it is written. List ``i`` is of query node ``numbers[i]``, and ends in ``flat`` at
    ``ends[i]``.
    """
    at = _put(out, 0, VERSION)
    at = _put(out, at, pre.size)
    last = -1
    for number in pre:
        at = _put(out, at, number - last - 1)
        last = number
    for number in span:
        at = _put(out, at, number)
    for number in level:
        at = _put(out, at, number)
    if out.size:
        out[at : at + names.size] = names
    at += names.size
    if names.size > 1:
        for number in label:
            at = _put(out, at, number + 1)
    at = _texts(out, at, vals, payload)
    at = _texts(out, at, conts, payload)
    at = _put(out, at, numbers.size)
    begin = 0
    for i in range(numbers.size):
        at = _put(out, at, numbers[i])
        at = _list(out, at, pre.size, flat[begin : ends[i]])
        begin = ends[i]
    return at

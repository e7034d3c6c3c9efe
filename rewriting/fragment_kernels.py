"""Compiled work on fragments: taking nodes out of one, and uniting several."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rewriting.kernels import kernel

NAME: Final = 2
VAL: Final = 4
CONT: Final = 8
"""What is wanted of a node besides its ID, as bits."""
UNKNOWN: Final = -1
TO_MAKE: Final = -2
"""In place of a slice: the text is wanted, and has to be made."""


@kernel
def enclose(pre: Any, span: Any, forest: Any) -> None:
    """Find for each node the nearest one above, and how many are below."""
    above = -1
    for i in range(pre.size):
        while above >= 0 and pre[above] + span[above] < pre[i]:
            above = forest[0, above]
        forest[0, i] = above
        above = i
    for i in range(pre.size - 1, -1, -1):
        if forest[0, i] >= 0:
            forest[1, forest[0, i]] += forest[1, i] + 1


@kernel
def select(count: int, flat: Any, ends: Any, wants: Any) -> Any:
    """Return the nodes (of ``count``) that stand in some list, ascending, and what any list wants of each.

    List ``i`` ends in ``flat`` at ``ends[i]``; there, nodes become positions among those returned.
    """
    marks = np.zeros(count, np.uint8)
    begin, kept = 0, 0
    for i in range(ends.size):
        for k in range(begin, ends[i]):
            kept += marks[flat[k]] == 0
            marks[flat[k]] |= wants[i] | 1
        begin = ends[i]
    positions, wanted, at = np.empty(kept, np.int32), np.empty(kept, np.uint8), np.empty(count, np.int32)
    kept = 0
    for node in range(count):
        if marks[node]:
            positions[kept], wanted[kept], at[node] = node, marks[node], kept
            kept += 1
    for k in range(flat.size):
        flat[k] = at[flat[k]]
    return positions, wanted


@kernel
def copy(
    positions: Any, wanted: Any, pre: Any, span: Any, level: Any, label: Any, vals: Any, conts: Any, ints: Any,
    slices: Any,
) -> int:  # fmt: skip
    """Copy nodes with what is wanted of them; return how many texts have to be made (see ``TO_MAKE``).

    A value is left out where the content goes along, for it can be read from there.
    """
    to_make = 0
    for i in range(positions.size):
        node = positions[i]
        ints[0, i], ints[1, i], ints[2, i] = pre[node], span[node], level[node]
        ints[3, i] = label[node] if wanted[i] & NAME else UNKNOWN
        slices[:, i] = UNKNOWN
        if wanted[i] & CONT:
            slices[2, i], slices[3, i] = conts[0, node], conts[1, node]
            if conts[0, node] < 0:
                slices[2, i] = TO_MAKE
                to_make += 1
        elif wanted[i] & VAL:
            slices[0, i], slices[1, i] = vals[0, node], vals[1, node]
            if vals[0, node] < 0:
                slices[0, i] = TO_MAKE
                to_make += 1
    return to_make


@kernel
def lacking(flat: Any, ends: Any, wants: Any, label: Any, vals: Any, conts: Any) -> int:
    """Return the first list that is empty or has a node without what is wanted of it; -1 if there is none."""
    begin = 0
    for i in range(ends.size):
        if begin == ends[i]:
            return i
        for k in range(begin, ends[i]):
            node = flat[k]
            has_cont = conts[0, node] >= 0
            if wants[i] & CONT and not has_cont:
                return i
            if wants[i] & VAL and not has_cont and vals[0, node] < 0:
                return i
            if wants[i] & NAME and label[node] < 0:
                return i
        begin = ends[i]
    return -1


@kernel
def unite(
    first: Any, shifts: Any, pre: Any, span: Any, level: Any, label: Any, vals: Any, conts: Any, ints: Any,
    slices: Any, at: Any,
) -> int:  # fmt: skip
    """Merge fragments that stand behind each other, number ``f`` from ``first[f]`` on; return how many nodes.

    Of every node what any knows; ``at`` says where each went. ``shifts``: where the payload of each begins. If
    they do not agree on a node, return -1 less the number of the one that is the first to differ.
    """
    cursor = first[:-1].copy()
    count = 0
    while True:
        lowest = np.int64(1) << 40
        for f in range(cursor.size):
            if cursor[f] < first[f + 1] and pre[cursor[f]] < lowest:
                lowest = np.int64(pre[cursor[f]])
        if lowest == np.int64(1) << 40:
            return count
        ints[0, count], ints[1, count], ints[3, count], slices[:, count] = lowest, UNKNOWN, UNKNOWN, UNKNOWN
        for f in range(cursor.size):
            k = cursor[f]
            if k == first[f + 1] or pre[k] != lowest:
                continue
            if ints[1, count] >= 0 and (ints[1, count] != span[k] or ints[2, count] != level[k]):
                return -1 - f
            ints[1, count], ints[2, count] = span[k], level[k]
            if label[k] >= 0:
                ints[3, count] = label[k]
            if vals[0, k] >= 0:
                slices[0, count], slices[1, count] = vals[0, k] + shifts[f], vals[1, k] + shifts[f]
            if conts[0, k] >= 0:
                slices[2, count], slices[3, count] = conts[0, k] + shifts[f], conts[1, k] + shifts[f]
            at[k] = count
            cursor[f] += 1
        count += 1

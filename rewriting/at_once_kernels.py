"""Bytes to bytes in one compiled call: what a link is to carry, and what a query makes of what came.

What ``columns`` and ``execution`` do step by step, put together from the same compiled parts, for what is nearly
always the case. A call answers with a code: ``MADE``; ``NOTHING``, the document does not match; or ``UNUSUAL`` for
whatever is wrong or takes more than these parts, and then nothing was decided: the steps are to be taken one by
one. Whether texts are UTF-8 is left to the caller, who is told where they stand.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rewriting import column_reading as reading
from rewriting.column_writing import VERSION, write
from rewriting.fragment_kernels import UNKNOWN, copy, enclose, lacking, select, unite
from rewriting.kernels import kernel
from xmlmatch.semijoin import reduce_lists

UNUSUAL: Final = -1
NOTHING: Final = 0
MADE: Final = 1
MOST_LEVEL, MOST_NAMES, MOST_LISTS, MOST_POSITIONS, MOST_BYTES = range(5)
"""Entries of the limits."""
QUERY, VIEW, WANTS = range(3)
"""Rows of what a link carries, list by list: for which query node, of which node of the view, what of it."""


@kernel
def count_nodes(data: Any) -> tuple[int, int]:
    """Return how many nodes columns have, and where they begin; -1 if that cannot be."""
    if data.size == 2 and data[0] == VERSION and data[1] == 0:
        return 0, 2
    if data.size == 0 or data[0] != VERSION:
        return -1, 0
    count, at = reading.read_number(data, 1)
    return (count, at) if count > 0 and 3 * count <= data.size - at else (-1, at)


@kernel
def read_columns(
    data: Any, count: int, at: int, limits: Any, carried: Any, ints: Any, slices: Any, texts: Any
) -> Any:
    """Fill the nodes of columns that hold just what a link carries, and where their texts stand; return whether
    they do, the lists behind each other, and where each ends."""
    state, ends = np.zeros(reading.STATE, np.int64), np.zeros(carried.shape[1], np.int64)
    state[reading.AT] = at
    names = np.empty((3, min(count, limits[MOST_NAMES])), np.int64)
    reading.read_nodes(data, limits[MOST_LEVEL], limits[MOST_NAMES], ints, slices, names, state)
    if state[reading.CODE] != reading.FINE or state[reading.NAMES] > 0:
        return False, np.empty(0, np.int32), ends
    texts[0, 0], texts[0, 1] = state[reading.VALS], state[reading.VALS_END]
    texts[1, 0], texts[1, 1] = state[reading.CONTS], state[reading.CONTS_END]
    left = data.size - state[reading.AT]
    lists = np.empty((3, min(limits[MOST_LISTS], left // 2)), np.int64)
    written = np.empty(min(8 * left, limits[MOST_POSITIONS]), np.int32)
    found = reading.read_lists(data, count, limits[MOST_LISTS], lists, written, state)
    is_read = state[reading.CODE] == reading.FINE and state[reading.AT] == data.size
    if not is_read or found != carried.shape[1]:
        return False, np.empty(0, np.int32), ends
    total = 0
    for i in range(found):
        if lists[0, i] != carried[QUERY, i]:
            return False, np.empty(0, np.int32), ends
        total += count if lists[2, i] < 0 else lists[2, i] - lists[1, i]
        ends[i] = total
    flat, k = np.empty(total, np.int32), 0
    for i in range(found):
        if lists[2, i] < 0:
            for node in range(count):
                flat[k + node] = node
        else:
            flat[k : ends[i]] = written[lists[1, i] : lists[2, i]]
        k = ends[i]
    wants = carried[WANTS].astype(np.uint8)
    return lacking(flat, ends, wants, ints[reading.LABEL], slices[:2], slices[2:]) < 0, flat, ends


@kernel
def _written(ints: Any, slices: Any, payload: Any, numbers: Any, ends: Any, flat: Any, limits: Any) -> Any:
    """Write columns without names, unless they are too large."""
    no_names, pre, span, level, label = np.zeros(1, np.uint8), ints[0], ints[1], ints[2], ints[3]
    vals, conts, none = slices[:2], slices[2:], np.empty(0, np.uint8)
    size = write(none, pre, span, level, label, no_names, vals, conts, payload, numbers, ends, flat)
    if size > limits[MOST_BYTES]:
        return UNUSUAL, none
    out = np.empty(size, np.uint8)
    write(out, pre, span, level, label, no_names, vals, conts, payload, numbers, ends, flat)
    return MADE, out


@kernel
def look(data: Any, limits: Any, carried: Any, texts: Any) -> int:
    """Say whether columns hold just what a link carries."""
    count, at = count_nodes(data)
    if count <= 0:
        return UNUSUAL if count < 0 else NOTHING
    ints, slices = np.empty((6, count), np.int32), np.empty((4, count), np.int64)
    is_right, _, _ = read_columns(data, count, at, limits, carried, ints, slices, texts)
    return MADE if is_right else UNUSUAL


@kernel
def cut(data: Any, limits: Any, whole: Any, carried: Any, texts: Any) -> Any:
    """Make what a link carries from whole results. ``whole`` is what those carry."""
    nothing = np.empty(0, np.uint8)
    count, at = count_nodes(data)
    if count <= 0:
        return (UNUSUAL if count < 0 else NOTHING), nothing
    ints, slices = np.empty((6, count), np.int32), np.empty((4, count), np.int64)
    is_right, own, own_ends = read_columns(data, count, at, limits, whole, ints, slices, texts)
    if not is_right:
        return UNUSUAL, nothing
    ends, total = np.empty(carried.shape[1], np.int64), 0
    for i in range(ends.size):
        view = carried[VIEW, i]
        begin = own_ends[view - 1] if view else 0
        total += own_ends[view] - begin
        ends[i] = total
    flat, k = np.empty(total, np.int32), 0
    for i in range(ends.size):
        view = carried[VIEW, i]
        begin = own_ends[view - 1] if view else 0
        flat[k : ends[i]] = own[begin : own_ends[view]]
        k = ends[i]
    positions, wanted = select(count, flat, ends, carried[WANTS].astype(np.uint8))
    kept, texts_kept = np.empty((4, positions.size), np.int32), np.empty((4, positions.size), np.int64)
    pre, span, level, label = ints[reading.PRE], ints[reading.SPAN], ints[reading.LEVEL], ints[reading.LABEL]
    if copy(positions, wanted, pre, span, level, label, slices[:2], slices[2:], kept, texts_kept):
        return UNUSUAL, nothing
    return _written(kept, texts_kept, data, carried[QUERY], ends, flat, limits)


@kernel
def _read_links(
    data: Any, first: Any, limits: Any, carried: Any, last: Any, nodes: Any, starts: Any, texts: Any
) -> Any:
    """Read what came over all links: whether it is right, the nodes behind each other, the lists of all, and by
    query node where its list stands there and how long it is."""
    ints, slices = np.empty((4, nodes[-1]), np.int32), np.empty((4, nodes[-1]), np.int64)
    lists, total, begin = np.empty(0, np.int32), 0, 0
    places = np.zeros((2, carried.shape[1]), np.int64)
    for f in range(last.size):
        count = nodes[f + 1] - nodes[f]
        own_ints, own_slices = np.empty((6, count), np.int32), np.empty((4, count), np.int64)
        own, own_texts = carried[:, begin : last[f]].copy(), texts[2 * f : 2 * f + 2]
        came = data[first[f] : first[f + 1]]
        is_right, flat, ends = read_columns(came, count, starts[f], limits, own, own_ints, own_slices, own_texts)
        if not is_right:
            return False, ints, slices, lists, places
        own_texts += first[f]
        ints[:, nodes[f] : nodes[f + 1]] = own_ints[:4]
        slices[:, nodes[f] : nodes[f + 1]] = own_slices
        k = 0
        for i in range(ends.size):
            places[0, own[QUERY, i]], places[1, own[QUERY, i]] = total + k, ends[i] - k
            k = ends[i]
        longer = np.empty(total + flat.size, np.int32)
        longer[:total] = lists
        for i in range(flat.size):
            longer[total + i] = flat[i] + nodes[f]
        lists, total, begin = longer, total + flat.size, last[f]
    return True, ints, slices, lists, places


@kernel
def join(
    data: Any, first: Any, limits: Any, carried: Any, last: Any, parents: Any, axes: Any, fixed: Any, texts: Any
) -> Any:
    """Compute a query's whole results from what its links carry.

    ``data``: what came over each link, behind each other from ``first`` on, and then the texts that the query
    fixes. Link ``f`` carries what stands in ``carried`` up to ``last[f]``. ``fixed``: query nodes whose value is
    known, and where it stands behind what came.
    """
    nothing, links = np.empty(0, np.uint8), last.size
    starts, nodes = np.empty(links, np.int64), np.zeros(links + 1, np.int64)
    for f in range(links):
        count, starts[f] = count_nodes(data[first[f] : first[f + 1]])
        if count <= 0:
            return UNUSUAL, nothing
        nodes[f + 1] = nodes[f] + count
    is_right, came, slices, lists, places = _read_links(data, first, limits, carried, last, nodes, starts, texts)
    if not is_right or carried.shape[1] != parents.size or places[1].min() == 0:
        return UNUSUAL, nothing
    ints, own = np.empty((4, nodes[links]), np.int32), np.empty((4, nodes[links]), np.int64)
    at = np.empty(nodes[links], np.int32)
    count = unite(nodes, first, came[0], came[1], came[2], came[3], slices[:2], slices[2:], ints, own, at)
    if count < 0:
        return UNUSUAL, nothing
    kept, begins, lengths = np.empty(lists.size, np.int32), np.zeros(parents.size + 1, np.int64), places[1].copy()
    for n in range(parents.size):
        for i in range(lengths[n]):
            kept[begins[n] + i] = at[lists[places[0, n] + i]]
        begins[n + 1] = begins[n] + lengths[n]
    pre, span, level = ints[0, :count].copy(), ints[1, :count].copy(), ints[2, :count].copy()
    forest = np.zeros((2, count), np.int32)
    enclose(pre, span, forest)
    reduce_lists(parents, axes, forest[0], forest[1], level, kept, begins, lengths)
    if lengths[0] == 0:
        return NOTHING, nothing
    for i in range(fixed.shape[1]):
        for k in range(begins[fixed[0, i]], begins[fixed[0, i]] + lengths[fixed[0, i]]):
            own[0, kept[k]], own[1, kept[k]] = first[links] + fixed[1, i], first[links] + fixed[2, i]
    return _own(pre, span, level, own, kept, begins, lengths, data, limits)


@kernel
def _own(
    pre: Any, span: Any, level: Any, slices: Any, kept: Any, starts: Any, lengths: Any, data: Any, limits: Any
) -> Any:
    """Write the nodes that a query keeps."""
    ends, total = np.empty(lengths.size, np.int64), 0
    for n in range(lengths.size):
        total += lengths[n]
        ends[n] = total
    flat, k = np.empty(total, np.int32), 0
    for n in range(lengths.size):
        flat[k : ends[n]] = kept[starts[n] : starts[n] + lengths[n]]
        k = ends[n]
    own, _ = select(pre.size, flat, ends, np.zeros(lengths.size, np.uint8))
    ints, texts = np.empty((4, own.size), np.int32), np.empty((4, own.size), np.int64)
    for i in range(own.size):
        node = own[i]
        ints[0, i], ints[1, i], ints[2, i], ints[3, i] = pre[node], span[node], level[node], UNKNOWN
        texts[:, i] = slices[:, node]
    return _written(ints, texts, data, np.arange(lengths.size), ends, flat, limits)

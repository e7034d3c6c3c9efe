"""All views in one trie, and every view that embeds in a query found by one walk of it.

Theory of operation. A view is the sequence of its nodes in canonical pre-order, each with its label, its axis,
which earlier node it hangs from, and its condition. Views with equal beginnings share a path of the trie. The
walk keeps, for each node of the path, a mask: the query nodes where the sub-pattern seen so far can stand. One
more node narrows the masks of those above it; a mask that becomes empty ends the whole subtree of the trie, and
where even the label does not fit, all siblings with that label. So the work follows what is found, not the
number of pairs. Where a view ends, one pass downwards leaves in its masks exactly its cover.

Siblings stand in the order: the node they hang from, label, ``//`` before ``/``, condition. The trie holds views
and takes queries of up to 64 nodes; ``graph`` sends larger ones the slow way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rewriting.conditions import NO_CONDITION, implied
from rewriting.kernels import MASK_BITS, kernel, lowest
from rewriting.table import ANY_LABEL, AXIS, CONDITION, LABEL, PARENT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rewriting.table import PatternTable

# Fields of a trie node, 32 bytes, so that meeting one touches one line of the cache. PLACE packs depth, 1 + the
# position it hangs from, and the axis, a byte each; VIEWS and VIEWS_END bound the views that end there.
T_LABEL, T_PLACE, T_CONDITION, T_SKIP, T_JUMP, T_AXIS_JUMP, T_VIEWS, T_VIEWS_END, T_FIELDS = range(9)
T_DEPTH: Final = 0xFF
_LINE: Final = 64
# Rows of a query's masks, by query node; the last holds single masks.
Q_BELOW, Q_CHILDREN, Q_ABOVE, Q_PARENT, Q_WHOLE, Q_ROWS = range(6)
Q_ALL, Q_ROOT, Q_CONDITIONED, Q_LABELS = range(4)


@dataclass(frozen=True, slots=True)
class Trie:
    """``trie`` holds its nodes in depth-first order, ``below`` a bit for each label of their children.

    Views are numbered by *place*: in the order of the trie, so that a walk meets them as neighbours. ``slots`` has
    the slot in the table, ``nodes`` and ``first`` a copy of its rows.
    """

    trie: NDArray[np.int32]
    below: NDArray[np.int64]
    slots: NDArray[np.int64]
    nodes: NDArray[np.int32]
    first: NDArray[np.int64]

    @classmethod
    def build(cls, table: PatternTable, slots: NDArray[np.int64]) -> Trie:
        """Make the trie of these slots, each of at most 64 nodes."""
        order = slots[np.lexsort(_tokens(table, slots))] if len(slots) else slots
        first, nodes = _copied(table.nodes, table.first, order)
        trie = _aligned_rows(_measure(nodes, first))
        below = np.zeros(len(trie), np.int64)
        _fill(nodes, first, trie, below)
        return cls(trie, below, order, nodes, first)

    @property
    def terminals(self) -> NDArray[np.int64]:
        """The trie nodes where views end."""
        return np.flatnonzero(self.trie[:, T_VIEWS_END] > self.trie[:, T_VIEWS])


def _aligned_rows(rows: int) -> NDArray[np.int32]:
    """Make room for trie nodes none of which straddles two lines of the cache."""
    room = np.zeros(rows * T_FIELDS + _LINE // 4, np.int32)
    skip = -room.ctypes.data % _LINE // 4
    return room[skip : skip + rows * T_FIELDS].reshape(rows, T_FIELDS)


def _tokens(table: PatternTable, slots: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Pack each node into a number that sorts as siblings do; one column per depth, the last depth first."""
    first, nodes = table.first, table.nodes
    lengths = first[slots + 1] - first[slots]
    columns = []
    for depth in range(int(lengths.max()) - 1, -1, -1):
        rows = nodes[np.minimum(first[slots] + depth, len(nodes) - 1)].astype(np.int64)
        token = (rows[:, PARENT] + 1) << 56 | rows[:, LABEL] << 32 | (1 - rows[:, AXIS]) << 31 | rows[:, CONDITION]
        columns.append(np.where(depth < lengths, token, -1))
    return columns


@kernel
def _copied(nodes: Any, first: Any, order: Any) -> Any:
    """Copy the rows of patterns in another order."""
    starts = np.zeros(order.size + 1, np.int64)
    for i in range(order.size):
        starts[i + 1] = starts[i] + first[order[i] + 1] - first[order[i]]
    rows = np.empty((starts[-1], nodes.shape[1]), nodes.dtype)
    for i in range(order.size):
        for k in range(starts[i + 1] - starts[i]):
            for f in range(nodes.shape[1]):
                rows[starts[i] + k, f] = nodes[first[order[i]] + k, f]
    return starts, rows


@kernel
def _shared(nodes: Any, first: Any, a: int, b: int) -> Any:
    """How many first nodes two views have in common, as far as the trie tells nodes apart."""
    n = min(first[a + 1] - first[a], first[b + 1] - first[b])
    for i in range(n):
        for f in (LABEL, AXIS, PARENT, CONDITION):
            if nodes[first[a] + i, f] != nodes[first[b] + i, f]:
                return i
    return n


@kernel
def _measure(nodes: Any, first: Any) -> Any:
    """Count the nodes of the trie."""
    size = nodes.shape[0]
    for view in range(1, first.size - 1):
        size -= _shared(nodes, first, view - 1, view)
    return size


@kernel
def label_bit(label: int) -> Any:
    """Return a mask with the bit that stands for a label, among others."""
    return np.int64(1) << np.int64(label & 63)


@kernel
def _fill(nodes: Any, first: Any, trie: Any, below: Any) -> None:
    path = np.zeros(MASK_BITS + 1, np.int64)
    at, depth = 0, 0
    for view in range(first.size - 1):
        shared = _shared(nodes, first, view - 1, view) if view > 0 else 0
        length = first[view + 1] - first[view]
        for d in range(shared, depth):
            trie[path[d], T_SKIP] = at
        for d in range(shared, length):
            row = first[view] + d
            trie[at, T_LABEL] = nodes[row, LABEL]
            trie[at, T_PLACE] = d | (nodes[row, PARENT] + 1) << 8 | nodes[row, AXIS] << 16
            trie[at, T_CONDITION] = nodes[row, CONDITION]
            trie[at, T_VIEWS] = view
            trie[at, T_VIEWS_END] = view
            path[d] = at
            if d > 0:
                below[path[d - 1]] |= label_bit(nodes[row, LABEL])
            at += 1
        trie[path[length - 1], T_VIEWS_END] = view + 1
        depth = length
    for d in range(depth):
        trie[path[d], T_SKIP] = at
    for i in range(at - 1, -1, -1):
        sibling = trie[i, T_SKIP]
        trie[i, T_JUMP] = sibling
        trie[i, T_AXIS_JUMP] = sibling
        if sibling < at and trie[sibling, T_LABEL] == trie[i, T_LABEL]:
            if (trie[sibling, T_PLACE] ^ trie[i, T_PLACE]) & 0xFFFF == 0:
                trie[i, T_JUMP] = trie[sibling, T_JUMP]
                if trie[sibling, T_PLACE] == trie[i, T_PLACE]:
                    trie[i, T_AXIS_JUMP] = trie[sibling, T_AXIS_JUMP]


@kernel
def query_masks(nodes: Any, first: int, size: int, attribute: Any, labels: Any, masks: Any) -> None:
    """Describe a query by masks, and set ``labels`` (by label, the query nodes with it), which must be 0."""
    everything, elements, conditioned, named = np.int64(0), np.int64(0), np.int64(0), label_bit(ANY_LABEL)
    for i in range(size):
        row = first + i
        bit = np.int64(1) << np.int64(i)
        masks[Q_BELOW, i] = 0
        masks[Q_CHILDREN, i] = 0
        masks[Q_ABOVE, i] = 0
        masks[Q_PARENT, i] = 0
        parent = nodes[row, PARENT]
        if parent >= 0:
            masks[Q_ABOVE, i] = masks[Q_ABOVE, parent] | np.int64(1) << np.int64(parent)
            if nodes[row, AXIS] == 0:
                masks[Q_PARENT, i] = np.int64(1) << np.int64(parent)
                masks[Q_CHILDREN, parent] |= bit
        everything |= bit
        if not attribute[nodes[row, LABEL]]:
            elements |= bit
        if nodes[row, CONDITION] != NO_CONDITION:
            conditioned |= bit
        labels[nodes[row, LABEL]] |= bit
        named |= label_bit(nodes[row, LABEL])
    for i in range(size - 1, 0, -1):
        parent = nodes[first + i, PARENT]
        masks[Q_BELOW, parent] |= masks[Q_BELOW, i] | np.int64(1) << np.int64(i)
    labels[ANY_LABEL] = elements
    masks[Q_WHOLE, Q_ALL] = everything
    masks[Q_WHOLE, Q_ROOT] = 1 if nodes[first, AXIS] == 0 else 0
    masks[Q_WHOLE, Q_CONDITIONED] = conditioned
    masks[Q_WHOLE, Q_LABELS] = named


@kernel
def forget_labels(nodes: Any, first: int, size: int, labels: Any) -> None:
    """Set ``labels`` back to 0."""
    labels[ANY_LABEL] = 0
    for i in range(size):
        labels[nodes[first + i, LABEL]] = 0


@kernel
def spread(masks: Any, row: int, mask: int) -> Any:
    """Unite a row's masks over the query nodes in a mask."""
    found = np.int64(0)
    while mask != 0:
        found |= masks[row, lowest(mask)]
        mask &= mask - 1
    return found


@kernel
def allowing(nodes: Any, first: int, conditions: Any, condition: int, mask: int) -> Any:
    """Keep the query nodes whose conditions imply the view node's."""
    kept = np.int64(0)
    while mask != 0:
        n = lowest(mask)
        if implied(conditions, nodes[first + n, CONDITION], condition):
            kept |= np.int64(1) << n
        mask &= mask - 1
    return kept


@kernel
def walk(
    trie: Any, below: Any, nodes: Any, first: int, conditions: Any, labels: Any, masks: Any, hits: Any, covers: Any
) -> tuple[int, int]:
    """Find the trie nodes where views end that embed in the query: ``hits``, and how many.

    ``covers`` gets, one after the other, the masks of their nodes; also returns how much room those need. Where
    there is less, the caller must call again with more.
    """
    stack = np.zeros((MASK_BITS, MASK_BITS), np.int64)
    axes = np.zeros(MASK_BITS, np.int64)
    parents = np.zeros(MASK_BITS, np.int64)
    found, used = 0, 0
    i, end = 0, trie.shape[0]
    while i < end:
        place = trie[i, T_PLACE]
        depth, above = place & T_DEPTH, (place >> 8 & 0xFF) - 1
        fits = labels[trie[i, T_LABEL]]
        wide = fits if depth == 0 else fits & spread(masks, Q_BELOW, stack[depth - 1, above])
        if wide == 0:
            i = trie[i, T_JUMP]
            continue
        axis = place >> 16
        here = wide
        if axis == 0:
            here &= masks[Q_WHOLE, Q_ROOT] if depth == 0 else spread(masks, Q_CHILDREN, stack[depth - 1, above])
        if trie[i, T_CONDITION] != NO_CONDITION:
            here &= masks[Q_WHOLE, Q_CONDITIONED]
        if here == 0:
            i = trie[i, T_AXIS_JUMP]
            continue
        if trie[i, T_CONDITION] != NO_CONDITION:
            here = allowing(nodes, first, conditions, trie[i, T_CONDITION], here)
            if here == 0:
                i = trie[i, T_SKIP]
                continue
        for d in range(depth):
            stack[depth, d] = stack[depth - 1, d]
        stack[depth, depth] = here
        axes[depth] = axis
        parents[depth] = above
        d = depth
        while parents[d] >= 0:
            up = spread(masks, Q_PARENT if axes[d] == 0 else Q_ABOVE, stack[depth, d])
            d = parents[d]
            narrowed = stack[depth, d] & up
            if narrowed == stack[depth, d]:
                break
            stack[depth, d] = narrowed
        if trie[i, T_VIEWS_END] > trie[i, T_VIEWS]:
            hits[found] = i
            if used + depth < covers.size:
                covers[used] = stack[depth, 0]
                for d in range(1, depth + 1):
                    down = spread(masks, Q_CHILDREN if axes[d] == 0 else Q_BELOW, covers[used + parents[d]])
                    covers[used + d] = stack[depth, d] & down
            used += depth + 1
            found += 1
        i = i + 1 if below[i] & masks[Q_WHOLE, Q_LABELS] else trie[i, T_SKIP]
    return found, used


@kernel
def pair_embeds(
    views: Any, view: int, length: int, nodes: Any, query: int, conditions: Any, labels: Any, masks: Any, at: Any
) -> bool:  # fmt: skip
    """Say whether one view embeds in one query, whose ``labels`` and ``masks`` are set.

    ``view`` is a row of ``views``, ``query`` one of ``nodes``; ``at`` is room for a mask per node of the view.
    """
    for i in range(length):
        at[i] = labels[views[view + i, LABEL]]
        if at[i] == 0:
            return False
    for i in range(length - 1, -1, -1):
        row = view + i
        if views[row, CONDITION] != NO_CONDITION:
            at[i] = allowing(nodes, query, conditions, views[row, CONDITION], at[i])
        if views[row, PARENT] < 0:
            return bool(at[i] & (masks[Q_WHOLE, Q_ROOT] if views[row, AXIS] == 0 else masks[Q_WHOLE, Q_ALL]))
        at[views[row, PARENT]] &= spread(masks, Q_PARENT if views[row, AXIS] == 0 else Q_ABOVE, at[i])
        if at[views[row, PARENT]] == 0:
            return False
    return False


@kernel
def pair_covers(
    views: Any, view: int, length: int, nodes: Any, query: int, conditions: Any, labels: Any, masks: Any, at: Any
) -> bool:  # fmt: skip
    """As ``pair_embeds``; and where it does, ``at`` gets the query nodes that each node of the view covers."""
    if not pair_embeds(views, view, length, nodes, query, conditions, labels, masks, at):
        return False
    at[0] &= masks[Q_WHOLE, Q_ROOT] if views[view, AXIS] == 0 else masks[Q_WHOLE, Q_ALL]
    for i in range(1, length):
        row = view + i
        at[i] &= spread(masks, Q_CHILDREN if views[row, AXIS] == 0 else Q_BELOW, at[views[row, PARENT]])
    return True

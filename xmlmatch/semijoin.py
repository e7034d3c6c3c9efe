"""The one kernel: ``reduce``, two linear passes of structural semijoins.

A *forest* is any set of nodes in document order: ``up`` gives the nearest enclosing node of the forest (-1 for
none), ``size`` how many of the forest's nodes stand below, ``level`` the depth. A document is one; so are the
nodes that a peer receives, and a pattern that another is embedded into. A child of ``p`` has ``up == p`` and
``level[p] + 1``; a descendant has ``p`` somewhere above it.

Bottom-up, a node stays if it has a match for each child; top-down, it stays if its parent kept one. What is
left are exactly the nodes that take part in some embedding.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from xmlmatch.kernels import kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from xmlmatch.pattern import Pattern


class Forest(Protocol):
    """Nodes in document order; see the module's text."""

    @property
    def parent(self) -> NDArray[np.int32]:
        """The nearest enclosing node of each, -1 for none."""

    @property
    def size(self) -> NDArray[np.int32]:
        """How many nodes of the forest stand below each."""

    @property
    def level(self) -> NDArray[np.int32]:
        """The depth of each."""


def reduce(
    pattern: Pattern, forest: Forest, candidates: Sequence[NDArray[np.int32]]
) -> tuple[NDArray[np.int32], ...]:
    """Return, per pattern node, those candidates (sorted) that it takes in at least one embedding."""
    lengths = np.array([len(c) for c in candidates], dtype=np.int64)
    first = np.array([0, *accumulate(map(len, candidates))])
    nodes = np.concatenate(candidates).astype(np.int32, copy=False)
    reduce_lists(pattern.parents, pattern.axes, forest.parent, forest.size, forest.level, nodes, first, lengths)
    return tuple(
        nodes[start : start + n].copy() for start, n in zip(first.tolist(), lengths.tolist(), strict=False)
    )


@kernel
def reduce_lists(
    parents: Any, axes: Any, up: Any, size: Any, level: Any, nodes: Any, first: Any, lengths: Any
) -> None:
    """Shrink ``nodes[first[i] : first[i] + lengths[i]]`` in place, all lengths to 0 if any set is empty."""
    marks = np.zeros(up.size, np.int32)
    stamp = 0
    for child in range(parents.size - 1, 0, -1):
        stamp += 1
        own = nodes[first[child] : first[child] + lengths[child]]
        mark_above(own, axes[child], up, level, marks, stamp)
        start = first[parents[child]]
        lengths[parents[child]] = keep_marked(nodes[start : start + lengths[parents[child]]], marks, stamp)
    if axes[0] == 0:
        lengths[0] = keep_level(nodes[: lengths[0]], level, 0)
    for child in range(1, parents.size):
        above = nodes[first[parents[child]] : first[parents[child]] + lengths[parents[child]]]
        own = nodes[first[child] : first[child] + lengths[child]]
        stamp += 1
        lengths[child] = keep_below(own, above, axes[child], up, size, level, marks, stamp, own)
    if lengths.min() == 0:
        lengths[:] = 0


@kernel
def mark_above(own: Any, axis: int, up: Any, level: Any, marks: Any, stamp: int) -> None:
    """Mark the parents (axis 0) or all ancestors (axis 1) of the nodes in ``own``."""
    if axis == 0:
        for node in own:
            p = up[node]
            if p >= 0 and level[p] + 1 == level[node]:
                marks[p] = stamp
    else:
        for node in own:
            p = up[node]
            while p >= 0 and marks[p] != stamp:
                marks[p] = stamp
                p = up[p]


@kernel
def keep_marked(nodes: Any, marks: Any, stamp: int) -> int:
    """Move the marked nodes to the front and return how many there are."""
    n = 0
    for node in nodes:
        if marks[node] == stamp:
            nodes[n] = node
            n += 1
    return n


@kernel
def keep_level(nodes: Any, level: Any, wanted: int) -> int:
    """Move the nodes of one level to the front and return how many there are."""
    n = 0
    for node in nodes:
        if level[node] == wanted:
            nodes[n] = node
            n += 1
    return n


@kernel
def keep_below(
    own: Any, above: Any, axis: int, up: Any, size: Any, level: Any, marks: Any, stamp: int, out: Any
) -> int:
    """Write to ``out`` (which may be ``own``) the nodes below one in ``above``; return how many."""
    n = 0
    if axis == 0:
        for p in above:
            marks[p] = stamp
        for node in own:
            p = up[node]
            if p >= 0 and marks[p] == stamp and level[p] + 1 == level[node]:
                out[n] = node
                n += 1
        return n
    reach, i = -1, 0
    for node in own:
        while i < above.size and above[i] < node:
            reach = max(reach, above[i] + size[above[i]])
            i += 1
        if node <= reach:
            out[n] = node
            n += 1
    return n

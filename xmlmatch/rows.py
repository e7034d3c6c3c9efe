"""Rows from node sets: distinct combinations of the returning nodes, in the user's order, a block at a time.

The node sets are consistent: every node in them takes part in an embedding. So once a value is fixed for a
column, spreading outwards from it along the pattern's edges leaves exactly the values that go with it; no
choice is ever a dead end, and rows come in document order, column by column, without sorting or repeating.
One work area per column holds what is left after the choices so far.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xmlmatch.kernels import kernel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from xmlmatch.pattern import Pattern
    from xmlmatch.semijoin import Forest

_FIRST_BLOCK: Final = 64
_BLOCK: Final = 8192


def node_rows(pattern: Pattern, forest: Forest, sets: Sequence[NDArray[np.int32]]) -> Iterator[NDArray[np.int32]]:
    """Yield blocks of rows; a row holds one node per returning node, in the order of ``pattern.returning``."""
    if len(sets[0]) == 0:
        return
    columns = np.array(pattern.returning, dtype=np.int64)
    if len(columns) == 1:
        yield sets[columns[0]].reshape(-1, 1)
        return
    lengths = np.zeros((len(columns), len(sets)), np.int64)
    lengths[0] = [len(s) for s in sets]
    first = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths[0])))
    work = np.empty((len(columns), first[-1]), np.int32)
    work[0] = np.concatenate(sets)
    axes = np.array([node.axis for node in pattern.nodes], dtype=np.int8)
    spread = _spread_orders(pattern, columns)
    position = np.zeros(len(columns) + 1, np.int64)  # the last entry is the depth, -1 when done
    marks = np.zeros(len(forest.parent) + 1, np.int32)  # the last entry is the stamp
    block = np.empty((_FIRST_BLOCK, len(columns)), np.int32)
    while position[-1] >= 0:
        n = _fill(
            columns, spread, axes, forest.parent, forest.size, forest.level, work, first, lengths, position,
            marks, block,
        )  # fmt: skip
        if n:
            yield block[:n]
        block = np.empty((_BLOCK, len(columns)), np.int32)


def _spread_orders(pattern: Pattern, columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each column, the edges in the order they are crossed outwards: (from, to) pairs."""
    neighbours: list[list[int]] = [[] for _ in pattern.nodes]
    for i, node in enumerate(pattern.nodes):
        if node.parent >= 0:
            neighbours[i].append(node.parent)
            neighbours[node.parent].append(i)
    orders = np.empty((len(columns), len(pattern.nodes) - 1, 2), np.int64)
    for k, start in enumerate(columns.tolist()):
        seen, queue = {start}, [start]
        edges: list[tuple[int, int]] = []
        for source in queue:
            for target in neighbours[source]:
                if target not in seen:
                    seen.add(target)
                    queue.append(target)
                    edges.append((source, target))
        orders[k] = np.array(edges, np.int64).reshape(-1, 2)
    return orders


@kernel
def _fill(
    columns: Any, spread: Any, axes: Any, up: Any, size: Any, level: Any, work: Any, first: Any, lengths: Any,
    position: Any, marks: Any, block: Any,
) -> int:  # fmt: skip
    """Fill a block from where the last call stopped; return how many rows it got."""
    last = columns.size - 1
    n = 0
    depth = position[last + 1]
    while depth >= 0 and n < block.shape[0]:
        column = columns[depth]
        if position[depth] == lengths[depth, column]:
            depth -= 1
            if depth >= 0:
                position[depth] += 1
            continue
        node = work[depth, first[column] + position[depth]]
        if depth < last:
            _choose(spread[depth], axes, up, size, level, work, first, lengths, marks, depth, column, node)
            depth += 1
            position[depth] = 0
            continue
        for k in range(last):
            block[n, k] = work[k, first[columns[k]] + position[k]]
        block[n, last] = node
        n += 1
        position[depth] += 1
    position[last + 1] = depth
    return n


@kernel
def _choose(
    edges: Any, axes: Any, up: Any, size: Any, level: Any, work: Any, first: Any, lengths: Any, marks: Any,
    depth: int, column: int, node: int,
) -> None:  # fmt: skip
    """Fill the next work area with what goes with ``node`` in ``column``."""
    work[depth + 1, first[column]] = node
    lengths[depth + 1, column] = 1
    for e in range(edges.shape[0]):
        source, target = edges[e, 0], edges[e, 1]
        have = work[depth + 1, first[source] : first[source] + lengths[depth + 1, source]]
        pool = work[depth, first[target] : first[target] + lengths[depth, target]]
        out = work[depth + 1, first[target] : first[target + 1]]
        if target < source:
            n = _above(have, pool, axes[source], up, level, marks, out)
        else:
            n = _below(have, pool, axes[target], up, size, level, out)
        lengths[depth + 1, target] = n


@kernel
def _holds(pool: Any, node: int) -> bool:
    i = np.searchsorted(pool, node)
    return bool(i < pool.size and pool[i] == node)


@kernel
def _above(have: Any, pool: Any, axis: int, up: Any, level: Any, marks: Any, out: Any) -> int:
    """Collect the parents or ancestors of ``have`` that stand in ``pool``."""
    marks[-1] += 1
    stamp = marks[-1]
    n = 0
    for node in have:
        p = up[node]
        while p >= 0 and marks[p] != stamp:
            if axis == 0 and level[p] + 1 != level[node]:
                break
            marks[p] = stamp
            if _holds(pool, p):
                out[n] = p
                n += 1
            if axis == 0:
                break
            p = up[p]
    out[:n].sort()
    return n


@kernel
def _below(have: Any, pool: Any, axis: int, up: Any, size: Any, level: Any, out: Any) -> int:
    """Collect the children or descendants of ``have`` that stand in ``pool``."""
    n, reach = 0, -1
    for p in have:
        end = p + size[p]
        i = np.searchsorted(pool, p + 1 if axis == 0 else max(p, reach) + 1)
        while i < pool.size and pool[i] <= end:
            if axis == 1 or (up[pool[i]] == p and level[p] + 1 == level[pool[i]]):
                out[n] = pool[i]
                n += 1
            i += 1
        reach = max(reach, end)
    if axis == 0:
        out[:n].sort()
    return n

"""Breaking the cycles of an embedding graph by a feedback arc set, as the Delta paper does.

The heuristic of Eades, Lin and Smyth (1993): take sinks to the end of an order and sources to its beginning, and
where there are neither, the node with the largest surplus of outgoing edges to the beginning; the edges that point
backwards in the order are removed. The feeding order needs no such pass and loses, inside each group of views that
embed in each other, no more edges than any order must; this one may cut between groups too.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable
    from typing import TypeVar

    _Node = TypeVar("_Node", bound=Hashable)


def feedback_arcs(edges: Iterable[tuple[_Node, _Node]]) -> set[tuple[_Node, _Node]]:
    """Return edges whose removal leaves no cycle.

    >>> sorted(feedback_arcs([(1, 2), (2, 1), (2, 3)]))
    [(2, 1)]
    """
    kept = list(dict.fromkeys(edges))
    place = {node: i for i, node in enumerate(_ordered(kept))}
    return {(u, v) for u, v in kept if place[u] >= place[v]}


def _ordered(edges: Iterable[tuple[_Node, _Node]]) -> list[_Node]:
    after: dict[_Node, set[_Node]] = defaultdict(set)
    before: dict[_Node, set[_Node]] = defaultdict(set)
    for u, v in edges:
        if u != v:
            after[u].add(v)
            before[v].add(u)
    left = dict.fromkeys([*after, *before])
    front: list[_Node] = []
    back: list[_Node] = []
    while left:
        ends = [node for node in left if not after[node] or not before[node]]
        if not ends:
            ends = [max(left, key=lambda node: len(after[node]) - len(before[node]))]
        for node in ends:
            (back if not after[node] and before[node] else front).append(node)
            for other in after.pop(node, set()):
                before[other].discard(node)
            for other in before.pop(node, set()):
                after[other].discard(node)
            del left[node]
    return front + back[::-1]

"""Embeddings of a view into a query: the view matched against the query as if that were a document.

A ``/`` of the view needs a ``/`` of the query, a ``//`` any proper descendant: as a document, the query has its
``//`` edges two levels long. Labels must be equal, or ``*`` of the view on an element or ``*`` of the query,
never on ``@x``. The predicates of the query node must imply those of the view node. (The paper, section 4.1,
asks only that they do not contradict; ``//a[.='5']`` would then feed ``//a``, which is wrong.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from rewriting.conditions import implies
from xmlmatch import reduce
from xmlmatch.pattern import ANY, Axis

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from xmlmatch import Pattern, PatternNode


@dataclass(frozen=True, slots=True)
class _QueryForest:
    """A query seen as a forest of nodes."""

    parent: NDArray[np.int32]
    size: NDArray[np.int32]
    level: NDArray[np.int32]


def cover(view: Pattern, query: Pattern) -> tuple[NDArray[np.int32], ...]:
    """For each view node, the query nodes it can take, over all embeddings; all empty if there is none.

    >>> from xmlmatch import Pattern
    >>> [nodes.tolist() for nodes in cover(Pattern.parse("//a//b"), Pattern.parse("//a[b]/c/b"))]
    [[0], [1, 3]]
    """
    candidates = [
        np.array([i for i, n in enumerate(query.nodes) if _accepts(node, n)], dtype=np.int32)
        for node in view.nodes
    ]
    return reduce(view, _forest(query), candidates)


def embeds(view: Pattern, query: Pattern) -> bool:
    """Say whether the view embeds in the query: whether it matches wherever the query does."""
    return all(len(nodes) > 0 for nodes in cover(view, query))


@lru_cache(maxsize=4096)
def _forest(query: Pattern) -> _QueryForest:
    parent = np.array([node.parent for node in query.nodes], dtype=np.int32)
    size = np.zeros(len(parent), np.int32)
    level = np.zeros(len(parent), np.int32)
    for i, node in enumerate(query.nodes):
        above = level[node.parent] + 1 if node.parent >= 0 else 0
        level[i] = above + (1 if node.axis is Axis.DESCENDANT else 0)
    for i in range(len(parent) - 1, 0, -1):
        size[parent[i]] += size[i] + 1
    return _QueryForest(parent, size, level)


def _accepts(node: PatternNode, query_node: PatternNode) -> bool:
    """Say whether a view node may stand on a query node, as far as the two alone can tell."""
    if node.label == ANY:
        if query_node.is_attribute:
            return False
    elif node.label != query_node.label:
        return False
    return implies(query_node.predicates, node.predicates)

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

    from xmlmatch import Pattern, PatternNode, Predicate


@dataclass(frozen=True, slots=True)
class _QueryForest:
    """A query seen as a forest of nodes; ``groups`` lists those with each label and predicates."""

    parent: NDArray[np.int32]
    size: NDArray[np.int32]
    level: NDArray[np.int32]
    groups: dict[str, dict[tuple[Predicate, ...], list[int]]]


def cover(view: Pattern, query: Pattern) -> tuple[NDArray[np.int32], ...]:
    """For each view node, the query nodes it can take, over all embeddings; all empty if there is none.

    >>> from xmlmatch import Pattern
    >>> [nodes.tolist() for nodes in cover(Pattern.parse("//a//b"), Pattern.parse("//a[b]/c/b"))]
    [[0], [1, 3]]
    """
    forest = _forest(query)
    candidates = []
    for node in view.nodes:
        accepted = _accepting(node, forest)
        if not accepted:
            return tuple(np.empty(0, np.int32) for _ in view.nodes)
        candidates.append(np.array(accepted, np.int32))
    return reduce(view, forest, candidates)


def embeds(view: Pattern, query: Pattern) -> bool:
    """Say whether the view embeds in the query: whether it matches wherever the query does."""
    return len(cover(view, query)[0]) > 0


@lru_cache(maxsize=4096)
def _forest(query: Pattern) -> _QueryForest:
    parent = np.array([node.parent for node in query.nodes], dtype=np.int32)
    size = np.zeros(len(parent), np.int32)
    level = np.zeros(len(parent), np.int32)
    groups: dict[str, dict[tuple[Predicate, ...], list[int]]] = {}
    for i, node in enumerate(query.nodes):
        above = level[node.parent] + 1 if node.parent >= 0 else 0
        level[i] = above + (1 if node.axis is Axis.DESCENDANT else 0)
        groups.setdefault(node.label, {}).setdefault(node.predicates, []).append(i)
    for i in range(len(parent) - 1, 0, -1):
        size[parent[i]] += size[i] + 1
    return _QueryForest(parent, size, level, groups)


def _accepting(node: PatternNode, forest: _QueryForest) -> list[int]:
    """List the query nodes on which a view node may stand, as far as the two alone can tell."""
    labels = [node.label]
    if node.label == ANY:
        labels = [label for label in forest.groups if not label.startswith("@")]
    return sorted(
        n
        for label in labels
        for predicates, nodes in forest.groups.get(label, {}).items()
        if implies(predicates, node.predicates)
        for n in nodes
    )

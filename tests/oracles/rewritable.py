"""Which patterns of a set can be computed from the others: the slow twin of ``rewriting.unrewritable``.

A query can be rewritten if each of its nodes has a provider: a node of another view that covers it and carries
what it needs (the value or content it returns, something to filter by where the predicates are not implied
already, the name where the provider is ``*``). Where two patterns embed in each other, the one with the smaller
key feeds: more returned attributes first, then the lower number. That makes every mix acyclic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rewriting.conditions import implies
from rewriting.embedding import cover, embeds
from xmlmatch import Operator, Pattern, PatternNode, Return
from xmlmatch.pattern import ANY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_WEIGHT: Final = {Return.ID: 0, Return.VAL: 1, Return.CONT: 2}


def unrewritable(patterns: Sequence[Pattern]) -> list[int]:
    """List the positions of the distinct patterns that the others cannot feed."""
    labels = [_labels(pattern) for pattern in patterns]
    keys = [(-_weight(pattern), i) for i, pattern in enumerate(patterns)]
    holders: dict[str, list[int]] = {}
    for i in range(len(patterns)):
        holders.setdefault(min(labels[i], default=ANY), []).append(i)
    found = []
    for q, query in enumerate(patterns):
        near = [i for label in (*labels[q], ANY) for i in holders.get(label, []) if labels[i] <= labels[q]]
        # Small views embed in most queries: trying them first settles a query after a few.
        near.sort(key=lambda i: (len(patterns[i].nodes), keys[i]))
        feeders = (patterns[u] for u in near if u != q and _may_feed(patterns[u], query, keys[u] < keys[q]))
        if not _covered(query, feeders):
            found.append(q)
    return found


def _labels(pattern: Pattern) -> frozenset[str]:
    return frozenset(node.label for node in pattern.nodes if node.label != ANY)


def _weight(pattern: Pattern) -> int:
    return sum(_WEIGHT[what] for node in pattern.nodes for what in node.returns)


def _may_feed(view: Pattern, query: Pattern, smaller: bool) -> bool:
    return embeds(view, query) and (smaller or not embeds(query, view))


def _covered(query: Pattern, views: Iterable[Pattern]) -> bool:
    """Say whether the views together provide every node of the query; stops as soon as they do."""
    missing = set(range(len(query.nodes)))
    for view in views:
        for node, taken in zip(view.nodes, cover(view, query), strict=True):
            missing -= {n for n in taken.tolist() if n in missing and _provides(node, query.nodes[n])}
        if not missing:
            return True
    return not missing


def _provides(provider: PatternNode, node: PatternNode) -> bool:
    """Say whether a covering view node carries what the query node needs."""
    content = Return.CONT in provider.returns
    value = content or Return.VAL in provider.returns or _is_fixed(provider)
    if Return.CONT in node.returns and not content:
        return False
    if Return.VAL in node.returns and not value:
        return False
    # The name of a ``*`` travels in its column, so it is never in the way.
    return value or implies(provider.predicates, node.predicates)


def _is_fixed(node: PatternNode) -> bool:
    return any(p.operator is Operator.EQ and isinstance(p.constant, str) for p in node.predicates)

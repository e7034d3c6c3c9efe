"""The embedding graph the obvious way, and by Algorithm 3 of the Delta paper.

Algorithm 3 keeps the views in a trie by their sorted sets of labels, so that the views whose labels are among the
query's (Corollary 4.1) are found by walking only along those labels; each is then tested. ``*`` is no label.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rewriting.embedding import embeds
from xmlmatch.pattern import ANY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from xmlmatch import Pattern


def edges_by_pairs(patterns: Sequence[Pattern], queries: Iterable[int] | None = None) -> Iterator[tuple[int, int]]:
    """Yield (view, query) for every pair that embeds, testing all; ``queries`` limits it to some.

    >>> from xmlmatch import Pattern
    >>> list(edges_by_pairs([Pattern.parse("//a"), Pattern.parse("//a/b")]))
    [(0, 1)]
    """
    for q in range(len(patterns)) if queries is None else queries:
        for u, view in enumerate(patterns):
            if u != q and embeds(view, patterns[q]):
                yield u, q


@dataclass(slots=True)
class LabelTrie:
    """Views by their sorted label sets."""

    views: list[int] = field(default_factory=list)
    children: dict[str, LabelTrie] = field(default_factory=dict)

    def insert(self, labels: Sequence[str], view: int) -> None:
        """Add a view under its labels, which are sorted."""
        node = self
        for label in labels:
            node = node.children.setdefault(label, LabelTrie())
        node.views.append(view)

    def subsets(self, labels: Sequence[str]) -> Iterator[int]:
        """Yield the views whose labels are among these, which are sorted."""
        stack = [(self, 0)]
        while stack:
            node, at = stack.pop()
            yield from node.views
            inside = (i for i in range(at, len(labels)) if labels[i] in node.children)
            stack.extend((node.children[labels[i]], i + 1) for i in inside)


def labels_of(pattern: Pattern) -> list[str]:
    """Return the sorted labels of a pattern, without ``*``."""
    return sorted({node.label for node in pattern.nodes if node.label != ANY})


def edges_by_label_trie(
    patterns: Sequence[Pattern], queries: Iterable[int] | None = None
) -> Iterator[tuple[int, int]]:
    """Yield (view, query) for every pair that embeds, as Algorithm 3 does.

    >>> from xmlmatch import Pattern
    >>> list(edges_by_label_trie([Pattern.parse("//a"), Pattern.parse("//a/b")]))
    [(0, 1)]
    """
    trie = LabelTrie()
    for u, view in enumerate(patterns):
        trie.insert(labels_of(view), u)
    for q in range(len(patterns)) if queries is None else queries:
        for u in trie.subsets(labels_of(patterns[q])):
            if u != q and embeds(patterns[u], patterns[q]):
                yield u, q

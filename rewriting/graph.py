"""The embedding graph (EG): which of very many views embed in which.

There is a node per distinct pattern, whose *number* never changes while it is in the graph, and how many
subscriptions share it is its multiplicity. Edges are not stored, they are found when asked for: those into a
pattern by one walk of the trie, those out of it by a scan. So a pattern comes or goes in about a millisecond. What
came since the trie was last built waits in a short list that is tested pair by pair; the trie is built again when
the list gets long. Patterns of more than 64 nodes, and they only, are tested one by one with ``embedding.cover``.
A number is not used again, and its rows stay in the table: build the graph anew when most of its numbers are dead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from rewriting.conditions import pointers_to
from rewriting.embedding import embeds
from rewriting.feeding_order import FeedingKey, text_hash
from rewriting.growing import grown_rows
from rewriting.kernels import MASK_BITS, kernel
from rewriting.scan import SIGNATURES, queries_of, sign, views_of
from rewriting.table import PatternTable
from rewriting.trie import Q_ROWS, T_VIEWS, T_VIEWS_END, Trie, query_masks, walk

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from numpy.typing import NDArray

    from xmlmatch import Pattern

_FEWEST_RECENT: Final = 256
_RECENT_SHARE: Final = 100


@dataclass(frozen=True, slots=True)
class Change:
    """What came or went: a pattern's number, the patterns that embed in it, and those it embeds in."""

    number: int
    views: NDArray[np.int64]
    queries: NDArray[np.int64]


class EmbeddingGraph:
    """Which patterns embed in which; see the module's text.

    >>> from xmlmatch import Pattern
    >>> texts = ["//a{val}", "//a[b]{val}", "//a[b]/c{val}", "//a{val}"]
    >>> graph = EmbeddingGraph.build(Pattern.parse(text) for text in texts)
    >>> len(graph), graph.edges().tolist()
    (3, [[0, 1], [0, 2], [1, 2]])
    >>> graph.multiplicity(0)
    2
    >>> graph.add(Pattern.parse("//c{val}")).queries.tolist()
    [2]
    """

    def __init__(self) -> None:
        self.table = PatternTable()
        self.signs = np.zeros((64, SIGNATURES), np.int64)
        self._patterns: list[Pattern | None] = []
        self._keys = np.zeros((64, 2), np.int64)  # weight, hash of the text
        self._counts: dict[int, int] = {}
        self._numbers: dict[str, int] = {}
        self._trie = Trie.build(self.table, np.empty(0, np.int64))
        self._recent: dict[int, None] = {}
        self._large: dict[int, None] = {}
        self._dead = 0
        self._small = np.zeros(64, np.bool_)  # by number: in the graph, and of at most 64 nodes

    @classmethod
    def build(cls, patterns: Iterable[Pattern]) -> EmbeddingGraph:
        """Make the graph of these patterns; equal ones share a node."""
        graph = cls()
        graph._take(patterns)
        graph._rebuild()
        return graph

    def __len__(self) -> int:
        return len(self._counts)

    def __contains__(self, pattern: Pattern) -> bool:
        return pattern.text in self._numbers

    def number(self, pattern: Pattern) -> int:
        """Return the number of a pattern; ``KeyError`` if it is not in the graph."""
        return self._numbers[pattern.text]

    def pattern(self, number: int) -> Pattern:
        """Return the pattern with a number; ``KeyError`` if there is none."""
        found = self._patterns[number] if 0 <= number < len(self._patterns) else None
        if found is None:
            raise KeyError(number)
        return found

    def multiplicity(self, number: int) -> int:
        """Return how many subscriptions share the pattern."""
        return self._counts[number]

    def key(self, number: int) -> FeedingKey:
        """Return the pattern's place in the feeding order."""
        weight, mark = self._keys[number].tolist()
        return FeedingKey(weight, mark, self.pattern(number).text)

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The numbers in use, ascending."""
        return np.array(sorted(self._counts), np.int64)

    def add(self, pattern: Pattern) -> Change:
        """Add a subscription to a pattern; the change tells its edges, whether or not it was there."""
        (number,) = self._take([pattern])
        if len(self._recent) > _FEWEST_RECENT + len(self) // _RECENT_SHARE:
            self._rebuild()
        return Change(number, self.views_of(number), self.queries_of(number))

    def remove(self, pattern: Pattern) -> Change:
        """Remove one subscription to a pattern; ``KeyError`` if there is none. The change tells its edges."""
        number = self.number(pattern)
        change = Change(number, self.views_of(number), self.queries_of(number))
        self._counts[number] -= 1
        if self._counts[number] == 0:
            del self._counts[number], self._numbers[pattern.text]
            self._patterns[number] = None
            self._small[number] = False
            self._large.pop(number, None)
            if number in self._recent:
                del self._recent[number]
            else:
                self._dead += 1
            if self._dead > _FEWEST_RECENT + len(self) // 4:
                self._rebuild()
        return change

    def views_of(self, number: int) -> NDArray[np.int64]:
        """List the patterns that embed in this one, ascending."""
        query = self.pattern(number)
        if number in self._large:
            others = [u for u in self.numbers.tolist() if u != number and embeds(self.pattern(u), query)]
            return np.array(others, np.int64)
        found = _views_in_trie(self._trie.trie, self._trie.below, *self._arrays(), number)
        found = self._trie.slots[found]
        found = found[self._small[found]]
        recent = np.array(list(self._recent), np.int64)
        out = np.empty(len(recent), np.int64)
        n = views_of(*self._arrays(), self.signs, recent, number, out)
        large = [u for u in self._large if embeds(self.pattern(u), query)]
        everything = np.concatenate((found, out[:n], np.array(large, np.int64)))
        return np.sort(everything[everything != number])

    def queries_of(self, number: int) -> NDArray[np.int64]:
        """List the patterns in which this one embeds, ascending."""
        view = self.pattern(number)
        out = np.empty(len(self._patterns), np.int64)
        n = queries_of(*self._arrays(), self.signs, self._small, number, out)
        large = [q for q in self._large if embeds(view, self.pattern(q))]
        everything = np.concatenate((out[:n], np.array(large, np.int64)))
        return np.sort(everything[everything != number])

    def feeders_of(self, number: int) -> NDArray[np.int64]:
        """List the patterns that may feed this one: they embed in it, and come first where it embeds in them."""
        views, own = self.views_of(number), self.key(number)
        later = [u for u in views.tolist() if self.key(u) > own]
        back = [u for u in later if embeds(self.pattern(number), self.pattern(u))]
        return np.setdiff1d(views, np.array(back, np.int64))

    def feeding_ranks(self) -> NDArray[np.int64]:
        """Return, by number, the place in the feeding order; also for numbers no longer in use. Should two hashes
        ever be equal, the numbers decide, and a source may refuse the feed."""
        keys = self._keys[: len(self._patterns)]
        ranks = np.empty(len(keys), np.int64)
        ranks[np.lexsort((-keys[:, 1], -keys[:, 0]))] = np.arange(len(keys))
        return ranks

    def edges(self) -> NDArray[np.int64]:
        """List all edges as pairs (view, query), sorted; for very many patterns use ``find_candidates``."""
        parts = [np.empty((0, 2), np.int64)]
        for number in self.numbers.tolist():
            views = self.views_of(number)
            parts.append(np.column_stack((views, np.full(len(views), number))))
        edges = np.concatenate(parts)
        return edges[np.lexsort((edges[:, 1], edges[:, 0]))]

    @property
    def trie(self) -> Trie:
        """A trie of exactly the patterns of up to 64 nodes."""
        if self._recent or self._dead:
            self._rebuild()
        return self._trie

    @property
    def large(self) -> list[int]:
        """The patterns of more than 64 nodes."""
        return list(self._large)

    def enter(self, pattern: Pattern) -> int:
        """Add one of many without finding its edges, and return its number; call ``finish`` after the last."""
        return self._take([pattern])[0]

    def finish(self) -> None:
        """Make what was entered quick to find."""
        self._rebuild()

    def _take(self, patterns: Iterable[Pattern]) -> list[int]:
        """Number the patterns and store the new ones."""
        numbers, new = [], []
        for pattern in patterns:
            number = self._numbers.get(pattern.text)
            if number is None:
                number = self._numbers[pattern.text] = len(self._patterns)
                self._patterns.append(pattern)
                self._counts[number] = 0
                (self._large if len(pattern.nodes) > MASK_BITS else self._recent)[number] = None
                new.append(pattern)
            self._counts[number] += 1
            numbers.append(number)
        slots = self.table.extend(new)
        self.signs = grown_rows(self.signs, len(self.table))
        self._small = grown_rows(self._small, len(self.table))
        self._keys = grown_rows(self._keys, len(self.table))
        self._keys[slots.start : slots.stop] = np.column_stack(
            (self.table.weights(slots), np.array([text_hash(pattern) for pattern in new], np.int64))
        )
        self._small[slots.start : slots.stop] = [len(pattern.nodes) <= MASK_BITS for pattern in new]
        sign(self.table.nodes, self.table.first, slots.start, self.signs)
        return numbers

    def _rebuild(self) -> None:
        self._trie = Trie.build(self.table, np.flatnonzero(self._small))
        self._recent, self._dead = {}, 0

    def _arrays(self) -> tuple[Any, Any, Any, Any]:
        table = self.table
        return table.nodes, table.first, table.attribute, table.conditions.arrays


@kernel
def _views_in_trie(
    trie: NDArray[np.int32], below: NDArray[np.int64], nodes: NDArray[np.int32], first: NDArray[np.int64],
    attribute: NDArray[np.bool_], arrays: Any, query: int,
) -> NDArray[np.int64]:  # fmt: skip
    """Return the places of the views that embed in the query."""
    labels, masks = np.zeros(attribute.size, np.int64), np.zeros((Q_ROWS, MASK_BITS), np.int64)
    query_masks(nodes, first[query], first[query + 1] - first[query], attribute, labels, masks)
    hits = np.empty(trie.shape[0], np.int64)
    found, _ = walk(
        trie, below, nodes, first[query], pointers_to(arrays), labels, masks, hits, np.empty(0, np.int64)
    )
    total = 0
    for i in range(found):
        total += trie[hits[i], T_VIEWS_END] - trie[hits[i], T_VIEWS]
    places = np.empty(total, np.int64)
    at = 0
    for i in range(found):
        for place in range(trie[hits[i], T_VIEWS], trie[hits[i], T_VIEWS_END]):
            places[at] = place
            at += 1
    return places

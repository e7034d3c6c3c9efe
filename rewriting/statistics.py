"""How much the nodes of a pattern weigh: the sizes that the costs of rewritings are made of.

All figures are whole numbers per thousand documents, so that sums are exact and two ways of computing a cost
agree to the last digit. ``Statistics.measure`` takes them from sample documents; what was not measured is assumed
from the pattern's shape.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from rewriting.kernels import kernel
from rewriting.table import is_fixed
from xmlmatch import Matcher
from xmlmatch.handlers import END, NAME, START

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from xmlmatch import Document, Pattern, PatternNode

ROWS, VAL, CONT, KINDS = range(4)
DOCUMENTS: Final = 1000
ID_BYTES: Final = 4
NAME_BYTES: Final = 1
LINK_BYTES: Final = 256
"""F: what a link costs per document beside what it carries. More of it means fewer views per rewriting."""

# What is assumed of a pattern nobody has measured.
_ROWS: Final = 8 * DOCUMENTS
_PER_NODE: Final = 0.8
_FIXED, _NARROWED = 0.1, 0.5
_VAL_BYTES, _CONT_BYTES = 12, 240


@dataclass(frozen=True, slots=True, eq=False)
class Statistics:
    """Three rows (how many nodes, bytes of values, bytes of contents) with a column per node of every pattern.

    ``starts`` says by canonical text where a measured pattern's columns begin.
    """

    figures: NDArray[np.int64] = field(default_factory=lambda: np.zeros((KINDS, 0), np.int64), repr=False)
    starts: dict[str, int] = field(default_factory=dict, repr=False)

    def of(self, pattern: Pattern) -> NDArray[np.int64]:
        """Return the figures of a pattern's nodes, assumed where nothing was measured.

        >>> from xmlmatch import Pattern
        >>> Statistics().of(Pattern.parse("//a[b='1']{val}"))[ROWS].tolist()
        [640, 640]
        """
        start = self.starts.get(pattern.text)
        return _assumed(pattern) if start is None else self.figures[:, start : start + len(pattern.nodes)]

    def of_all(self, patterns: Sequence[Pattern]) -> NDArray[np.int64]:
        """Return the figures of many patterns, one after the other."""
        starts = [self.starts.get(pattern.text) for pattern in patterns]
        if None in starts:
            return np.concatenate([np.zeros((KINDS, 0), np.int64), *map(self.of, patterns)], axis=1)
        lengths = np.array([len(pattern.nodes) for pattern in patterns], np.int64)
        shifts = np.array(starts, np.int64) - np.cumsum(lengths) + lengths
        return np.ascontiguousarray(self.figures[:, np.arange(lengths.sum()) + np.repeat(shifts, lengths)])

    @classmethod
    def known(cls, patterns: Sequence[Pattern], figures: NDArray[np.int64]) -> Statistics:
        """Make statistics from the figures of patterns, one after the other."""
        ends = np.cumsum([len(pattern.nodes) for pattern in patterns]).tolist()
        return cls(figures, {p.text: end - len(p.nodes) for p, end in zip(patterns, ends, strict=True)})

    @classmethod
    def measure(
        cls, patterns: Sequence[Pattern], documents: Iterable[Document], tick: Callable[[], None] = lambda: None
    ) -> Statistics:
        """Match the patterns against sample documents and take the means; ``tick`` is called per document."""
        distinct = list({pattern.text: pattern for pattern in patterns}.values())
        matcher = Matcher(distinct)
        first = np.concatenate(([0], np.cumsum([len(p.nodes) for p in distinct]))).astype(np.int64)
        sums = np.zeros((KINDS, first[-1]), np.int64)
        count = 0
        for document in documents:
            matches = matcher.match(document)
            values = (document.nodes[END] - document.nodes[START]).astype(np.int64)
            sizes = _set_sizes(matches.pool, matches.set_first, values, _contents(document, values))
            _add(first, matches.keys, matches.rank, matches.first, matches.results, sizes, sums)
            count += 1
            tick()
        if count == 0:
            raise ValueError("statistics need at least one document")
        return cls.known(distinct, (sums * DOCUMENTS + count - 1) // count)


def _assumed(pattern: Pattern) -> NDArray[np.int64]:
    share = _PER_NODE ** (len(pattern.nodes) - 1)
    for node in pattern.nodes:
        for predicate in node.predicates:
            share *= _FIXED if is_fixed((predicate,)) else _NARROWED
    rows = max(1, round(_ROWS * share))
    return np.array(
        [[rows, _VAL_BYTES * rows, _content(node) * rows] for node in pattern.nodes], np.int64
    ).T.copy()


def _content(node: PatternNode) -> int:
    return 0 if node.is_attribute else _CONT_BYTES


def _contents(document: Document, values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Estimate the bytes of every subtree as XML: tags, attributes and text, less what escaping adds."""
    names = document.arrays[2][1][document.nodes[NAME]].astype(np.int64)
    attribute = np.array([label.startswith("@") for label in document.labels], np.bool_)[document.label]
    own = np.where(attribute, names + 3 + values, 2 * names + 5)
    upto = np.concatenate(([0], np.cumsum(own)))
    pre = np.arange(len(document))
    return np.where(attribute, 0, upto[pre + document.size + 1] - upto[pre] + values)


@kernel
def _set_sizes(
    pool: NDArray[np.int32], first: NDArray[np.int64], values: NDArray[np.int64], contents: NDArray[np.int64]
) -> NDArray[np.int64]:
    """For every distinct node set: how many nodes, bytes of values, bytes of contents."""
    sizes = np.zeros((first.size - 1, KINDS), np.int64)
    for s in range(first.size - 1):
        for i in range(first[s], first[s + 1]):
            sizes[s, ROWS] += 1
            sizes[s, VAL] += values[pool[i]]
            sizes[s, CONT] += contents[pool[i]]
    return sizes


@kernel
def _add(
    node_first: NDArray[np.int64], keys: NDArray[np.int64], rank: NDArray[np.int32], first: NDArray[np.int64],
    results: NDArray[np.int32], sizes: NDArray[np.int64], sums: NDArray[np.int64],
) -> None:  # fmt: skip
    for i in range(keys.size):
        at = node_first[keys[i]]
        for k in range(first[rank[i]], first[rank[i] + 1]):
            for kind in range(KINDS):
                sums[kind, at + k - first[rank[i]]] += sizes[results[k], kind]


@kernel
def thinning(by_value: bool, by_name: bool) -> int:
    """By how many halvings a sender's filters are taken to thin a list: a quarter by value, an eighth by name."""
    return (2 if by_value else 0) + (3 if by_name else 0)


@kernel
def link_cost(
    rows: int, carried: int, own_rows: int, own_carried: int, by_value: bool, by_name: bool, names: bool
) -> int:  # fmt: skip
    """Estimate the bytes per thousand documents when a view's node provides a query's.

    ``rows`` and ``carried`` are the view node's nodes and the bytes of what travels with them (0 if only IDs do);
    the sender's filters, by value and by name, thin both. What the query itself keeps is the least that can be
    sent. ``names``: names travel too, for both nodes are ``*``.
    """
    shift = thinning(by_value, by_name)
    each = ID_BYTES + (NAME_BYTES if names else 0)
    return max(rows >> shift, own_rows) * each + max(carried >> shift, own_carried)

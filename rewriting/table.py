"""Very many patterns as one set of flat arrays: what the compiled parts of this package read.

A pattern is a run of rows, one per node in canonical pre-order. Labels and sets of predicates are numbers; what
a node carries and needs is a level: 0 only its ID, 1 its value, 2 its content (from which the value follows).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import permutations
from typing import TYPE_CHECKING, Final

import numpy as np

from rewriting.conditions import Conditions
from rewriting.growing import grown_rows
from xmlmatch.pattern import ANY, Return
from xmlmatch.predicates import Operator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from xmlmatch import Pattern, PatternNode, Predicate

LABEL, AXIS, PARENT, CONDITION, CARRIES, NEEDS, WEIGHT, FIELDS = range(8)
ANY_LABEL: Final = 0
ID_LEVEL, VAL_LEVEL, CONT_LEVEL = range(3)


def is_fixed(predicates: Sequence[Predicate]) -> bool:
    """Say whether the predicates name the one string a value can be."""
    return any(p.operator is Operator.EQ and isinstance(p.constant, str) for p in predicates)


WEIGHTS: Final = {Return.ID: 0, Return.VAL: 1, Return.CONT: 2}
"""How much a node returns, for the feeding order: IDs travel anyway."""


def carries(node: PatternNode) -> int:
    """Return the level of what a view's node carries; a value that is fixed is known without being sent."""
    return max(_level(node.returns), VAL_LEVEL if is_fixed(node.predicates) else ID_LEVEL)


def needs(node: PatternNode) -> int:
    """Return the level of what a query's node returns."""
    return _level(node.returns)


def _level(returns: Sequence[Return]) -> int:
    if Return.CONT in returns:
        return CONT_LEVEL
    return VAL_LEVEL if Return.VAL in returns else ID_LEVEL


# Everything a node can return, by number: the level needed, and the weight.
_KINDS: Final = [returns for n in range(4) for returns in permutations(Return, n)]
_CODES: Final = {returns: code for code, returns in enumerate(_KINDS)}
_RETURNED: Final = np.array(
    [(_level(returns), sum(WEIGHTS[what] for what in returns)) for returns in _KINDS], np.int32
)


@dataclass(slots=True)
class PatternTable:
    """Patterns by slot; ``first[slot] : first[slot + 1]`` are the rows of its nodes."""

    conditions: Conditions = field(default_factory=Conditions)
    labels: dict[str, int] = field(default_factory=lambda: {ANY: ANY_LABEL})
    _attribute: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(64, np.bool_))
    _nodes: NDArray[np.int32] = field(default_factory=lambda: np.zeros((64, FIELDS), np.int32))
    _first: NDArray[np.int64] = field(default_factory=lambda: np.zeros(64, np.int64))
    _size: int = 0

    def __len__(self) -> int:
        return self._size

    @property
    def nodes(self) -> NDArray[np.int32]:
        """One row per node; valid until the next ``extend``."""
        return self._nodes[: self._first[self._size]]

    @property
    def first(self) -> NDArray[np.int64]:
        """Where the rows of each slot begin, and the end of the last."""
        return self._first[: self._size + 1]

    @property
    def attribute(self) -> NDArray[np.bool_]:
        """By label: whether it is an attribute's."""
        return self._attribute[: len(self.labels)]

    def weights(self, slots: range) -> NDArray[np.int64]:
        """Return how much each of these patterns returns."""
        if not slots:
            return np.empty(0, np.int64)
        rows = self._nodes[self._first[slots.start] : self._first[slots.stop], WEIGHT]
        starts = self._first[slots.start : slots.stop] - self._first[slots.start]
        return np.add.reduceat(rows.astype(np.int64), starts)

    def extend(self, patterns: Sequence[Pattern]) -> range:
        """Append patterns and return their slots."""
        at = self._first[self._size]
        nodes = [node for pattern in patterns for node in pattern.nodes]
        old = self._size
        self._nodes = grown_rows(self._nodes, at + len(nodes))
        self._first = grown_rows(self._first, old + len(patterns) + 1)
        new = self._nodes[at : at + len(nodes)]
        new[:, LABEL] = self._label_numbers(nodes)
        new[:, AXIS] = [node.axis._value_ for node in nodes]  # plain numbers: enums convert slowly
        new[:, PARENT] = [node.parent for node in nodes]
        new[:, CONDITION] = [self.conditions.add(node.predicates) if node.predicates else 0 for node in nodes]
        returned = _RETURNED[[_CODES[node.returns] if node.returns else 0 for node in nodes]]
        new[:, NEEDS], new[:, WEIGHT] = returned[:, 0], returned[:, 1]
        new[:, CARRIES] = np.maximum(new[:, NEEDS], self.conditions.fixed()[new[:, CONDITION]])
        self._size += len(patterns)
        self._first[old + 1 : self._size + 1] = at + np.cumsum([len(pattern.nodes) for pattern in patterns])
        return range(old, self._size)

    def _label_numbers(self, nodes: Sequence[PatternNode]) -> list[int]:
        labels = [node.label for node in nodes]
        for label in dict.fromkeys(labels):
            if label not in self.labels:
                number = self.labels[label] = len(self.labels)
                self._attribute = grown_rows(self._attribute, number + 1)
                self._attribute[number] = label.startswith("@")
        return [self.labels[label] for label in labels]

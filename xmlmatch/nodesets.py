"""The result of a pattern on a document: one node set per pattern node, and the rows a user reads from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, assert_never

from xmlmatch.errors import RowLimitError
from xmlmatch.pattern import Return
from xmlmatch.rows import node_rows
from xmlmatch.semijoin import Forest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    from xmlmatch.document import NodeId
    from xmlmatch.pattern import Pattern

    Value: TypeAlias = str | NodeId

DEFAULT_ROW_LIMIT: Final = 1_000_000


class Source(Forest, Protocol):
    """What node sets speak of: a document, or the part of one that travelled. Nodes are asked for by position."""

    def __len__(self) -> int:
        """Return how many nodes there are."""

    @property
    def pre(self) -> NDArray[np.int32]:
        """The number of each node in the document."""

    @property
    def span(self) -> NDArray[np.int32]:
        """How many nodes stand below each in the document."""

    @property
    def label(self) -> NDArray[np.int32]:
        """The place of each node's label in ``labels``; -1 where it did not travel."""

    @property
    def labels(self) -> list[str]:
        """The labels."""

    def positions(self, pre: NDArray[np.int32]) -> NDArray[np.int32]:
        """Turn ``pre`` numbers into positions."""

    def label_of(self, node: int) -> str:
        """Return the label of a node."""

    def val(self, node: int) -> str:
        """Return the string value of a node."""

    def cont(self, node: int) -> str:
        """Return the content of a node."""

    def node_id(self, node: int) -> NodeId:
        """Return the structural ID of a node."""


@dataclass(frozen=True, slots=True)
class NodeSets:
    """For each node of ``pattern``, the nodes of ``document`` (sorted ``pre``) it takes in some embedding.

    ``document`` may be a part of one, with all that the pattern returns. True when the pattern matches. Equal
    embeddings are never stored twice: the size is the sum of the sets, never the product of independent branches.
    """

    pattern: Pattern
    document: Source = field(repr=False)
    sets: tuple[NDArray[np.int32], ...]

    def __bool__(self) -> bool:
        return len(self.sets[0]) > 0

    def rows(self, limit: int = DEFAULT_ROW_LIMIT) -> Iterator[tuple[Value, ...]]:
        """Yield the user's rows lazily, one value per column of the pattern.

        A row is a distinct combination of returning nodes (by node, not by value); rows come in document
        order, column by column. Raises ``RowLimitError`` instead of yielding row ``limit + 1``.

        >>> from xmlmatch import Document, Pattern, match
        >>> document = Document.parse(b"<a><b>1</b><b>2</b><c x='3'/></a>")
        >>> list(match(Pattern.parse("/a[c/@x{val}]/b{val}"), document).rows())
        [('3', '1'), ('3', '2')]
        """
        _check(limit)
        place = {node: i for i, node in enumerate(self.pattern.returning)}
        columns = [(place[node], what) for node, what in self.pattern.selection]
        left = limit
        for block in node_rows(self.pattern, self.document, self._positions()):
            for row in block.tolist():
                if left == 0:
                    raise RowLimitError(limit)
                left -= 1
                yield tuple(_value(self.document, row[i], what) for i, what in columns)

    def _positions(self) -> tuple[NDArray[np.int32], ...]:
        return tuple(self.document.positions(nodes) for nodes in self.sets)

    def count(self, limit: int = DEFAULT_ROW_LIMIT) -> int:
        """Count the rows without making them; raise ``RowLimitError`` beyond ``limit``."""
        _check(limit)
        total = 0
        for block in node_rows(self.pattern, self.document, self._positions()):
            total += len(block)
            if total > limit:
                raise RowLimitError(limit)
        return total


def _check(limit: int) -> None:
    if limit < 0:
        raise ValueError(f"a limit of rows is 0 or more, not {limit}")


def _value(document: Source, node: int, what: Return) -> Value:
    match what:
        case Return.VAL:
            return document.val(node)
        case Return.CONT:
            return document.cont(node)
        case Return.ID:
            return document.node_id(node)
        case _:
            assert_never(what)

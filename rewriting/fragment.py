"""Fragments: the nodes of a document that travelled, with what travelled of them.

A fragment stands where a document would: it is a forest for ``reduce``, and it answers for names, values and
contents, as far as it has them. A node is known by its *position* in the fragment; its ID is the one it has in the
document. Node sets always speak of IDs, so results computed from fragments equal those matched on the document.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from rewriting.contents import text_of
from rewriting.errors import NotCarriedError, UnreadableContentError
from rewriting.fragment_kernels import CONT, TO_MAKE, UNKNOWN, copy, enclose, unite
from xmlmatch import Document, DocumentError, Limits, NodeId
from xmlmatch.values import satisfying

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from xmlmatch import Predicate
    from xmlmatch.nodesets import Source

# The document was within its limits; what is cut out of it need not be held against stricter ones.
_ACCEPTED: Final = Limits(max_bytes=512 << 20, max_depth=1 << 20)


class DifferentDocuments(Exception):
    """Fragments that should be of one document do not agree on a node; ``number``: of the first to differ."""

    def __init__(self, number: int) -> None:
        super().__init__(f"fragment {number} is of another document")
        self.number = number


@dataclass(frozen=True, eq=False)
class Fragment:
    """Nodes in document order.

    ``vals`` and ``conts`` are slices (rows: start, end) of ``payload``, -1 where unknown. ``label`` points into
    ``labels``, -1 where the name is unknown. ``span`` is the size in the document.
    """

    pre: NDArray[np.int32]
    span: NDArray[np.int32]
    level: NDArray[np.int32]
    label: NDArray[np.int32]
    labels: list[str] = field(repr=False)
    vals: NDArray[np.int64] = field(repr=False)
    conts: NDArray[np.int64] = field(repr=False)
    payload: NDArray[np.uint8] = field(repr=False)
    enclosing: NDArray[np.int32] | None = field(default=None, repr=False)
    """``parent`` and ``size``, where they are known already."""

    def __len__(self) -> int:
        return len(self.pre)

    @cached_property
    def _forest(self) -> NDArray[np.int32]:
        if self.enclosing is not None:
            return self.enclosing
        forest = np.zeros((2, len(self)), np.int32)
        enclose(self.pre, self.span, forest)
        return forest

    @property
    def parent(self) -> NDArray[np.int32]:
        """The position of the nearest node above that the fragment has; -1 for none."""
        row: NDArray[np.int32] = self._forest[0]
        return row

    @property
    def size(self) -> NDArray[np.int32]:
        """How many nodes of the fragment stand below each."""
        row: NDArray[np.int32] = self._forest[1]
        return row

    def positions(self, pre: NDArray[np.int32]) -> NDArray[np.int32]:
        """Turn numbers of the document into positions; all must be here."""
        return np.searchsorted(self.pre, pre).astype(np.int32)

    def val(self, node: int) -> str:
        """Return the string value of a node, from its content where only that travelled."""
        start, end = self.vals[:, node].tolist()
        if start >= 0:
            return bytes(self.payload[start:end]).decode()
        if self.conts[0, node] >= 0:
            if node not in self._read:
                self._read[node] = self._value_of_content(node)
            return self._read[node]
        raise NotCarriedError("value", int(self.pre[node]))

    @cached_property
    def _read(self) -> dict[int, str]:
        """Values read from contents, once each."""
        return {}

    def _value_of_content(self, node: int) -> str:
        start, end = self.conts[:, node].tolist()
        content = self.payload[start:end].tobytes()
        text = text_of(content)
        if text is not None:
            return text.decode()
        try:
            return Document.parse(content, _ACCEPTED).val(0)
        except DocumentError as exc:
            raise UnreadableContentError(int(self.pre[node]), str(exc)) from exc

    def cont(self, node: int) -> str:
        """Return the content of a node."""
        start, end = self.conts[:, node].tolist()
        if start < 0:
            raise NotCarriedError("content", int(self.pre[node]))
        return bytes(self.payload[start:end]).decode()

    def node_id(self, node: int) -> NodeId:
        """Return the structural ID of a node in its document."""
        return NodeId(int(self.pre[node]), int(self.span[node]), int(self.level[node]))

    def label_of(self, node: int) -> str:
        """Return the label of a node."""
        if self.label[node] < 0:
            raise NotCarriedError("name", int(self.pre[node]))
        return self.labels[int(self.label[node])]


def named(nodes: Source, positions: NDArray[np.int32], label: str) -> NDArray[np.int32]:
    """Keep the nodes with a label."""
    wanted = nodes.labels.index(label) if label in nodes.labels else len(nodes.labels)
    own: NDArray[np.int32] = nodes.label[positions]
    if (own < 0).any():
        raise NotCarriedError("name", int(nodes.pre[positions[own < 0][0]]))
    kept: NDArray[np.int32] = positions[own == wanted]
    return kept


def valued(nodes: Source, positions: NDArray[np.int32], predicates: Sequence[Predicate]) -> NDArray[np.int32]:
    """Keep the nodes whose value satisfies every predicate."""
    if isinstance(nodes, Document):
        return satisfying(nodes, positions, predicates)
    keep = [all(p.holds(value) for p in predicates) for value in map(nodes.val, positions.tolist())]
    return positions[np.array(keep, np.bool_)]


def cut(nodes: Source, positions: NDArray[np.int32], wanted: NDArray[np.uint8]) -> Fragment:
    """Copy nodes out of a document or fragment, with what is wanted of each (bits of ``NAME``, ``VAL``, ``CONT``).

    A value is left out where the content goes along, for it can be read from there.
    """
    payload, vals, conts = _texts(nodes, wanted)
    ints, slices = np.empty((4, len(positions)), np.int32), np.empty((4, len(positions)), np.int64)
    if copy(positions, wanted, nodes.pre, nodes.span, nodes.level, nodes.label, vals, conts, ints, slices):
        payload = _with_made(nodes, positions, slices, payload)
    return Fragment(ints[0], ints[1], ints[2], ints[3], nodes.labels, slices[:2], slices[2:], payload)


def _texts(
    nodes: Source, wanted: NDArray[np.uint8]
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Return the texts at hand: a payload, and the slices of values and contents in it."""
    if isinstance(nodes, Document):
        return nodes.texts_with_contents if (wanted & CONT).any() else nodes.texts
    if isinstance(nodes, Fragment):
        return nodes.payload, nodes.vals, nodes.conts
    raise TypeError(f"nodes are cut out of documents and fragments, not of {type(nodes).__name__}")


def _with_made(
    nodes: Source, positions: NDArray[np.int32], slices: NDArray[np.int64], payload: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """Make the texts that are wanted and not at hand, behind the payload."""
    parts, end = [payload], len(payload)
    for row, make in ((0, nodes.val), (2, nodes.cont)):
        for i in np.flatnonzero(slices[row] == TO_MAKE).tolist():
            text = np.frombuffer(make(int(positions[i])).encode(), np.uint8)
            slices[row : row + 2, i] = end, end + len(text)
            parts.append(text)
            end += len(text)
    return np.concatenate(parts)


def united(fragments: Sequence[Fragment]) -> tuple[Fragment, list[NDArray[np.int32]]]:
    """Unite fragments of one document; what any of them knows of a node is known. Also say where the nodes of each
    went. ``DifferentDocuments`` if they do not agree on a node."""
    if len(fragments) == 1:
        return fragments[0], [np.arange(len(fragments[0]), dtype=np.int32)]
    first = np.array([0, *accumulate(map(len, fragments))])
    shifts = np.array([0, *accumulate(len(f.payload) for f in fragments)])
    ints, slices = np.empty((4, first[-1]), np.int32), np.empty((4, first[-1]), np.int64)
    at = np.empty(first[-1], np.int32)
    label, labels = _common_labels(fragments)
    flat = [np.concatenate([getattr(f, row) for f in fragments]) for row in ("pre", "span", "level")]
    vals, conts = (np.concatenate([getattr(f, row) for f in fragments], axis=1) for row in ("vals", "conts"))
    count = unite(first, shifts, flat[0], flat[1], flat[2], label, vals, conts, ints, slices, at)
    if count < 0:
        raise DifferentDocuments(-1 - count)
    ints, slices = ints[:, :count], slices[:, :count]
    payload = np.concatenate([f.payload for f in fragments])
    forest = Fragment(ints[0], ints[1], ints[2], ints[3], labels, slices[:2].copy(), slices[2:].copy(), payload)
    return forest, [at[begin:end] for begin, end in pairwise(first.tolist())]


def _common_labels(fragments: Sequence[Fragment]) -> tuple[NDArray[np.int32], list[str]]:
    """Let the labels of all fragments point into one list."""
    known: dict[str, int] = {}
    found = []
    for f in fragments:
        # The last entry: no name.
        numbers = [known.setdefault(name, len(known)) for name in f.labels]
        found.append(np.array([*numbers, UNKNOWN], np.int32)[f.label] if numbers else f.label)
    return np.concatenate(found), list(known)

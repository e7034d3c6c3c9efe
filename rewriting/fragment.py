"""Fragments: the nodes of a document that travelled, with what travelled of them.

A fragment stands where a document would: it is a forest for ``reduce``, and it answers for names, values and
contents, as far as it has them. A node is known by its *position* in the fragment; its ID is the one it has in the
document. Node sets always speak of IDs, so results computed from fragments equal those matched on the document.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rewriting.errors import NotCarriedError, UnreadableContentError
from rewriting.kernels import kernel
from xmlmatch import Document, DocumentError, Limits, NodeId
from xmlmatch.handlers import END, START
from xmlmatch.values import satisfying

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from xmlmatch import Predicate
    from xmlmatch.nodesets import Source

UNKNOWN = -1
# The document was within its limits; what is cut out of it need not be held against stricter ones.
_ACCEPTED: Final = Limits(max_bytes=512 << 20, max_depth=1 << 20)


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

    def __len__(self) -> int:
        return len(self.pre)

    @cached_property
    def _forest(self) -> NDArray[np.int32]:
        forest = np.zeros((2, len(self)), np.int32)
        _enclose(self.pre, self.span, forest)
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
        try:
            return Document.parse(self.cont(node).encode(), _ACCEPTED).val(0)
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


@kernel
def _enclose(pre: Any, span: Any, forest: Any) -> None:
    """Find for each node the nearest one above, and how many are below."""
    above = -1
    for i in range(pre.size):
        while above >= 0 and pre[above] + span[above] < pre[i]:
            above = forest[0, above]
        forest[0, i] = above
        above = i
    for i in range(pre.size - 1, -1, -1):
        if forest[0, i] >= 0:
            forest[1, forest[0, i]] += forest[1, i] + 1


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


def cut(
    nodes: Source,
    positions: NDArray[np.int32],
    *,
    names: NDArray[np.int32],
    vals: NDArray[np.int32],
    conts: NDArray[np.int32],
) -> Fragment:
    """Copy nodes out of a document or fragment, with the names, values and contents of some of them.

    A value is left out where the content goes along, for it can be read from there.
    """
    n = len(positions)
    label, labels = np.full(n, UNKNOWN, np.int32), _used_labels(nodes, names)
    at = {name: i for i, name in enumerate(labels)}
    label[np.searchsorted(positions, names)] = [at[nodes.labels[i]] for i in nodes.label[names].tolist()]
    payload, spans = _payload(nodes, np.setdiff1d(vals, conts), conts)
    slices = np.full((2, 2, n), UNKNOWN, np.int64)
    slices[0][:, np.searchsorted(positions, np.setdiff1d(vals, conts))] = spans[0]
    slices[1][:, np.searchsorted(positions, conts)] = spans[1]
    return Fragment(
        nodes.pre[positions], nodes.span[positions], nodes.level[positions], label, labels, slices[0], slices[1],
        payload,
    )  # fmt: skip


def _used_labels(nodes: Source, names: NDArray[np.int32]) -> list[str]:
    return sorted({nodes.labels[i] for i in nodes.label[names].tolist()})


def _payload(
    nodes: Source, vals: NDArray[np.int32], conts: NDArray[np.int32]
) -> tuple[NDArray[np.uint8], tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Copy values and contents into one buffer; return it, and the slices of either."""
    if isinstance(nodes, Document):
        spans = nodes.nodes[[START, END]][:, vals].astype(np.int64)
        first = _gathered(nodes.chars, spans)
    else:
        first = [np.frombuffer(nodes.val(i).encode(), np.uint8) for i in vals.tolist()]
    second = [np.frombuffer(nodes.cont(i).encode(), np.uint8) for i in conts.tolist()]
    parts = [*first, *second]
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    slices = np.stack((np.concatenate(([0], ends[:-1])) if len(ends) else ends, ends))
    buffer = np.concatenate(parts) if parts else np.empty(0, np.uint8)
    return buffer, (slices[:, : len(first)], slices[:, len(first) :])


def _gathered(chars: NDArray[np.uint8], spans: NDArray[np.int64]) -> list[NDArray[np.uint8]]:
    return [chars[start:end] for start, end in spans.T.tolist()]


def merged(fragments: Sequence[Fragment]) -> Fragment:
    """Unite fragments of one document; what any of them knows of a node is known."""
    pre = np.unique(np.concatenate([f.pre for f in fragments]))
    n = len(pre)
    span, level = np.zeros(n, np.int32), np.zeros(n, np.int32)
    label = np.full(n, UNKNOWN, np.int32)
    slices = np.full((2, 2, n), UNKNOWN, np.int64)
    labels: dict[str, int] = {}
    offset = 0
    for f in fragments:
        at = np.searchsorted(pre, f.pre)
        span[at], level[at] = f.span, f.level
        numbers = np.array([labels.setdefault(name, len(labels)) for name in f.labels] or [0], np.int32)
        known = f.label >= 0
        label[at[known]] = numbers[f.label[known]]
        for mine, theirs in zip(slices, (f.vals, f.conts), strict=True):
            known = theirs[0] >= 0
            mine[:, at[known]] = theirs[:, known] + offset
        offset += len(f.payload)
    payload = np.concatenate([f.payload for f in fragments])
    return Fragment(pre, span, level, label, list(labels), slices[0], slices[1], payload)

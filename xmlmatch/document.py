"""Documents: bytes to arrays in one pass.

A node's index in the arrays is its ``pre`` number. Attributes are nodes, right after their element; comments
and processing instructions are none. ``Document.parse`` allocates buffers sized from the bytes, lets the
compiled handlers fill them, resolves namespaces where there are any, and keeps exact copies.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from xmlmatch import expat, handlers, namespaces, serialize
from xmlmatch.encodings import to_utf8
from xmlmatch.errors import DocumentError
from xmlmatch.kernels import kernel
from xmlmatch.namespaces import Declaration, Scopes
from xmlmatch.prolog import ENTITIES_DEFINED, without_external_subset

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Arrays = tuple[
        NDArray[np.int32],
        NDArray[np.uint8],
        NDArray[np.int32],
        NDArray[np.uint8],
        NDArray[np.int32],
        NDArray[np.int32],
        NDArray[np.uint8],
    ]

_FIRST_NAMES: Final = 512  # a power of two
_SECRET: Final = int.from_bytes(os.urandom(7))
_KEPT_BYTES: Final = 1 << 20
_MOST_MADE_CHARS: Final = 1 << 22
_MOST_DEFAULTED: Final = 4
"""How many times larger than its bytes a document may become by defaulted attributes, beyond the first MiB."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a document may have at the most; each bounds memory and time.

    ``max_bytes``: a document needs about three times its size while it is parsed.
    ``max_depth``: elements inside each other; libxml2 refuses beyond the same number.
    ``max_nodes``: elements and attributes; about 24 bytes each, and as much again per matching pattern.
    ``max_names``: distinct names.
    """

    max_bytes: int = 256 << 20
    max_depth: int = 256
    max_nodes: int = 32_000_000
    max_names: int = 1 << 17

    def __post_init__(self) -> None:
        if not 0 < self.max_bytes <= 512 << 20:
            raise ValueError("max_bytes: from 1 to 512 MiB, for positions are 32-bit numbers")
        if min(self.max_depth, self.max_nodes, self.max_names) < 1:
            raise ValueError("max_depth, max_nodes and max_names must be positive")


class NodeId(NamedTuple):
    """A structural ID: ``a`` is an ancestor of ``d`` iff ``a.pre < d.pre <= a.pre + a.size``."""

    pre: int
    size: int
    level: int


@dataclass(frozen=True, slots=True)
class LabelIndex:
    """The nodes of every label in document order: ``order[first[label] : first[label + 1]]``."""

    order: NDArray[np.int32]
    first: NDArray[np.int32]
    elements: NDArray[np.int32]


class Texts(NamedTuple):
    """Texts of nodes as slices (rows: start, end) of one payload, -1 where there is none."""

    payload: NDArray[np.uint8]
    vals: NDArray[np.int64]
    conts: NDArray[np.int64]


class _Texts(dict[int, str]):
    """Strings already made for a document: many patterns ask for the same nodes. Emptied when it grows large."""

    chars = 0

    def keep(self, key: int, text: str) -> str:
        self.chars += len(text)
        if self.chars > _MOST_MADE_CHARS:
            self.clear()
            self.chars = len(text)
        self[key] = text
        return text


@dataclass(frozen=True)
class Document:
    """A parsed document. Make one with ``Document.parse``.

    >>> document = Document.parse(b"<news><item id='7'>Rain <b>again</b></item></news>")
    >>> [document.label_of(node) for node in range(len(document))]
    ['news', 'item', '@id', 'b']
    >>> document.val(1), document.cont(3), document.node_id(1)
    ('Rain again', '<b>again</b>', NodeId(pre=1, size=2, level=1))
    """

    nodes: NDArray[np.int32] = field(repr=False)
    """Rows: name, parent, size, level, start and end of the value in ``chars``."""
    chars: NDArray[np.uint8] = field(repr=False)
    """Character data in document order, then the attribute values; UTF-8."""
    label: NDArray[np.int32] = field(repr=False)
    labels: list[str] = field(repr=False)
    declarations: list[Declaration] = field(repr=False)
    scopes: Scopes = field(repr=False)
    arrays: Arrays = field(repr=False)
    """What the serialiser walks: nodes, chars, names, name bytes, declarations, extras, extra bytes."""

    @classmethod
    def parse(cls, data: bytes, limits: Limits | None = None) -> Document:
        """Read a document; raise ``DocumentError`` if it is ill formed, uses entities or passes a limit."""
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"a document is bytes, not {type(data).__name__}; encode text first")
        return _parse(bytes(data), limits or Limits())

    def __len__(self) -> int:
        return int(self.nodes.shape[1])

    def _row(self, field: int) -> NDArray[np.int32]:
        row: NDArray[np.int32] = self.nodes[field]
        return row

    @property
    def parent(self) -> NDArray[np.int32]:
        """The parent's ``pre`` of each node; -1 for the root."""
        return self._row(handlers.PARENT)

    @property
    def size(self) -> NDArray[np.int32]:
        """How many nodes stand below each node."""
        return self._row(handlers.SIZE)

    @property
    def level(self) -> NDArray[np.int32]:
        """The depth of each node; 0 for the root element."""
        return self._row(handlers.LEVEL_OF)

    @property
    def pre(self) -> NDArray[np.int32]:
        """The number of each node in document order: its index."""
        return np.arange(len(self), dtype=np.int32)

    @property
    def span(self) -> NDArray[np.int32]:
        """The same as ``size``: nothing of a document is missing, as it may be in a part of one."""
        return self.size

    def positions(self, pre: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return where nodes stand in the arrays: at their ``pre``."""
        return pre

    @cached_property
    def index(self) -> LabelIndex:
        """The nodes grouped by label; made at first use and kept."""
        attribute = np.array([text.startswith("@") for text in self.labels], dtype=np.bool_)
        return LabelIndex(*_group(self.label, attribute))

    def label_of(self, node: int) -> str:
        """Spell the label of a node: ``name``, ``@name``, ``{uri}name`` or ``@{uri}name``."""
        return self.labels[int(self.label[node])]

    def val(self, node: int) -> str:
        """Return the XPath string value of a node."""
        return self._made.get(2 * node) or self._made.keep(2 * node, self._val(node))

    def cont(self, node: int) -> str:
        """Serialise the element ``node`` as XML that stands alone, namespaces in scope included."""
        return self._made.get(2 * node + 1) or self._made.keep(2 * node + 1, self._cont(node))

    def _val(self, node: int) -> str:
        start, end = self.nodes[handlers.START, node], self.nodes[handlers.END, node]
        raw: bytes = self.chars[start:end].tobytes()
        return raw.decode()

    def _cont(self, node: int) -> str:
        if self.label_of(node).startswith("@"):
            raise ValueError("an attribute has no content; ask for its val")
        return serialize.subtree(self, node).decode()

    @cached_property
    def texts(self) -> Texts:
        """The values of all nodes; contents are left out."""
        vals = self.nodes[handlers.START : handlers.END + 1].astype(np.int64)
        return Texts(self.chars, vals, np.full((2, len(self)), -1, np.int64))

    @cached_property
    def texts_with_contents(self) -> Texts:
        """The values of all nodes and the contents of all elements.

        Contents are left out where they would take much memory, and where each has to be written for itself, for
        namespaces must be declared on it.
        """
        if self.declarations or len(self.chars) > _KEPT_BYTES or len(self) > _KEPT_BYTES:
            return self.texts
        written, spans = serialize.everything(self)
        conts = np.where(spans >= 0, spans + len(self.chars), -1)
        return Texts(np.concatenate((self.chars, written)), self.texts.vals, conts)

    @cached_property
    def _made(self) -> _Texts:
        return _Texts()

    def node_id(self, node: int) -> NodeId:
        """Return the structural ID of a node."""
        return NodeId(node, int(self.size[node]), int(self.level[node]))


@kernel
def _group(
    label: NDArray[np.int32], attribute: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Counting sort of the nodes by label, and the list of elements."""
    first = np.zeros(attribute.size + 1, np.int32)
    for node in range(label.size):
        first[label[node] + 1] += 1
    for i in range(attribute.size):
        first[i + 1] += first[i]
    free = first[:-1].copy()
    order = np.empty(label.size, np.int32)
    elements = np.empty(label.size, np.int32)
    n = 0
    for node in range(label.size):
        order[free[label[node]]] = node
        free[label[node]] += 1
        if not attribute[label[node]]:
            elements[n] = node
            n += 1
    return order, first, elements[:n].copy()


class _Buffers:
    """What the handlers write into, and the state that tells them where."""

    def __init__(self, *, nodes: int, size: int, names: int) -> None:
        self.nodes = np.empty((handlers.FIELDS, nodes), np.int32)
        self.text = np.empty(size, np.uint8)
        self.values = np.empty(size, np.uint8)
        self.names = np.empty((handlers.NAME_FIELDS, names), np.int32)
        self.table = np.empty(2 * names, np.int32)
        self.name_bytes = np.empty(size, np.uint8)
        self.extras = np.empty((handlers.EXTRA_FIELDS, nodes), np.int32)
        self.extra_bytes = np.empty(size, np.uint8)
        self.declarations = np.empty((handlers.DECLARATION_FIELDS, nodes), np.int32)
        self.state = np.zeros(handlers.SLOTS, np.int64)
        self.state[handlers.CAPACITY] = nodes
        self.state[handlers.BYTES_CAPACITY] = size
        self.state[handlers.NAMES_CAPACITY] = names
        arrays: list[NDArray[np.int32] | NDArray[np.uint8]] = [self.nodes, self.text, self.values, self.names]
        arrays += [self.table, self.name_bytes, self.extras, self.extra_bytes, self.declarations]
        for slot, array in enumerate(arrays, start=handlers.NODES_AT):
            self.state[slot] = array.ctypes.data
        self.state[handlers.SECRET] = _SECRET
        self.address = self.state.ctypes.data

    def begin(self, max_depth: int) -> None:
        """Empty the buffers."""
        self.state[: handlers.MAX_LEVEL] = 0
        self.state[handlers.CURRENT] = self.state[handlers.LEVEL] = -1
        self.state[handlers.MAX_LEVEL] = max_depth
        self.table.fill(-1)

    def holds(self, *, nodes: int, size: int, names: int) -> bool:
        """Say whether the buffers are at least this large."""
        return self.nodes.shape[1] >= nodes and self.text.size >= size and self.names.shape[1] >= names

    def count(self, slot: int) -> int:
        return int(self.state[slot])


# Allocating costs a third of parsing a small document, so each thread keeps the buffers of one.
_kept: Final = threading.local()


def _buffers(*, nodes: int, size: int, names: int) -> _Buffers:
    """Take the thread's buffers if they are large enough, or make some and keep them unless they are huge."""
    kept: _Buffers | None = getattr(_kept, "buffers", None)
    if kept is not None and kept.holds(nodes=nodes, size=size, names=names):
        return kept
    if size > _KEPT_BYTES:
        return _Buffers(nodes=nodes, size=size, names=names)
    _kept.buffers = _Buffers(nodes=2 * nodes, size=2 * size, names=names)
    made: _Buffers = _kept.buffers
    return made


def _parse(data: bytes, limits: Limits) -> Document:
    if len(data) > limits.max_bytes:
        raise DocumentError(f"the document has {len(data):,} bytes; the limit is {limits.max_bytes:,}")
    data, encoding = to_utf8(data)
    data, careful = without_external_subset(data)
    # '<' opens every element, comment and instruction, '=' stands in every attribute and declaration.
    nodes = min(data.count(b"<") + data.count(b"=") + 16, limits.max_nodes + 1)
    size, names = len(data) + 64, _FIRST_NAMES
    while True:
        buffers = _buffers(nodes=nodes, size=size, names=names)
        buffers.begin(limits.max_depth)
        state = buffers.state
        expat.run(
            data,
            handlers.HANDLERS,
            buffers.address,
            encoding=encoding,
            careful=careful,
            refused=lambda state=state: bool(state[handlers.REFUSAL]),  # type: ignore[misc]  # bound per loop
        )
        refusal = buffers.count(handlers.REFUSAL)
        if refusal != handlers.GROW:
            break
        # Only many names, or attributes defaulted by an internal subset, outgrow the first estimate.
        nodes, size, names = _grown(buffers, len(data), nodes, size, names, limits)
    if refusal:
        raise DocumentError(_REASONS[refusal].format(limits=limits))
    if buffers.count(handlers.NODES) > limits.max_nodes:
        raise DocumentError(f"the document has more than {limits.max_nodes:,} nodes")
    if buffers.count(handlers.NAMES) > limits.max_names:
        raise DocumentError(f"the document has more than {limits.max_names:,} distinct names")
    return _document(buffers)


_REASONS: Final = {
    handlers.TOO_DEEP: "elements are nested deeper than {limits.max_depth}",
    handlers.ENTITY_DEFINED: ENTITIES_DEFINED,
    handlers.ENTITY_USED: "the document uses an entity that XML does not predefine; write the text itself",
}


def _grown(
    buffers: _Buffers, length: int, nodes: int, size: int, names: int, limits: Limits
) -> tuple[int, int, int]:
    """Ask for larger buffers after ``GROW``, or refuse at the limits."""
    if buffers.count(handlers.NAMES) == buffers.names.shape[1]:
        if names >= limits.max_names:
            raise DocumentError(f"the document has more than {limits.max_names:,} distinct names")
        return nodes, size, names * 16
    if buffers.count(handlers.NODES) > limits.max_nodes:
        raise DocumentError(f"the document has more than {limits.max_nodes:,} nodes")
    if size >= min(_MOST_DEFAULTED * length + (1 << 20), 2 * limits.max_bytes):
        raise DocumentError("attributes defaulted by the internal subset multiply the document's size")
    return min(nodes * 4, limits.max_nodes + 1), min(size * 4, 2 * limits.max_bytes), names


def _document(buffers: _Buffers) -> Document:
    """Copy what was filled, exactly, and resolve namespaces where the document has any."""
    text, values = buffers.count(handlers.TEXT), buffers.count(handlers.VALUES)
    nodes = buffers.nodes[:, : buffers.count(handlers.NODES)].copy()
    declared = buffers.declarations[:, : buffers.count(handlers.DECLARATIONS)].copy()
    chars = np.concatenate((buffers.text[:text], buffers.values[:values]))
    name_spans = buffers.names[:2, : buffers.count(handlers.NAMES)].copy()
    pool = buffers.name_bytes[: buffers.count(handlers.NAME_BYTES)].copy()
    names = _names(name_spans, pool)
    attribute = np.array([name.startswith("@") for name in names], dtype=np.bool_)
    # Attribute values stand behind the text now.
    nodes[handlers.START :, attribute[nodes[handlers.NAME]]] += text
    declared[2:] += text
    declarations = [
        namespaces.check(Declaration(element, _prefix(names[name]), chars[start:end].tobytes().decode()))
        for element, name, start, end in declared.T.tolist()
    ]
    scopes = Scopes(declarations, nodes[handlers.PARENT])
    label, labels = nodes[handlers.NAME], names
    if declarations or b":" in pool.tobytes():
        label, labels = namespaces.resolve(label, names, nodes[handlers.PARENT], scopes)
    extras = buffers.extras[:, : buffers.count(handlers.EXTRAS)].copy()
    extra_bytes = buffers.extra_bytes[: buffers.count(handlers.EXTRA_BYTES)].copy()
    arrays = (nodes, chars, name_spans, pool, declared, extras, extra_bytes)
    return Document(nodes, chars, label, labels, declarations, scopes, arrays)


def _names(spans: NDArray[np.int32], pool: NDArray[np.uint8]) -> list[str]:
    raw = pool.tobytes()
    return [raw[start : start + length].decode() for start, length in spans.T.tolist()]


def _prefix(name: str) -> str:
    """Return the prefix that ``@xmlns`` or ``@xmlns:p`` declares."""
    _, colon, prefix = name.partition(":")
    if colon and not namespaces.NCNAME.fullmatch(prefix):
        raise DocumentError(f"{name[1:]!r} declares no prefix that is a name")
    return prefix

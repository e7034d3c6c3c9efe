"""Columns: what one link carries for one document, and their compact encoding.

A fragment with every node and payload once, and per query node a list of positions in it. As bytes::

    version | n | pre, as differences | spans | levels | names | values | contents | lists

All numbers are varints. Names: a dictionary, then per node 0 or 1 + its place; both left out (one 0) where no node
has a name. Values and contents: how many there are; if any, per node 0 or 1 + length, then all bytes. A list:
the query node, then how its positions are written, whichever is shortest: 0 all nodes, 1 a bitmap, 2 how many and
their differences.
No match is a column set with no node.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from rewriting import varints
from rewriting.errors import MalformedColumnsError
from rewriting.fragment import UNKNOWN, Fragment
from rewriting.kernels import kernel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

VERSION: Final = 1
_ALL, _BITMAP, _DIFFERENCES = range(3)
_MOST_PRE: Final = (1 << 31) - 2


@dataclass(frozen=True, slots=True)
class ColumnLimits:
    """What columns from outside may have at the most; each bounds memory and time.

    ``max_bytes``: of one document's columns on one link. ``max_level``: as deep as documents may be (their own
    ``Limits`` must allow no more).
    ``max_lists``: one per query node. ``max_names``: distinct names. ``max_positions``: in all lists that do not
    simply hold all nodes.
    """

    max_bytes: int = 64 << 20
    max_level: int = 256
    max_lists: int = 4096
    max_names: int = 1 << 17
    max_positions: int = 1 << 24


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """A fragment, and by query node the positions (ascending) its provider sends."""

    nodes: Fragment
    lists: Mapping[int, NDArray[np.int32]]

    def __bool__(self) -> bool:
        return len(self.nodes) > 0


def nothing() -> Columns:
    """Make the columns of a document that does not match."""
    none = np.empty(0, np.int32)
    slices = np.empty((2, 0), np.int64)
    return Columns(Fragment(none, none, none, none, [], slices, slices, np.empty(0, np.uint8)), {})


def encode(columns: Columns) -> bytes:
    """Write columns as bytes; ``decode_untrusted`` reads them back."""
    nodes = columns.nodes
    parts = [bytes((VERSION,)), varints.encode(np.array([len(nodes)]))]
    if len(nodes):
        parts += [varints.encode(_differences(nodes.pre)), varints.encode(nodes.span), varints.encode(nodes.level)]
        parts += [_names(nodes), _slices(nodes.vals, nodes.payload), _slices(nodes.conts, nodes.payload)]
        parts.append(varints.encode(np.array([len(columns.lists)])))
        for n, positions in sorted(columns.lists.items()):
            parts += [varints.encode(np.array([n])), _written(positions, len(nodes))]
    return b"".join(parts)


def _differences(numbers: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the first number, then by how much each exceeds the one before, less 1."""
    wide = numbers.astype(np.int64)
    return np.concatenate((wide[:1], np.diff(wide) - 1))


def _names(nodes: Fragment) -> bytes:
    names = [label.encode() for label in nodes.labels]
    parts = [varints.encode(np.array([len(names)]))]
    for name in names:
        parts += [varints.encode(np.array([len(name)])), name]
    if names:
        parts.append(varints.encode(nodes.label + 1))
    return b"".join(parts)


def _slices(slices: NDArray[np.int64], payload: NDArray[np.uint8]) -> bytes:
    known = slices[0] >= 0
    lengths = np.where(known, slices[1] - slices[0] + 1, 0)
    texts = [payload[start:end].tobytes() for start, end in slices[:, known].T.tolist()]
    head = varints.encode(np.array([len(texts)]))
    return b"".join((head, varints.encode(lengths), *texts)) if texts else head


def _written(positions: NDArray[np.int32], count: int) -> bytes:
    """Write positions among ``count`` nodes in the shortest way."""
    if len(positions) == count:
        return bytes((_ALL,))
    bits = np.zeros(count, np.uint8)
    bits[positions] = 1
    bitmap = np.packbits(bits).tobytes()
    listed = varints.encode(np.concatenate(([len(positions)], _differences(positions))))
    if len(bitmap) <= len(listed):
        return bytes((_BITMAP,)) + bitmap
    return bytes((_DIFFERENCES,)) + listed


def decode_untrusted(data: bytes, limits: ColumnLimits | None = None) -> Columns:
    """Read columns; raise ``MalformedColumnsError`` for anything ``encode`` would not write, or over a limit."""
    bounds = limits or ColumnLimits()
    if len(data) > bounds.max_bytes:
        raise MalformedColumnsError(f"over {bounds.max_bytes:,} bytes", bounds.max_bytes)
    return _Reader(data, bounds).columns()


class _Reader:
    """Reads columns from bytes; every count is checked against what is left before anything is made of it."""

    def __init__(self, data: bytes, limits: ColumnLimits) -> None:
        self._data = data
        self._bytes = np.frombuffer(data, np.uint8)
        self._at = 0
        self._limits = limits

    def columns(self) -> Columns:
        if not self._data or self._data[0] != VERSION:
            raise self._wrong("not version 1")
        self._at = 1
        count = self._count("nodes", len(self._data))
        if count == 0:
            self._ended()
            return nothing()
        pre = self._ascending(count, _MOST_PRE)
        span, level = self._numbers(count, _MOST_PRE), self._numbers(count, self._limits.max_level)
        self._check_nesting(pre, span, level)
        labels, label = self._names(count)
        vals, conts = self._slices(count), self._slices(count)
        nodes = Fragment(
            pre.astype(np.int32), span.astype(np.int32), level.astype(np.int32), label, labels, vals, conts,
            self._bytes,
        )  # fmt: skip
        lists = self._lists(count)
        self._ended()
        return Columns(nodes, lists)

    def _wrong(self, reason: str) -> MalformedColumnsError:
        return MalformedColumnsError(reason, self._at)

    def _ended(self) -> None:
        if self._at != len(self._data):
            raise self._wrong("more bytes than belong")

    def _numbers(self, count: int, most: int) -> NDArray[np.int64]:
        if count > len(self._data) - self._at:
            raise self._wrong("the bytes end early")
        out = np.empty(count, np.int64)
        at = varints.decode(self._bytes, self._at, out)
        if at < 0:
            raise self._wrong("the bytes end early, or a number is not written as it should be")
        if int(out.max(initial=0)) > most:
            raise self._wrong(f"a number is over {most:,}")
        self._at = at
        return out

    def _count(self, what: str, most: int) -> int:
        count = int(self._numbers(1, (1 << 63) - 1)[0])
        if count > most:
            raise self._wrong(f"more than {most:,} {what}")
        return count

    def _ascending(self, count: int, most: int) -> NDArray[np.int64]:
        found = np.cumsum(self._numbers(count, most) + 1) - 1
        if int(found[-1]) > most:
            raise self._wrong(f"a number is over {most:,}")
        return found

    def _check_nesting(self, pre: NDArray[np.int64], span: NDArray[np.int64], level: NDArray[np.int64]) -> None:
        """Nodes stand beside or inside each other, deeper ones inside."""
        if int((pre + span).max()) > _MOST_PRE:
            raise self._wrong("a node reaches too far")
        if not _nested(pre, span, level, np.empty(len(pre), np.int64)):
            raise self._wrong("nodes overlap")

    def _text(self, length: int) -> bytes:
        if length > len(self._data) - self._at:
            raise self._wrong("the bytes end early")
        self._at += length
        return self._data[self._at - length : self._at]

    def _names(self, count: int) -> tuple[list[str], NDArray[np.int32]]:
        names = self._count("names", min(self._limits.max_names, len(self._data) - self._at))
        try:
            labels = [self._text(self._count("bytes of a name", len(self._data))).decode() for _ in range(names)]
        except UnicodeDecodeError:
            raise self._wrong("a name is not UTF-8") from None
        if any(a >= b for a, b in pairwise(labels)):
            raise self._wrong("names are not in order")
        if not labels:
            return labels, np.full(count, UNKNOWN, np.int32)
        numbers = self._numbers(count, len(labels))
        if len(np.setdiff1d(numbers, [0])) < len(labels):
            raise self._wrong("a name is not used")
        return labels, (numbers - 1).astype(np.int32)

    def _slices(self, count: int) -> NDArray[np.int64]:
        given = self._count("texts", count)
        if not given:
            return np.full((2, count), UNKNOWN, np.int64)
        lengths = self._numbers(count, len(self._data))
        known = lengths > 0
        if np.count_nonzero(known) != given:
            raise self._wrong("another number of texts than announced")
        ends = np.cumsum(np.where(known, lengths - 1, 0)) + self._at
        if int(ends[-1]) > len(self._data):
            raise self._wrong("the bytes end early")
        slices = np.where(known, np.stack((ends - lengths + 1, ends)), UNKNOWN)
        self._check_text(slices[0][known & (lengths > 1)], self._at, int(ends[-1]))
        self._at = int(ends[-1])
        return slices

    def _check_text(self, starts: NDArray[np.int64], begin: int, end: int) -> None:
        """All is UTF-8, and no slice begins inside a character."""
        try:
            self._data[begin:end].decode()
        except UnicodeDecodeError:
            raise self._wrong("a text is not UTF-8") from None
        if np.any(self._bytes[starts] & 0xC0 == 0x80):
            raise self._wrong("a text begins inside a character")

    def _lists(self, count: int) -> dict[int, NDArray[np.int32]]:
        lists: dict[int, NDArray[np.int32]] = {}
        everything, last, left = np.arange(count, dtype=np.int32), -1, self._limits.max_positions
        for _ in range(self._count("lists", self._limits.max_lists)):
            n = self._count("query nodes", self._limits.max_lists)
            if n <= last:
                raise self._wrong("lists are not in order")
            start, last = self._at, n
            lists[n] = self._positions(everything)
            if lists[n] is not everything:
                left -= len(lists[n])
                if left < 0:
                    raise self._wrong(f"more than {self._limits.max_positions:,} positions")
                if _written(lists[n], count) != self._data[start : self._at]:
                    raise self._wrong("a list is not written in the shortest way")
        return lists

    def _positions(self, everything: NDArray[np.int32]) -> NDArray[np.int32]:
        count = len(everything)
        match self._text(1)[0]:
            case 0:
                return everything
            case 1:
                bits = np.unpackbits(np.frombuffer(self._text(-(-count // 8)), np.uint8))
                if bits[count:].any():
                    raise self._wrong("a list names nodes that are not there")
                return np.flatnonzero(bits).astype(np.int32)
            case 2:
                length = self._count("positions", count)
                found = self._ascending(length, count - 1) if length else np.empty(0, np.int64)
                return found.astype(np.int32)
            case _:
                raise self._wrong("a list is written in an unknown way")


@kernel
def _nested(
    pre: NDArray[np.int64], span: NDArray[np.int64], level: NDArray[np.int64], above: NDArray[np.int64]
) -> bool:
    """Say whether each node ends where its nearest one above does, or before, and is deeper."""
    last = -1
    for i in range(pre.size):
        while last >= 0 and pre[last] + span[last] < pre[i]:
            last = above[last]
        if last >= 0 and (pre[i] + span[i] > pre[last] + span[last] or level[i] <= level[last]):
            return False
        above[i] = last
        last = i
    return True

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
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from rewriting import column_reading as reading
from rewriting.column_writing import VERSION, write
from rewriting.errors import ColumnsTooLargeError, MalformedColumnsError
from rewriting.fragment import Fragment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

_NOTHING: Final = bytes((VERSION, 0))
_NO_BYTES: Final = np.empty(0, np.uint8)
_NO_NAMES: Final = np.zeros(1, np.uint8)
_NO_POSITIONS: Final = np.empty(0, np.int32)


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


LIMITS: Final = ColumnLimits()


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
    """Write columns as bytes; ``decode_untrusted`` reads them back. ``ColumnsTooLargeError`` if it would not."""
    nodes = columns.nodes
    if not len(nodes):
        return _NOTHING
    numbers = sorted(columns.lists)
    lists = [columns.lists[n] for n in numbers]
    names, label = _names(nodes)
    parts = (
        nodes.pre, nodes.span, nodes.level, label, names, *map(np.ascontiguousarray, (nodes.vals, nodes.conts)),
        _read_only(nodes.payload), np.array(numbers, np.int64),
        np.array(list(accumulate(map(len, lists))), np.int64), np.concatenate(lists) if lists else _NO_POSITIONS,
    )  # fmt: skip
    size = write(_NO_BYTES, *parts)
    if size > LIMITS.max_bytes:
        raise ColumnsTooLargeError(size, LIMITS.max_bytes)
    out = np.empty(size, np.uint8)
    write(out, *parts)
    return out.tobytes()


def _read_only(payload: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Give a payload the one type that is compiled for: what was received cannot be written to."""
    if payload.flags.writeable:
        payload = payload.view()
        payload.flags.writeable = False
    return payload


def _names(nodes: Fragment) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Write the dictionary of the names that are used, in order; return it, and each node's place in it."""
    used = np.unique(nodes.label).tolist() if nodes.labels else []
    if used and used[0] < 0:
        del used[0]
    if not used:
        return _NO_NAMES, nodes.label
    used.sort(key=nodes.labels.__getitem__)
    places = np.full(len(nodes.labels) + 1, -1, np.int32)  # the last entry: no name
    places[used] = np.arange(len(used))
    parts = [number(len(used))]
    for i in used:
        name = nodes.labels[i].encode()
        parts += [number(len(name)), name]
    return np.frombuffer(bytearray(b"".join(parts)), np.uint8), places[nodes.label]


def number(value: int) -> bytes:
    """Write a whole number, seven bits a byte, the lowest first.

    >>> number(300).hex()
    'ac02'
    """
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode_untrusted(data: bytes, limits: ColumnLimits = LIMITS) -> Columns:
    """Read columns; raise ``MalformedColumnsError`` for anything ``encode`` would not write, or over a limit."""
    if len(data) > limits.max_bytes:
        raise MalformedColumnsError(f"over {limits.max_bytes:,} bytes", limits.max_bytes)
    if not data or data[0] != VERSION:
        raise MalformedColumnsError("not version 1", 0)
    if data == _NOTHING:
        return nothing()
    return _Reader(data, limits).columns()


class _Reader:
    """Reads columns from bytes; the compiled passes check every count before anything is made of it."""

    def __init__(self, data: bytes, limits: ColumnLimits) -> None:
        self._data, self._limits = data, limits
        self._bytes = np.frombuffer(data, np.uint8)
        self._state = np.zeros(reading.STATE, np.int64)
        self._state[reading.AT] = 1

    def columns(self) -> Columns:
        nodes = self._nodes(self._count())
        lists = self._lists(len(nodes))
        if self._state[reading.AT] != len(self._data):
            raise self._wrong("more bytes than belong")
        return Columns(nodes, lists)

    def _wrong(self, reason: str) -> MalformedColumnsError:
        return MalformedColumnsError(reason, int(self._state[reading.AT]))

    def _check(self) -> None:
        code = int(self._state[reading.CODE])
        if code:
            raise self._wrong(_REASONS[code].format(limits=self._limits))

    def _count(self) -> int:
        """Read how many nodes there are; each takes three bytes at least."""
        count, at = reading.read_number(self._bytes, 1)
        if count < 0:
            raise self._wrong(_REASONS[reading.ENDS_EARLY])
        if 3 * count > len(self._data) - at or count == 0:
            raise self._wrong("more nodes than bytes for them" if count else "more bytes than belong")
        self._state[reading.AT] = at
        return count

    def _nodes(self, count: int) -> Fragment:
        ints, slices = np.empty((6, count), np.int32), np.empty((4, count), np.int64)
        names, state = np.empty((3, min(count, self._limits.max_names)), np.int64), self._state
        reading.read_nodes(self._bytes, self._limits.max_level, self._limits.max_names, ints, slices, names, state)
        self._check()
        labels = self._labels(names[:2, : state[reading.NAMES]])
        self._text(reading.VALS)
        self._text(reading.CONTS)
        return Fragment(
            ints[reading.PRE], ints[reading.SPAN], ints[reading.LEVEL], ints[reading.LABEL], labels, slices[:2],
            slices[2:], self._bytes, ints[reading.PARENT :],
        )  # fmt: skip

    def _labels(self, names: NDArray[np.int64]) -> list[str]:
        try:
            labels = [self._data[start:end].decode() for start, end in names.T.tolist()]
        except UnicodeDecodeError:
            raise self._wrong("a name is not UTF-8") from None
        if any(a >= b for a, b in pairwise(labels)):
            raise self._wrong("names are not in order")
        return labels

    def _text(self, which: int) -> None:
        start, end = self._state[which : which + 2].tolist()
        try:
            self._data[start:end].decode()
        except UnicodeDecodeError:
            raise self._wrong("a text is not UTF-8") from None

    def _lists(self, count: int) -> dict[int, NDArray[np.int32]]:
        left = len(self._data) - int(self._state[reading.AT])
        lists = np.empty((3, min(self._limits.max_lists, left // 2)), np.int64)
        # No byte holds more than eight positions.
        flat = np.empty(min(8 * left, self._limits.max_positions), np.int32)
        found = reading.read_lists(self._bytes, count, self._limits.max_lists, lists, flat, self._state)
        self._check()
        numbers, starts, ends = lists[:, :found].tolist()
        everything = np.arange(count, dtype=np.int32)
        flat = flat[: max(ends, default=0)].copy() if found else flat[:0]
        return {
            n: flat[start:end] if end >= 0 else everything
            for n, start, end in zip(numbers, starts, ends, strict=True)
        }


_REASONS: Final = {
    reading.ENDS_EARLY: "the bytes end early, or a number is not written as it should be",
    reading.OVER_MOST_PRE: f"a number is over {reading.MOST_PRE:,}",
    reading.OVER_LEVEL: "a level is over {limits.max_level:,}",
    reading.REACHES_TOO_FAR: "a node reaches too far",
    reading.OVERLAP: "nodes overlap",
    reading.TOO_MANY_NAMES: "more than {limits.max_names:,} names",
    reading.UNKNOWN_NAME: "a name is not there",
    reading.UNUSED_NAME: "a name is not used",
    reading.TOO_MANY_TEXTS: "more texts than nodes",
    reading.OTHER_TEXTS: "another number of texts than announced",
    reading.INSIDE_CHARACTER: "a text begins inside a character",
    reading.TOO_MANY_LISTS: "more than {limits.max_lists:,} lists",
    reading.UNORDERED_LISTS: "lists are not in order",
    reading.NOT_THERE: "a list names nodes that are not there",
    reading.UNKNOWN_WAY: "a list is written in an unknown way",
    reading.NOT_SHORTEST: "a list is not written in the shortest way",
    reading.TOO_MANY_POSITIONS: "more than {limits.max_positions:,} positions",
}

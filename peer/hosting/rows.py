"""Rows for the user: stored results, with the columns in the order the user asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from peer.hosting.results import decode_whole
from xmlmatch import Pattern
from xmlmatch.pattern import Column, Return

if TYPE_CHECKING:
    from collections.abc import Iterator

_COLUMNS: Final = msgspec.msgpack.Decoder(list[tuple[int, str]])


def write_columns(pattern: Pattern) -> bytes:
    """Write the order of a pattern's columns, which its canonical text does not tell."""
    return msgspec.msgpack.encode([(node, what.value) for node, what in pattern.selection])


def read_pattern(text: str, columns: bytes) -> Pattern:
    """Read a pattern with its columns in the order given."""
    nodes = Pattern.parse(text).nodes
    return Pattern(nodes, tuple(Column(node, Return(what)) for node, what in _COLUMNS.decode(columns)))


def rows_of(pattern: Pattern, data: bytes, limit: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of one document's results, by column; ``RowLimitError`` beyond the limit."""
    for row in decode_whole(pattern, data).rows(limit):
        yield {
            name: value if isinstance(value, str) else list(value)
            for name, value in zip(pattern.columns, row, strict=True)
        }

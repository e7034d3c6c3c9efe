"""A whole document in the results of ``DOCUMENTS``, read without making columns of them.

A machine with a relay reads every document that comes; as columns (``rewriting.columns``) they would be one node
with a name and its content. Here just that is looked for, step by step as ``encode`` writes it.
"""

from __future__ import annotations

from typing import Final

from rewriting.column_reading import MOST_PRE
from rewriting.columns import LIMITS

_HEAD: Final = b"\x01\x01\x00"
"""The version; one node; the first of its document."""
_TOP: Final = b"\x00\x01"
"""On the topmost level; one name."""
_NAMED: Final = b"\x01\x00\x01"
"""It has that name, no value, and a content."""
_TAIL: Final = b"\x01\x00\x00"
"""One list, of the first node of the pattern: all nodes."""
_MOST_SHIFT: Final = 35


def document_in(data: bytes) -> bytes | None:
    """Return the document that results of ``DOCUMENTS`` hold; None where they are wrong, or written in
    another way: ``rewriting.columns`` knows which.

    >>> document_in(bytes.fromhex("010100 00 0001 0161 010001 05") + b"<a/>" + bytes.fromhex("010000"))
    b'<a/>'
    """
    if len(data) > LIMITS.max_bytes or not (data.startswith(_HEAD) and data.endswith(_TAIL)):
        return None
    span, at = _number(data, len(_HEAD))
    if not (0 <= span <= MOST_PRE and data[at : at + 2] == _TOP):
        return None
    length, name = _number(data, at + 2)
    end = name + length
    if length < 0 or data[end : end + 3] != _NAMED:
        return None
    size, begin = _number(data, end + 3)
    if size < 1 or begin + size - 1 + len(_TAIL) != len(data):
        return None
    body = data[begin : begin + size - 1]
    try:
        data[name:end].decode()
        body.decode()
    except UnicodeDecodeError:
        return None
    return body


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Read a varint; return it and where the rest begins, or -1 if it is none that ``encode`` would write."""
    number = shift = 0
    while at < len(data) and shift < _MOST_SHIFT:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return (number if byte or shift == 7 else -1), at
    return -1, at

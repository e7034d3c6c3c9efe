"""The string value of a content, read in one compiled pass where it is written as ``cont`` writes it.

Only what ``xmlmatch`` itself writes is read here: tags with double quotes, text, and the references it uses.
Anything else (comments, instructions, other references, tags that do not close each other) is left to the parser,
which says what is wrong with it. Names are compared, not checked.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rewriting.kernels import kernel

UNUSUAL: Final = -1
_MOST_DEPTH: Final = 256
_REFERENCES: Final = (b"amp;", b"lt;", b"gt;", b"quot;", b"#13;", b"#10;", b"#9;")
_SPELLED: Final = np.frombuffer(b"".join(_REFERENCES), np.uint8)
_SPELLED_ENDS: Final = np.cumsum([len(one) for one in _REFERENCES])
_MEANT: Final = np.frombuffer(b'&<>"\r\n\t', np.uint8)


def text_of(content: bytes) -> bytes | None:
    """Return the character data of an element, None where it takes the parser to tell.

    >>> text_of(b'<a k="&lt;">x<b>&amp;y</b><c/></a>')
    b'x&y'
    """
    data = np.frombuffer(content, np.uint8)
    out = np.empty(len(data), np.uint8)
    length = _scan(data, out)
    return None if length == UNUSUAL else out[:length].tobytes()


@kernel
def _scan(data: Any, out: Any) -> int:
    opened = np.empty((2, _MOST_DEPTH), np.int64)  # where the names of the open elements stand
    at = depth = length = 0
    while at < data.size:
        c = data[at]
        if c == 60:
            if depth == 0 and at > 0:
                return UNUSUAL
            at, depth = _tag(data, at + 1, opened, depth)
            if at < 0:
                return UNUSUAL
            continue
        if depth == 0 or c == 62 or c == 13 or (c < 32 and c != 9 and c != 10):
            return UNUSUAL
        if c == 38:
            c, at = _reference(data, at + 1)
            if at < 0:
                return UNUSUAL
        else:
            at += 1
        out[length] = c
        length += 1
    return length if depth == 0 and data.size > 0 else UNUSUAL


@kernel
def _tag(data: Any, at: int, opened: Any, depth: int) -> tuple[int, int]:
    """Read a tag behind its ``<``; return where it ends and how deep it leads, or -1."""
    is_end = at < data.size and data[at] == 47
    begin = at + is_end
    at = begin
    while at < data.size and (data[at] > 62 or (45 <= data[at] <= 58 and data[at] != 47)):
        at += 1
    if at == begin or at >= data.size:
        return -1, depth
    if is_end:
        if depth == 0 or data[at] != 62 or at - begin != opened[1, depth - 1] - opened[0, depth - 1]:
            return -1, depth
        for i in range(at - begin):
            if data[begin + i] != data[opened[0, depth - 1] + i]:
                return -1, depth
        return at + 1, depth - 1
    if depth == opened.shape[1] or not (data[at] == 62 or data[at] == 32 or data[at] == 47):
        return -1, depth
    opened[0, depth], opened[1, depth] = begin, at
    while at < data.size and data[at] != 62 and data[at] != 47:
        if data[at] == 60 or data[at] == 39:
            return -1, depth
        if data[at] == 34:
            at += 1
            while at < data.size and data[at] != 34 and data[at] != 60:
                at += 1
            if at >= data.size or data[at] == 60:
                return -1, depth
        at += 1
    if at < data.size and data[at] == 62:
        return at + 1, depth + 1
    if at + 1 < data.size and data[at + 1] == 62:
        return at + 2, depth
    return -1, depth


@kernel
def _reference(data: Any, at: int) -> tuple[int, int]:
    """Read a reference behind its ``&``; return what it means and where it ends, or -1."""
    begin = 0
    for i in range(_SPELLED_ENDS.size):
        size = _SPELLED_ENDS[i] - begin
        if size <= data.size - at:
            same = True
            for k in range(size):
                same = same and data[at + k] == _SPELLED[begin + k]
            if same:
                return int(_MEANT[i]), at + size
        begin = _SPELLED_ENDS[i]
    return 0, -1

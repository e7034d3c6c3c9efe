"""``cont``: a subtree as XML that stands alone.

One walk over the node arrays writes into a buffer that is nearly always large enough; if it is not, the walk has
counted how large it must be, and is done again. Text is cut at the places where elements, comments and processing
instructions stand; namespaces in scope at the top are written on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xmlmatch.handlers import COMMENT, END, LEVEL_OF, NAME, PARENT, SIZE, START
from xmlmatch.kernels import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from xmlmatch.document import Document

_AMP: Final = np.frombuffer(b"&amp;", np.uint8)
_LT: Final = np.frombuffer(b"&lt;", np.uint8)
_GT: Final = np.frombuffer(b"&gt;", np.uint8)
_QUOT: Final = np.frombuffer(b"&quot;", np.uint8)
_TAB: Final = np.frombuffer(b"&#9;", np.uint8)
_NL: Final = np.frombuffer(b"&#10;", np.uint8)
_CR: Final = np.frombuffer(b"&#13;", np.uint8)
_OPEN_COMMENT: Final = np.frombuffer(b"<!--", np.uint8)
_CLOSE_COMMENT: Final = np.frombuffer(b"-->", np.uint8)
_OPEN_PI: Final = np.frombuffer(b"<?", np.uint8)
_CLOSE_PI: Final = np.frombuffer(b"?>", np.uint8)
_CLOSE_TAG: Final = np.frombuffer(b"</", np.uint8)
_EMPTY_TAG: Final = np.frombuffer(b"/>", np.uint8)
_IS: Final = np.frombuffer(b'="', np.uint8)


_SPECIAL: Final = np.zeros(256, np.uint8)
_SPECIAL[[9, 10, 34]] = 1
_SPECIAL[[13, 38, 60, 62]] = 2
"""Bytes that are written as references: 1 in attributes only, 2 everywhere."""
_NAMES: Final = 48
"""What tags take per node, mostly; where it is more, a document is written twice."""
_NOTHING: Final = np.empty(0, np.uint8)
_NOWHERE: Final = np.empty((2, 0), np.int64)

_ESCAPED: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)


def subtree(document: Document, node: int) -> bytes:
    """Serialise the element ``node`` with everything below it."""
    inherited = np.frombuffer(_inherited_declarations(document, node), np.uint8)
    return _written(document, node, inherited, _NOWHERE).tobytes()


def everything(document: Document) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Serialise a document without namespace declarations; also return where each element begins and ends.

    What stands there is the same as ``subtree`` writes, for nothing is inherited. -1 for attributes.
    """
    spans = np.full((2, len(document)), -1, np.int64)
    return _written(document, 0, _NOTHING, spans), spans


def _written(
    document: Document, node: int, inherited: NDArray[np.uint8], spans: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """Serialise an element; again if it takes more room than was thought."""
    nodes = document.nodes
    chars = int(nodes[END, node] - nodes[START, node])
    room = chars + chars // 8 + _NAMES * (1 + int(nodes[SIZE, node])) + len(inherited)
    while True:
        out = np.empty(room, np.uint8)
        length = int(_write(out, document.arrays, node, inherited, spans))
        if length <= room:
            return out[:length]
        room = length


def _inherited_declarations(document: Document, node: int) -> bytes:
    """Spell the declarations in scope at ``node`` that its own tag does not carry."""
    own = document.scopes.own(node)
    words = []
    for prefix, uri in sorted(document.scopes.bindings(node).items()):
        if uri and prefix != "xml" and prefix not in own:
            value = uri.translate(_ESCAPED)
            words.append(f' xmlns{":" if prefix else ""}{prefix}="{value}"')
    return "".join(words).encode()


@kernel
def _put(out: Any, at: int, source: Any, start: int, end: int) -> int:
    """Copy a slice if there is room (else it is only counted) and return the new position."""
    if at + end - start <= out.size:
        for i in range(start, end):
            out[at + i - start] = source[i]
    return at + end - start


@kernel
def _word(out: Any, at: int, word: Any) -> int:
    return _put(out, at, word, 0, word.size)


@kernel
def _byte(out: Any, at: int, byte: int) -> int:
    if at < out.size:
        out[at] = byte
    return at + 1


@kernel
def _text(out: Any, at: int, chars: Any, start: int, end: int, attribute: bool) -> int:
    """Copy character data with the references that XML and C14N ask for: what stands between them run by run."""
    least = 1 if attribute else 2
    run = start
    for i in range(start, end):
        if _SPECIAL[chars[i]] >= least:
            at = _reference(out, _put(out, at, chars, run, i), chars[i])
            run = i + 1
    return _put(out, at, chars, run, end)


@kernel
def _reference(out: Any, at: int, c: int) -> int:
    if c == 38:
        return _word(out, at, _AMP)
    if c == 60:
        return _word(out, at, _LT)
    if c == 62:
        return _word(out, at, _GT)
    if c == 13:
        return _word(out, at, _CR)
    if c == 34:
        return _word(out, at, _QUOT)
    if c == 9:
        return _word(out, at, _TAB)
    return _word(out, at, _NL)


@kernel
def _tag(out: Any, at: int, arrays: Any, node: int, inherited: Any, declaration: int) -> int:
    """Write ``<name`` with declarations and attributes; the ``>`` waits until there is content."""
    nodes, chars, names, pool, declarations = arrays[0], arrays[1], arrays[2], arrays[3], arrays[4]
    at = _byte(out, at, 60)
    name = nodes[NAME, node]
    at = _put(out, at, pool, names[0, name], names[0, name] + names[1, name])
    at = _word(out, at, inherited)
    while declaration < declarations.shape[1] and declarations[0, declaration] == node:
        d = declarations[1, declaration]
        at = _byte(out, at, 32)
        at = _put(out, at, pool, names[0, d] + 1, names[0, d] + names[1, d])
        at = _word(out, at, _IS)
        at = _text(out, at, chars, declarations[2, declaration], declarations[3, declaration], True)
        at = _byte(out, at, 34)
        declaration += 1
    child = node + 1
    while child <= node + nodes[SIZE, node] and pool[names[0, nodes[NAME, child]]] == 64:
        n = nodes[NAME, child]
        at = _byte(out, at, 32)
        at = _put(out, at, pool, names[0, n] + 1, names[0, n] + names[1, n])
        at = _word(out, at, _IS)
        at = _text(out, at, chars, nodes[START, child], nodes[END, child], True)
        at = _byte(out, at, 34)
        child += 1
    return at


@kernel
def _extras(out: Any, at: int, arrays: Any, cursor: Any, opened: int, upto: int) -> int:
    """Write the comments and instructions of ``opened`` that stand before node ``upto``, and the text before each.

    ``cursor`` holds: text position, next extra, whether a start tag still lacks its ``>``.
    """
    chars, extras, extra_bytes = arrays[1], arrays[5], arrays[6]
    while cursor[1] < extras.shape[1]:
        e = cursor[1]
        if extras[1, e] != opened or extras[2, e] > upto:
            break
        at = _content(out, at, chars, cursor, extras[3, e], True)
        comment = extras[0, e] == COMMENT
        at = _word(out, at, _OPEN_COMMENT if comment else _OPEN_PI)
        at = _put(out, at, extra_bytes, extras[4, e], extras[5, e])
        at = _word(out, at, _CLOSE_COMMENT if comment else _CLOSE_PI)
        cursor[1] += 1
    return at


@kernel
def _content(out: Any, at: int, chars: Any, cursor: Any, upto: int, more: bool) -> int:
    """Write the text up to ``upto``, after the ``>`` of the open tag if anything follows."""
    if cursor[2] == 1 and (more or upto > cursor[0]):
        at = _byte(out, at, 62)
        cursor[2] = 0
    at = _text(out, at, chars, cursor[0], upto, False)
    cursor[0] = upto
    return at


@kernel
def _close(out: Any, at: int, arrays: Any, cursor: Any, node: int, upto: int) -> int:
    nodes, chars, names, pool = arrays[0], arrays[1], arrays[2], arrays[3]
    at = _extras(out, at, arrays, cursor, node, upto)
    at = _content(out, at, chars, cursor, nodes[END, node], False)
    if cursor[2] == 1:
        cursor[2] = 0
        return _word(out, at, _EMPTY_TAG)
    at = _word(out, at, _CLOSE_TAG)
    name = nodes[NAME, node]
    at = _put(out, at, pool, names[0, name], names[0, name] + names[1, name])
    return _byte(out, at, 62)


@kernel
def _first(rows: Any, row: int, value: int) -> int:
    """Find the first column whose entry in ``row`` is at least ``value``."""
    return int(np.searchsorted(rows[row], value))


@kernel
def _mark(spans: Any, row: int, node: int, at: int) -> int:
    """Note where an element begins or ends, if that is wanted."""
    if spans.shape[1]:
        spans[row, node] = at
    return at


@kernel
def _write(out: Any, arrays: Any, top: int, inherited: Any, spans: Any) -> int:
    nodes, chars, names, pool = arrays[0], arrays[1], arrays[2], arrays[3]
    nothing = inherited[:0]
    last = top + nodes[SIZE, top]
    cursor = np.array([nodes[START, top], _first(arrays[5], 2, top + 1), 0])
    declaration = _first(arrays[4], 0, top)
    at = _tag(out, _mark(spans, 0, top, 0), arrays, top, inherited, declaration)
    cursor[2] = 1
    opened = top
    for node in range(top + 1, last + 1):
        if pool[names[0, nodes[NAME, node]]] == 64:
            continue
        while opened != nodes[PARENT, node]:
            at = _mark(spans, 1, opened, _close(out, at, arrays, cursor, opened, node))
            opened = nodes[PARENT, opened]
        at = _extras(out, at, arrays, cursor, opened, node)
        at = _content(out, at, chars, cursor, nodes[START, node], True)
        while declaration < arrays[4].shape[1] and arrays[4][0, declaration] < node:
            declaration += 1
        at = _tag(out, _mark(spans, 0, node, at), arrays, node, nothing, declaration)
        cursor[2] = 1
        opened = node
    while nodes[LEVEL_OF, opened] > nodes[LEVEL_OF, top]:
        at = _mark(spans, 1, opened, _close(out, at, arrays, cursor, opened, last + 1))
        opened = nodes[PARENT, opened]
    return _mark(spans, 1, top, _close(out, at, arrays, cursor, top, last + 1))

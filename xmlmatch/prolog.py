"""What stands before the root: a DOCTYPE is made harmless before Expat sees it.

Nothing is ever fetched, and an external identifier would let Expat skip undefined entities in silence: it is
blanked. Entities that an internal subset defines are refused here, before Expat could expand any of them.

The scan is a loop of plain searches. One regular expression for all of it needs atomic groups to stay linear, and
those are broken in early releases of Python 3.11.
"""

from __future__ import annotations

import re
from typing import Final

from xmlmatch.errors import DocumentError

ENTITIES_DEFINED: Final = "the document defines entities; entities are refused, write the text itself"

_BEFORE_ROOT: Final = re.compile(rb"[ \t\r\n]*(<\?|<!--|<!DOCTYPE[ \t\r\n]+[^ \t\r\n\[>]+)?")
_EXTERNAL: Final = re.compile(
    rb"""\s+(?:SYSTEM\s+(?:"[^"]*"|'[^']*')|PUBLIC\s+(?:"[^"]*"|'[^']*')\s+(?:"[^"]*"|'[^']*'))"""
)
_SUBSET: Final = re.compile(rb"\s*\[")
_IN_SUBSET: Final = re.compile(rb"""<!--|<\?|["']|\]|<!ENTITY""")
_ENDS: Final = {b"<?": b"?>", b"<!--": b"-->", b'"': b'"', b"'": b"'"}


def without_external_subset(data: bytes) -> tuple[bytes, bool]:
    """Blank the external identifier of a DOCTYPE; also say whether there is a DOCTYPE.

    Blanks keep the line numbers. Raises ``DocumentError`` if the internal subset defines entities.

    >>> without_external_subset(b'<!DOCTYPE a SYSTEM "x.dtd"><a/>')
    (b'<!DOCTYPE a               ><a/>', True)
    """
    at = _end_of_doctype_name(data) if b"<!DOCTYPE" in data else -1
    if at < 0:
        return data, False
    external = _EXTERNAL.match(data, at)
    end = external.end() if external else at
    subset = _SUBSET.match(data, end)
    if subset is not None and _defines_entities(data, subset.end()):
        raise DocumentError(ENTITIES_DEFINED)
    if external is not None:
        data = data[:at] + re.sub(rb"[^\r\n]", b" ", external[0]) + data[end:]
    return data, True


def _end_of_doctype_name(data: bytes) -> int:
    """Skip comments and instructions up to a DOCTYPE and its name; -1 if something else comes first."""
    at = 0
    while True:
        found = _BEFORE_ROOT.match(data, at)
        token = found[1] if found else None
        if found is None or token is None:
            return -1
        if token not in _ENDS:
            return found.end()
        at = _skip(data, found.end(), token)
        if at < 0:
            return -1


def _defines_entities(data: bytes, at: int) -> bool:
    """Look for an entity declaration up to the end of the internal subset, outside comments and literals."""
    while at >= 0:
        found = _IN_SUBSET.search(data, at)
        if found is None or found[0] == b"]":
            return False
        if found[0] == b"<!ENTITY":
            return True
        at = _skip(data, found.end(), found[0])
    return False


def _skip(data: bytes, at: int, token: bytes) -> int:
    """Return the place behind what ``token`` opened, -1 if it is never closed."""
    end = _ENDS[token]
    found = data.find(end, at)
    return found + len(end) if found >= 0 else -1

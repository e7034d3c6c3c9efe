"""From any declared encoding to the UTF-8 that Expat reads."""

from __future__ import annotations

import codecs
import re
from typing import Final

from xmlmatch.errors import DocumentError

_DECLARED: Final = re.compile(rb"""\A<\?xml\s[^>]{0,200}?encoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]{0,60})["']""")
# Character sets that documents use. Python knows stranger "encodings" (punycode, unicode_escape) that no
# XML processor reads.
_KNOWN: Final = re.compile(
    r"us-ascii|ascii|latin-?\d+|iso-?8859-\d+|iso-?2022-\w+|windows-\d+|cp\d+|koi8-[rtu]|shift_?jis|sjis|euc-\w+|"
    r"gb\d+|gbk|big5(-hkscs)?|mac\w+|macintosh|tis-620|utf-16(le|be|-le|-be)?",
    re.IGNORECASE,
)


def to_utf8(data: bytes) -> tuple[bytes, bytes | None]:
    """Return the document in UTF-8 and the encoding Expat must be told, None where the bytes say it themselves.

    >>> to_utf8(b"<a/>")
    (b'<a/>', None)
    >>> to_utf8('<?xml version="1.0" encoding="ISO-8859-1"?><a>\\xe9</a>'.encode("latin-1"))[0][-6:].decode()
    'é</a>'
    """
    if data.startswith(codecs.BOM_UTF8):
        return data[3:], b"UTF-8"  # the mark beats a declaration that says otherwise
    name = _encoding_of(data)
    if name is None:
        return data, None
    try:
        text = data.decode(name)
    except (LookupError, UnicodeError) as exc:
        raise DocumentError(f"the bytes are not valid {name}: {exc}") from None
    return text.removeprefix("\ufeff").encode(), b"UTF-8"


def _encoding_of(data: bytes) -> str | None:
    """Name the Python codec of ``data``; None for UTF-8."""
    head = data[:4]
    if head in (codecs.BOM_UTF32_BE, codecs.BOM_UTF32_LE) or head in (b"<\0\0\0", b"\0\0\0<"):
        raise DocumentError("UTF-32 is not supported; send UTF-8 or UTF-16")
    if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    if head[:2] in (b"<\0", b"\0<"):
        return "utf-16-le" if head[:1] == b"<" else "utf-16-be"
    declared = _DECLARED.match(data)
    name = declared[1].decode().lower() if declared else "utf-8"
    if name in ("utf-8", "utf8") or name.startswith("utf-16"):
        return None  # Expat reports a false claim of UTF-16 itself
    if not _KNOWN.fullmatch(name):
        raise DocumentError(f"encoding {name!r} is not supported; send UTF-8, UTF-16 or a common character set")
    return name

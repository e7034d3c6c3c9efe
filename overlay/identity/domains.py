"""Texts to be signed or hashed, each of which says what it is for.

Parts are preceded by their lengths, so different parts never make the same text; the first part names the purpose,
so what was signed for one purpose is never taken for another. No such text begins like a certificate does: a
signature by the intermediate under one is no signature of a certificate.
"""

from __future__ import annotations

import hashlib
from typing import Final

_PREFIX: Final = b"distributary identity 1"


def text_to_sign(purpose: str, *parts: bytes) -> bytes:
    """Return what is signed for a purpose.

    >>> text_to_sign("a", b"bc", b"") != text_to_sign("a", b"b", b"c")
    True
    """
    named = [purpose.encode(), *parts]
    return _PREFIX + b"".join(len(part).to_bytes(8, "big") + part for part in named)


def digest(purpose: str, *parts: bytes) -> bytes:
    """Return the SHA-256 of what would be signed."""
    return hashlib.sha256(text_to_sign(purpose, *parts)).digest()

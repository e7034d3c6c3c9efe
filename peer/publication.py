"""What may be published, what it is called, and what makes two the same where the publisher does not say."""

from __future__ import annotations

import hashlib
from typing import Final

from overlay.wire.frames import FRAGMENT, MAX_FRAME

MOST_BYTES: Final = MAX_FRAME - FRAGMENT
"""As much as one frame between machines carries: everybody who publishes has the same limit."""


def too_large(name: str, size: int) -> str:
    """Say that a document has too many bytes; nothing if it has not.

    >>> too_large("a.xml", 17 << 20)
    'a.xml: it is larger than 16,711,680 bytes, the most that a document may have'
    """
    return f"{name}: it is larger than {MOST_BYTES:,} bytes, the most that a document may have" * (
        size > MOST_BYTES
    )


def key_of(name: str, body: bytes) -> str:
    """Return a key: the same document under the same name is the same publication."""
    return hashlib.sha256(name.encode("utf-8", "surrogateescape") + b"\0" + body).hexdigest()


def shown_name(name: str) -> str:
    r"""Return a file's name as text that can be sent: what of it is no UTF-8 is replaced.

    >>> shown_name("caf\udce9.xml"), shown_name("café.xml")
    ('caf\ufffd.xml', 'café.xml')
    """
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

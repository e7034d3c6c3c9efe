"""What a publication is called, and what makes two the same, where the publisher does not say."""

from __future__ import annotations

import hashlib


def key_of(name: str, body: bytes) -> str:
    """Return a key: the same document under the same name is the same publication."""
    return hashlib.sha256(name.encode("utf-8", "surrogateescape") + b"\0" + body).hexdigest()


def shown_name(name: str) -> str:
    r"""Return a file's name as text that can be sent: what of it is no UTF-8 is replaced.

    >>> shown_name("caf\udce9.xml"), shown_name("café.xml")
    ('caf\ufffd.xml', 'café.xml')
    """
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")

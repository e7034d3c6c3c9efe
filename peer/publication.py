"""What makes two publications the same, where the publisher does not say."""

from __future__ import annotations

import hashlib


def key_of(name: str, body: bytes) -> str:
    """Return a key: the same document under the same name is the same publication."""
    return hashlib.sha256(name.encode("utf-8", "surrogateescape") + b"\0" + body).hexdigest()

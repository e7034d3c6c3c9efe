"""The signature of a POST: who has the secret can tell that it is ours, and how old it is.

>>> signature(b"secret", b"{}", 1700000000)
't=1700000000,v1=b8569b78799ff9e3cbff0fc2d63a33a2b57f3282abd07c37ae5e8e7d79a5f163'
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

HEADER: Final = "Distributary-Signature"


def signature(secret: bytes, body: bytes, at: int) -> str:
    """Return the header: the time, and the HMAC-SHA256 of ``TIME.BODY`` under the secret."""
    return f"t={at},v1={hmac.new(secret, f'{at}.'.encode() + body, hashlib.sha256).hexdigest()}"

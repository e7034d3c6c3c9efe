"""Who may ask: those who can read the token in the home folder, by a name of this machine.

The server listens on localhost, where every process and, by way of a browser, every web page can knock. The token
keeps other users out. The ``Host`` check keeps out pages whose name was made to point here (DNS rebinding).
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
from typing import TYPE_CHECKING, Final

from peer.errors import CommandError
from peer.http.exchange import Refusal
from peer.storage.store_file import close_to_others

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TOKEN_FILE: Final = "http-token"
_HOST: Final = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{32,200}")
_LONGEST: Final = 1000


def token_in(home: Path) -> str:
    """Return the token of a home folder; it is made the first time, and only its owner can read it."""
    path = home / TOKEN_FILE
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        close_to_others(path)
        with path.open("rb") as file:
            text = file.read(_LONGEST).decode("ascii", "replace").strip()
        if not _TOKEN.fullmatch(text):
            raise CommandError(f"{path}: this is no token; remove the file, and one is made") from None
        return text
    token = secrets.token_urlsafe(32)
    with os.fdopen(handle, "w") as file:
        file.write(token + "\n")
        file.flush()
        os.fsync(file.fileno())
    return token


def check_host(headers: Mapping[str, str]) -> None:
    """Refuse requests for other names than this machine's own.

    >>> check_host({"host": "localhost:8080"})
    """
    if not _HOST.fullmatch(headers.get("host", "")):
        raise Refusal(421, "this server answers to localhost and 127.0.0.1 only")


def check_token(headers: Mapping[str, str], token: str) -> None:
    """Refuse requests without the token."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), token.encode()):
        raise Refusal(
            401,
            f"send the header 'Authorization: Bearer TOKEN'; the token is in {TOKEN_FILE} in the home folder",
            (("WWW-Authenticate", 'Bearer realm="distributary"'),),
        )

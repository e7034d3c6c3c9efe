"""What is kept of webhooks, in a file that only its owner can read: it holds their secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlsplit

import msgspec

from peer.daemon.questions import NoAnswer
from peer.storage.errors import BrokenStore
from peer.storage.store_file import close_to_others, make_private_file, put_in_place, translated

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FILE: Final = "webhooks.json"
MOST_HOOKS: Final = 20
"""Each may hold a thread while it looks a name up."""
SHORTEST_SECRET: Final = 16
_LONGEST: Final = 2000
_PORTS: Final = {"http": 80, "https": 443}


class Hook(msgspec.Struct, frozen=True):
    """A webhook: where what a subscription gets is posted, and the secret that signs it."""

    id: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    subscription: str
    url: str
    secret: str


class Target(msgspec.Struct, frozen=True):
    """A URL, taken apart."""

    is_secure: bool
    host: str
    port: int
    path: str

    @property
    def name(self) -> str:
        """What the ``Host`` header says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS["https" if self.is_secure else "http"] else f"{host}:{self.port}"


def target_of(url: str) -> Target:
    """Take a URL apart, or refuse it.

    >>> target_of("https://example.org/in?k=1")
    Target(is_secure=True, host='example.org', port=443, path='/in?k=1')
    """
    if len(url) > _LONGEST or not url.isascii() or not url.isprintable() or " " in url:
        raise NoAnswer(f"the URL must be up to {_LONGEST} printable ASCII characters without spaces")
    try:
        split = urlsplit(url)
        host, port = split.hostname, split.port
    except ValueError as exc:
        raise NoAnswer(f"{url}: {exc}") from None
    if split.scheme not in _PORTS or not host:
        raise NoAnswer(f"{url}: expected http://HOST/PATH or https://HOST/PATH")
    if split.username is not None or split.fragment:
        raise NoAnswer("the URL may hold neither a user nor a fragment; the signature proves who posts")
    path = (split.path or "/") + (f"?{split.query}" if split.query else "")
    return Target(split.scheme == "https", host, _PORTS[split.scheme] if port is None else port, path)


def read_hooks(path: Path) -> list[Hook]:
    """Read the file; ``BrokenStore`` if it is not what it should be."""
    with translated(path):
        if not path.exists():
            return []
        close_to_others(path)
        data = path.read_bytes()
    try:
        found = msgspec.json.decode(data, type=list[Hook])
        for hook in found:
            target_of(hook.url)
    except (msgspec.MsgspecError, ValueError, RecursionError, NoAnswer) as exc:
        raise BrokenStore(path, f"these are no webhooks: {exc}; mend or remove the file") from None
    return found


def write_hooks(path: Path, hooks: Iterable[Hook]) -> None:
    """Replace the file; it is on disk, whole, when this returns."""
    partial = path.with_name(path.name + ".partial")
    with translated(path):
        partial.unlink(missing_ok=True)
        make_private_file(partial)
        partial.write_bytes(msgspec.json.format(msgspec.json.encode(list(hooks)), indent=2) + b"\n")
        put_in_place(partial, path)

"""One daemon of a kind per folder: a second would take its control socket, and write the same files."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from peer.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def only_one(home: Path, socket: str) -> Iterator[None]:
    """Hold a folder while the block runs; ``CommandError`` if a daemon with the same socket runs there. A process
    that is killed holds nothing any more."""
    if not home.is_dir():  # nobody runs there, and whoever reads it says what is missing
        yield
        return
    lock = os.open(home / f"{socket}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandError(
                f"a daemon runs in {home} already; stop it first, or name another folder with --home"
            ) from None
        yield
    finally:
        os.close(lock)

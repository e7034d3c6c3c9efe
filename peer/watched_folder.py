"""A folder whose files are documents to be published: which are complete, and where they go then.

A file is complete when it has stayed unchanged for a while; one that was last changed before that when it is first
seen, as a file moved here is, at once. Names that begin with a dot or end with ``.tmp``, ``.part`` or ``~`` are
somebody's unfinished work. A complete file is *claimed* by moving it to ``.claimed``, so that nobody can put
another under its name meanwhile; then it is read, published, and moved on to ``.published`` or ``.refused``. After
a crash what was claimed comes first, and has the same number again.
"""

from __future__ import annotations

import fcntl
import heapq
import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from peer.errors import CommandError
from peer.publication import MOST_BYTES, too_large

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MOST_AT_ONCE: Final = 10_000
CLAIMED: Final = ".claimed"
PUBLISHED: Final = ".published"
REFUSED: Final = ".refused"
_UNFINISHED: Final = (".tmp", ".part", "~")
_LONGEST_NAME: Final = 255


class Seen(NamedTuple):
    """A file as it was found; times in nanoseconds since 1970."""

    name: str
    inode: int
    size: int
    changed: int


class Unusable(Exception):
    """A file that cannot be a document; the message says why."""


@dataclass(slots=True)
class Settling:
    """Which files are complete.

    >>> settling, file = Settling(wait_s=2.0), Seen("a.xml", inode=1, size=5, changed=9_000_000_000)
    >>> [len(settling.complete([file], now)) for now in (10.0, 11.5, 12.0)]
    [0, 0, 1]
    """

    wait_s: float
    _since: dict[Seen, float] = field(default_factory=dict)

    def complete(self, listing: Iterable[Seen], now: float) -> list[Seen]:
        """Return those of the files there are now that are complete; ``now``: in seconds since 1970."""
        since = {file: self._since.get(file, now) for file in listing}
        self._since = since
        return [
            file
            for file, first in since.items()
            if now >= first + self.wait_s or file.changed / 1e9 <= first - self.wait_s
        ]


def is_candidate(name: str) -> bool:
    """Whether a name may be a document's.

    >>> [is_candidate(name) for name in ("a.xml", ".a.xml", "a.xml.part")]
    [True, False, False]
    """
    return not name.startswith(".") and not name.endswith(_UNFINISHED)


class WatchedFolder:
    """The folder on disk; one process at a time watches it. ``leaves``: files stay where they are."""

    def __init__(self, path: Path, settling: Settling, *, leaves: bool = False) -> None:
        self._path, self._settling, self._leaves = path, settling, leaves
        self._done: dict[Seen, None] = {}
        self._lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise CommandError(f"{path}: somebody watches this folder already") from None
        for name in (REFUSED,) if leaves else (CLAIMED, PUBLISHED, REFUSED):
            (path / name).mkdir(exist_ok=True)

    def close(self) -> None:
        """Let others watch."""
        os.close(self._lock)

    def ready(self, now: float) -> list[Seen]:
        """List the files to publish, in the order of their names; those that were claimed before come first."""
        claimed = [] if self._leaves else self._listed(self._path / CLAIMED)
        found = self._listed(self._path)
        if self._leaves:
            self._done = {file: None for file in found if file in self._done}
        waiting = [file for file in found if file not in self._done][:MOST_AT_ONCE]
        return claimed + sorted(self._settling.complete(waiting, now))

    def claim(self, file: Seen) -> Path | None:
        """Take a file; None if it is gone."""
        here = self._path / file.name
        if self._leaves:
            return here
        claimed = self._path / CLAIMED / file.name
        if not claimed.exists():
            try:
                here.rename(claimed)
            except FileNotFoundError:
                return None
        return claimed

    def published(self, file: Seen, number: int) -> None:
        """A file has a number: move it away under both, or remember that it is done."""
        if self._leaves:
            self._done[file] = None
            return
        name = f"{number}-{file.name}"
        short = name if len(os.fsencode(name)) <= _LONGEST_NAME else str(number)
        (self._path / CLAIMED / file.name).replace(self._path / PUBLISHED / short)

    def refused(self, file: Seen, reason: str) -> None:
        """A file cannot be published: move it away, with the reason beside it."""
        where = self._path / (file.name if self._leaves else f"{CLAIMED}/{file.name}")
        ending = ".reason"
        short = os.fsdecode(os.fsencode(file.name)[: _LONGEST_NAME - len(ending)])
        (self._path / REFUSED / (short + ending)).write_text(" ".join(reason.split()) + "\n", "utf-8", "replace")
        where.replace(self._path / REFUSED / file.name)

    def _listed(self, folder: Path) -> list[Seen]:
        """List regular files by name; of very many the first ones."""
        found = []
        with os.scandir(folder) as entries:
            most = MOST_AT_ONCE + len(self._done)
            for entry in heapq.nsmallest(most, entries, key=lambda one: one.name):
                if is_candidate(entry.name) and entry.is_file(follow_symlinks=False):
                    try:
                        known = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # it has gone since
                    found.append(Seen(entry.name, known.st_ino, known.st_size, known.st_mtime_ns))
        return found


def read_document_file(path: Path) -> bytes:
    """Read a file that may be a document; ``Unusable`` says why it is none."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as exc:
        raise Unusable(f"it cannot be read: {exc.strerror}") from None
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise Unusable("it is no regular file")
        body = file.read(MOST_BYTES + 1)
    if problem := too_large(path.name, len(body)):
        raise Unusable(problem)
    return body

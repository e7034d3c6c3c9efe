"""Spaces of a source from before they were part of its log: taken over once, from the file they were in.

Each space counted for itself, from 1 on. Its numbers stay; the log's go on behind the highest of them, so that
what is published next is newer for everybody. The keys of what was published there are forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peer.storage.database import Database
from peer.storage.space_store import EARLIER
from peer.storage.store_file import remove_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from peer.storage.source_log import SourceLog


def take_over(log: SourceLog, path: Path, number_of: Callable[[bytes], int]) -> None:
    """Move the spaces in a file, if it is there, into a log. ``number_of``: the number that a record names, or 0.
    A crash leaves them where they were, or in both."""
    if not path.exists():
        return
    earlier = Database(path, EARLIER)
    try:
        with earlier.reading() as reader:
            spaces = reader.execute("SELECT name, body FROM spaces").fetchall()
            records = reader.execute("SELECT space, body FROM records ORDER BY at").fetchall()
    finally:
        earlier.close()
    with log.transaction():
        if not log.spaces.spaces():
            for name, body in spaces:
                log.spaces.put_space(name, body)
            log.spaces.append(records)
            log.spaces.count_from(max((number_of(body) for _, body in records), default=0))
    remove_store(path)

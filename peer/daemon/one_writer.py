"""A store that one thread may write to at a time, used from the event loop and from the committer's thread."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Arguments = ParamSpec("Arguments")
Found = TypeVar("Found")


class OneWriter:
    """Lets one write at a time through. From the event loop it waits for a commit at most: a few milliseconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __call__(
        self, write: Callable[Arguments, Found], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Found:
        """Write alone."""
        with self._lock:
            return write(*arguments, **named)

"""What is sent after it is written: many writes become one transaction, off the event loop."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import trio

from peer.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

Written = TypeVar("Written")
_LOG: Final = logging.getLogger("distributary.spaces")
_AGAIN_S: Final = 1.0
MOST_WAITING: Final = 10_000


class WrittenFirst(Generic[Written]):
    """Writes what is put here, in order, and then does what follows from it; ``run`` is its one task. While the
    disk refuses, everything waits."""

    def __init__(self, write: Callable[[list[Written]], None]) -> None:
        self._write = write
        self._waiting: list[tuple[list[Written], Callable[[], None]]] = []
        self._stir = trio.Event()

    @property
    def is_full(self) -> bool:
        """Whether so much waits for the disk that nothing more should be taken in: it will be said again."""
        return len(self._waiting) >= MOST_WAITING

    def put(self, items: list[Written], then: Callable[[], None]) -> None:
        """Let items be written, and then something be done."""
        self._waiting.append((items, then))
        self._stir.set()

    async def written(self, items: list[Written]) -> None:
        """Write items, and return when they and all before them are on disk."""
        done = trio.Event()
        self.put(items, done.set)
        await done.wait()

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._stir.wait()
            self._stir = trio.Event()
            batch, self._waiting = self._waiting, []
            items = [item for some, _ in batch for item in some]
            if items:
                await self._written(items)
            for _, then in batch:
                then()

    async def _written(self, items: list[Written]) -> None:
        while True:
            try:
                await trio.to_thread.run_sync(self._write, items)
                return
            except StorageError as exc:
                _LOG.error("not written", extra={"reason": str(exc)})
                await trio.sleep(_AGAIN_S)

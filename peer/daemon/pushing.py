"""Configurations on their way into the DHT: gathered for a moment, so that many at once cost one epoch record.

The machines concerned are told directly; what is in the DHT is for those that cannot reach the source. Of a new
epoch, which everybody's permit is of, only what says something else is put (``Directory.push``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from overlay.dht import Version

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peer.daemon.directory import Directory, Pushed
    from peer.storage.log_values import Configuration

_GATHER_S: Final = 0.3


class Pushing:
    """What waits to be pushed: the newest of every subscription."""

    def __init__(self) -> None:
        self._waiting: dict[str, Configuration] = {}
        self._wake = trio.Event()

    def put(self, configurations: Iterable[Configuration]) -> None:
        """Let configurations wait."""
        self._waiting |= {one.subscription: one for one in configurations}
        if self._waiting:
            self._wake.set()

    def forget(self, subscription: str) -> None:
        """A subscription has ended: nothing of it is to be pushed any more."""
        self._waiting.pop(subscription, None)

    async def run(self, directory: Directory) -> None:
        """Push until cancelled."""
        while True:
            await self._wake.wait()
            await trio.sleep(_GATHER_S)
            await self.push(directory)

    async def push(self, directory: Directory) -> Pushed | None:
        """Push what waits; None if nothing does."""
        self._wake = trio.Event()
        taken, self._waiting = self._waiting, {}
        if not taken:
            return None
        versions = {name: Version(*one.version) for name, one in taken.items()}
        bodies = {name: one.body for name, one in taken.items()}
        return await directory.push(bodies, versions, max(versions.values()))

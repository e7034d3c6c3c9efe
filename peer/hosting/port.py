"""The machine that a host runs on: its connections, its disk, and what it allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overlay.feeds.items import Item
    from overlay.wire.frames import FromReceiver, FromSender, Open
    from peer.hosting.history import Stretch
    from peer.storage.result_values import Followers


class Port(Protocol):
    """What a host needs of the machine it runs on."""

    def send(self, site: str, frame: FromReceiver | FromSender) -> bool:
        """Send to another machine; False if there is no connection, and then make one."""

    def store(self, subscription: str, items: Sequence[Item], upto: int) -> None:
        """Store results and the frontier, together; ``Host.committed`` is called when that is done."""

    def store_together(
        self, parts: Sequence[tuple[str, Sequence[Item], int]], followers: Followers | None = None
    ) -> None:
        """Store for several subscriptions, all or nothing: whatever refers to something is stored with it.
        ``followers``: who comes as far as the first, with references to its documents."""

    def stored(self, subscription: str, after: int, upto: int, most_bytes: int) -> Stretch:
        """Read stored results in order."""

    def forbids(self, site: str, asked: Open) -> str:
        """Say why a machine may not open a feed; empty if it may."""

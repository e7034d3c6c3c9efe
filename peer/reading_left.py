"""Printing what a machine received before it left its network: no daemon runs there, so the store is read."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from peer.errors import CommandError
from peer.output import emit

if TYPE_CHECKING:
    from pathlib import Path

    from peer.storage.result_store import ResultStore


def print_stored(home: Path, subscription: str, since: int) -> None:
    """Print what a subscription has after a document, out of the store of a home."""
    import trio

    from peer.storage.errors import StorageError
    from peer.storage.result_store import ResultStore

    path = home / "results.sqlite"
    if not path.exists():
        raise CommandError(f"{home}: nothing was received here")
    try:
        with ResultStore.open(path) as store:
            trio.run(_print, store, subscription, since)
    except StorageError as exc:
        raise CommandError(str(exc)) from None


async def _print(store: ResultStore, subscription: str, since: int) -> None:
    from peer.daemon.reading import Reading

    reading = Reading(store)
    names = reading.names()
    if subscription not in names:
        raise CommandError(
            f"there is no subscription {subscription} here; there are: {', '.join(names) or 'none'}"
        )
    async with aclosing(reading.entries(subscription, since, follow=False)) as entries:
        async for one in entries:
            emit(one)

"""Runs a lookup on asyncio: some questions under way at any time, and none left when it ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from overlay.dht.contacts import Contact
    from overlay.dht.lookup import FoundRecords, Lookup


async def drive(
    lookup: Lookup, ask: Callable[[Contact], Awaitable[None]], *, alpha: int, found: FoundRecords | None = None
) -> None:
    """Keep up to alpha questions of a lookup under way until it ends, or until enough was found.

    ``ask`` asks one contact and tells the lookup what came of it.
    """
    answered = asyncio.Event()

    def is_over() -> bool:
        return found is not None and found.is_enough

    async def work() -> None:
        while not is_over():
            if taken := lookup.take(1):
                await ask(taken[0])
                answered.set()
            elif lookup.is_waiting:
                answered.clear()
                await answered.wait()
            else:
                return

    pending: set[asyncio.Future[Any]] = {asyncio.ensure_future(work()) for _ in range(alpha)}
    try:
        while pending and not is_over():
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
    finally:
        await end(pending)


async def end(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Cancel tasks and wait until they have ended."""
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

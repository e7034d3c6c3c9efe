"""Reading what a subscription has got, from the store: what is there, and what comes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import trio

from peer.daemon.entries import told_of, whole_entry
from peer.daemon.questions import NoAnswer
from peer.hosting.rows import read_pattern
from peer.storage.result_values import Kind

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable

    from peer.storage.result_store import ResultStore
    from peer.storage.result_values import Hosted

_STRETCH = 1 << 20
_MOMENT_S = 2.0


class Reach(NamedTuple):
    """What a subscription is owed, (start, end], and up to where all of it is here."""

    start: int
    upto: int
    end: int | None


class Reading:
    """The readers of a store; they wait for news of their subscriptions. ``hurry``: have what waits written."""

    def __init__(self, store: ResultStore, hurry: Callable[[], None] = lambda: None) -> None:
        self._store, self._hurry = store, hurry
        self._news: dict[str, trio.Event] = {}
        self._awaited_at = -math.inf

    def was_awaited(self, now: float) -> bool:
        """Say whether anybody waits for news, or did a moment ago: a reader is not waiting while it reads."""
        if self._news:
            self._awaited_at = now
        return now - self._awaited_at < _MOMENT_S

    def tell(self, subscriptions: Iterable[str]) -> None:
        """Something has been committed."""
        for name in subscriptions if self._news else ():
            event = self._news.pop(name, None)
            if event is not None:
                event.set()

    def known(self, name: str) -> Hosted:
        """Return a subscription as it is stored; ``NoAnswer`` if there is none."""
        hosted = self._store.hosted(name)
        if hosted is None:
            raise NoAnswer(f"there is no subscription {name[:100]} here; 'distributary subscriptions' lists them")
        return hosted

    def reach(self, name: str) -> Reach:
        """Say how far a subscription goes; ``NoAnswer`` if there is none."""
        hosted = self.known(name)
        return Reach(hosted.start, hosted.frontier.upto, hosted.end)

    def names(self) -> list[str]:
        """List the subscriptions."""
        return [one.id for one in self._store.subscriptions()]

    async def entries(
        self, name: str, after: int, *, follow: bool, beat_s: float = math.inf
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Yield what a subscription has after a document: rows, errors, gaps, and up to where it is complete. Who
        follows gets an empty one after ``beat_s`` without news, and is done when the subscription has ended."""
        hosted = self.known(name)
        pattern = read_pattern(hosted.pattern, hosted.columns)
        after = max(after, hosted.start)
        while True:
            news = self._news.setdefault(name, trio.Event())
            self._hurry()
            known = await trio.to_thread.run_sync(self._store.extent, name)
            upto, end = (after, after) if known is None else known
            hosted = self._store.hosted(name) or hosted
            if hosted.end is not None:
                upto = min(upto, hosted.end)  # what came before it was known to end is not its
            while after < upto:
                found = await trio.to_thread.run_sync(self._store.entries, name, after, upto, _STRETCH)
                for entry in found:
                    if entry.kind is Kind.REFERENCE:
                        entry = await trio.to_thread.run_sync(whole_entry, pattern, entry)
                    for told in told_of(pattern, entry):
                        yield told
                after = found[-1].number if found else upto
            yield {"complete": upto}
            if not follow or (end is not None and upto >= end):
                return  # it was withdrawn, and has all that it is owed
            while not news.is_set():
                with trio.move_on_after(beat_s):
                    await news.wait()
                if not news.is_set():
                    yield {}

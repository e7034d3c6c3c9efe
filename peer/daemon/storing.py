"""What a peer stores, and what becomes of it when it cannot.

While the disk is full the machine feeds on from memory, within a limit, and takes no new subscriptions; whatever
waits is stored when there is room again. If the store refuses results of a subscription for another reason, what
of it is in memory is dropped, and it goes on from what is stored, so that nothing is skipped.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

import trio

from peer.daemon.committing import Committer
from peer.daemon.entries import entry_of, item_of
from peer.daemon.questions import NotNow
from peer.hosting.history import Stretch
from peer.hosting.holding import Holding
from peer.hosting.results import DOCUMENTS
from peer.storage.errors import StorageError
from peer.storage.result_values import (
    Drain,
    End,
    Frontier,
    Kind,
    Results,
    State,
    Together,
    results_of,
    subscriptions_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from overlay.feeds.items import Item
    from peer.daemon.one_writer import OneWriter
    from peer.hosting.host import Host
    from peer.storage.result_store import ResultStore
    from peer.storage.result_values import Change, Followers

_LOG: Final = logging.getLogger("distributary.storage")
_TRIM_S: Final = 60.0
_TRIM_IN_TROUBLE_S: Final = 2.0
_AGAIN_S: Final = 2.0
_GATHER_S: Final = 0.01
"""Results of one document come within this time, mostly; those who are fed do not wait for the disk."""


class Storing:
    """The writing side of a peer's store. ``results``: how many were stored."""

    def __init__(
        self, store: ResultStore, alone: OneWriter, host: Host, tell: Callable[[Iterable[str]], None],
        is_awaited: Callable[[], bool],
    ) -> None:  # fmt: skip
        self._store, self._alone, self._host, self._tell = store, alone, host, tell
        self.committer: Committer[Change, bool] = Committer(
            self._write, self._written, self._failed, gather_s=_GATHER_S,
            holding=Holding(most_bytes=host.window // 4), is_awaited=is_awaited,
        )  # fmt: skip
        self.results = 0
        self._is_hearing = False
        self._refused: dict[str, float] = {}

    def store_together(
        self, parts: Sequence[tuple[str, Sequence[Item], int]], followers: Followers | None = None
    ) -> None:
        """Store results of several subscriptions, soon, and at once. What followers have of a document is all that
        comes of it."""
        results = [self._results(*part) for part in parts]
        is_one = len(results) == 1 and followers is None
        change = results[0] if is_one else Together(results, followers)
        if followers is None:
            self.committer.put(change)
            return
        self.committer.put_gently(change, sum([len(entry.data) for entry in results[0].entries]))
        if not self._is_hearing:
            self.committer.look()

    def hearing(self) -> None:
        """Frames are being heard; ``heard`` comes next."""
        self._is_hearing = True

    def heard(self) -> None:
        """What was heard has been passed on: now is the time to write."""
        self._is_hearing = False
        self.committer.look(here=True)

    def _results(self, subscription: str, items: Sequence[Item], upto: int) -> Results:
        generation = self._host.hosted[subscription].configuration.generation
        return Results(subscription, [entry_of(one) for one in items], Frontier(generation, upto))

    def stored(self, subscription: str, after: int, upto: int, most_bytes: int) -> Stretch:
        """Read results back, what is a reference in full. What the store has dropped meanwhile the host is told at
        once, lest it passes for a gap: others may have it."""
        hosted = self._host.hosted.get(subscription)
        pattern = DOCUMENTS if hosted is None else hosted.outlet.pattern  # a relay has ended, and is referred to
        entries = self._store.entries(subscription, after, upto, most_bytes)
        if entries and entries[0].kind is Kind.TRIMMED:
            self._host.trimmed(subscription, entries[0].number)
        items = [item_of(pattern, entry) for entry in entries]
        return Stretch(items, items[-1].number if items else upto)

    def check_room(self) -> None:
        """Raise ``NotNow`` if nothing new can be taken on."""
        if self.committer.trouble:
            raise NotNow(f"no new subscriptions for now: {self.committer.trouble}")

    def look(self, now: float, again: Callable[[str], None]) -> None:
        """Let the host know how the disk is, and go on with what was refused."""
        self._host.is_full = bool(self.committer.trouble)
        for name in [name for name, until in self._refused.items() if until <= now]:
            del self._refused[name]
            again(name)

    async def trim(self) -> None:
        """Keep the store within its limits, until cancelled; also when there is no room even for that."""
        while True:
            await trio.sleep(_TRIM_IN_TROUBLE_S if self.committer.trouble else _TRIM_S)
            self.end_drained()
            try:
                dropped = await trio.to_thread.run_sync(self._alone, self._store.trim, time.time())
            except StorageError as exc:
                _LOG.error("not trimmed", extra={"reason": str(exc)})
                continue
            for name, lowest in dropped.items():
                self._host.trimmed(name, lowest)

    def end_drained(self) -> None:
        """What was withdrawn, has all that it is owed and feeds nobody has ended; it is forgotten in time."""
        for known in self._store.subscriptions():
            is_done = known.end is not None and known.frontier.upto >= known.end
            if known.state is State.DRAINING and is_done and known.id not in self._host.hosted:
                self.committer.put(End(known.id))

    def _write(self, changes: Sequence[Change]) -> list[bool]:
        self._alone(self._store.commit, changes)
        return [True] * len(changes)

    def _written(self, change: Change, _: bool) -> None:
        for part in results_of(change):
            self._host.committed(part.subscription, part.frontier.upto)
            self.results += len(part.entries)
            self._tell((part.subscription,))
        if isinstance(change, Together) and change.followers is not None:
            self.results += sum(map(sum, change.followers.matched))
            self._host.all_committed(change.followers.names, change.parts[0].frontier.upto)
            self._tell(change.followers.names)
        if isinstance(change, Drain):
            self._tell((change.subscription,))

    def _failed(self, change: Change, _: StorageError) -> None:
        """What comes after results that were refused would leave a hole: drop it, and begin from the store."""
        names, left = set(), subscriptions_of(change)
        while left:  # what is stored together with something that is dropped is dropped with it
            names |= left
            waiting = [other for other in self.committer.changes if left & subscriptions_of(other)]
            left = {name for other in waiting for name in subscriptions_of(other)} - names
        self.committer.drop(lambda other: bool(names & subscriptions_of(other)))
        for name in names:
            self._host.abandon(name)
            self._refused[name] = trio.current_time() + _AGAIN_S

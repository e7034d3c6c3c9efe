"""What subscriptions in spaces have received, as users read it: in order, with the gaps where they are."""

from __future__ import annotations

import math
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import trio

from peer.daemon.questions import NoAnswer
from peer.daemon.reading import Reach

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from peer.storage.space_store import SpaceStore, SpaceSubscription

_PAGE: Final = 1000


class SpaceReading:
    """The readers of messages; they wait for news of their space. ``complete``: up to where a space is, and up to
    where messages were given up there."""

    def __init__(
        self, store: SpaceStore, subscriptions: Mapping[str, SpaceSubscription],
        complete: Callable[[str], tuple[int, int]],
    ) -> None:  # fmt: skip
        self._store, self._subscriptions, self._complete = store, subscriptions, complete
        self._news = trio.Event()

    def tell(self) -> None:
        """Some space is complete up to a higher number, or a subscription has changed."""
        self._news.set()
        self._news = trio.Event()

    def reach(self, name: str) -> Reach:
        """Say how far a subscription goes; ``NoAnswer`` if there is none."""
        one = self._subscriptions.get(name)
        if one is None:
            raise NoAnswer(f"there is no subscription {name[:100]} in a space here; 'status' lists them")
        upto = self._complete(one.space)[0]
        return Reach(one.start, upto if one.end is None else min(upto, one.end), one.end)

    def names(self) -> list[str]:
        """List the subscriptions."""
        return sorted(self._subscriptions)

    async def entries(
        self, name: str, after: int, *, follow: bool, beat_s: float = math.inf
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Yield what a subscription has received after a number: messages, gaps, and up to where it is complete.
        Who follows gets an empty one after ``beat_s`` without news, and is done when the subscription ended."""
        after = max(after, self.reach(name).start)
        while True:
            news, reach = self._news, self.reach(name)
            given_up = self._complete(self._subscriptions[name].space)[1]
            while after < reach.upto:
                after, found = await trio.to_thread.run_sync(self._page, name, after, reach.upto, given_up)
                for one in found:
                    yield one
            yield {"complete": reach.upto}
            if not follow or (reach.end is not None and reach.upto >= reach.end):
                return
            while not news.is_set():
                with trio.move_on_after(beat_s):
                    await news.wait()
                if not news.is_set():
                    yield {}

    def _page(self, name: str, after: int, upto: int, given_up: int) -> tuple[int, list[dict[str, Any]]]:
        """Return up to where a page goes that begins after a number, and what is on it. A gap comes behind what
        has arrived of it all the same: whoever goes on behind the gap has read that too."""
        gaps, messages = self._store.page(name, after, upto, _PAGE)
        upto = messages[-1][0] if len(messages) == _PAGE else upto
        found = [(number, {"message": number, "attributes": attributes}) for number, attributes in messages]
        for begin, end in [*gaps, (after, given_up)]:
            gap = [max(begin, after), min(end, upto)]
            found += [(gap[1], {"gap": gap})] if gap[0] < gap[1] else []
        return upto, [one for _, one in sorted(found, key=itemgetter(0))]

"""Whether this machine takes whole documents and matches them itself: see ``peer.hosting.relay``.

Both ways are weighed by what comes over the network. What the subscriptions here are sent is about what is stored
of them, each pattern once, for equal ones feed each other in memory; what documents take, the source says. A relay
begins where subscriptions take ``_MORE`` times as much as documents, and ends where they take less than half.
"""

from __future__ import annotations

import logging
import random
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import trio

from overlay.feeds.items import Kind
from peer.daemon.hosted import limit_of
from peer.daemon.questions import NoAnswer, Unreachable
from peer.storage.errors import StorageError
from planner.problem import MOST_FEEDS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from overlay.feeds.items import Item
    from peer.hosting.hosted import Hosted

_LOG: Final = logging.getLogger("distributary.relay")
RELAY: Final = "documents"
"""What the name of a relay begins with."""
MODES: Final = ("auto", "never", "always")
_LOOK_S: Final = 5.0
_SELDOM: Final = 6
"""A machine that has a relay looks so many times less often whether it should."""
_MORE: Final = 2.0
_LESS: Final = 0.5
_ENOUGH_DOCUMENTS: Final = 5


@dataclass(slots=True)
class Weighing:
    """Weighs results against documents, a stretch of the log at a time.

    >>> weighing = Weighing()
    >>> weighing.volume(100, 1_000), weighing.stored("p", "s1", 900), weighing.stored("p", "s2", 900)
    (None, None, None)
    >>> weighing.volume(110, 1_300)
    3.0
    """

    _firsts: dict[str, str] = field(default_factory=dict)
    _bytes: int = 0
    _since: tuple[int, int] | None = None
    _matched: dict[str, int] = field(default_factory=dict)

    def matched(self, relay: str, size: int) -> None:
        """What a relay's documents have matched takes so much in all, each pattern once."""
        self._bytes += size - self._matched.get(relay, 0)
        self._matched[relay] = size

    def stored(self, pattern: str, subscription: str, size: int) -> None:
        """Results of a subscription were stored; of equal patterns one counts."""
        if self._firsts.setdefault(pattern, subscription) == subscription:
            self._bytes += size

    def volume(self, documents: int, size: int) -> float | None:
        """So many documents have been published so far, and so many bytes. Return how many times as much as the
        documents the results are, since the last answer; None while there is too little to say."""
        if self._since is None or documents < self._since[0]:
            self._begin(documents, size)
        assert self._since is not None
        if documents - self._since[0] < _ENOUGH_DOCUMENTS:
            return None
        found = self._bytes / max(size - self._since[1], 1)
        self._begin(documents, size)
        return found

    def _begin(self, documents: int, size: int) -> None:
        self._since, self._bytes = (documents, size), 0
        self._firsts.clear()


@dataclass(eq=False)
class Relaying:
    """Begins and ends the relay of a machine. ``mode``: one of ``MODES``."""

    mode: str
    subscriptions: Mapping[str, Hosted]
    subscribe: Callable[[str, int | None], Awaitable[Any]]
    unsubscribe: Callable[[str], Awaitable[Any]]
    ask: Callable[[str, Any], Awaitable[Any]]
    _weighing: Weighing = field(default_factory=Weighing)
    _asked: str = ""
    """The name of a relay that was asked for, and nobody knows if it began: it is asked for again by this name."""

    def stored(self, subscription: str, items: Sequence[Item]) -> None:
        """Results of a subscription were stored; the relay itself knows what references take."""
        hosted = self.subscriptions[subscription]
        if not hosted.is_relay:
            size = sum(len(item.data) for item in items if item.kind is not Kind.REFERENCE)
            self._weighing.stored(hosted.outlet.pattern.text, subscription, size)

    async def run(self) -> None:
        """Look now and then, until cancelled."""
        while True:
            is_settled = self.mode != "never" and any(one.is_relay for one in self.subscriptions.values())
            pause = _LOOK_S * (_SELDOM if is_settled else 1)
            await trio.sleep(pause * (0.5 + random.random()))  # so that not all ask at once
            try:
                await self.look()
            except (NoAnswer, StorageError) as exc:
                _LOG.warning("not now", extra={"reason": str(exc)})

    async def look(self) -> None:
        """Begin or end the relay, if it is time; of several, one is kept."""
        live = [one for one in self.subscriptions.values() if not one.is_draining]
        relays = [one.name for one in live if one.is_relay]
        own = [name for name in relays if name.startswith(RELAY)]
        others = [one for one in live if not one.is_relay]
        if self._asked in relays:
            self._asked = ""
        more = await self._wanted(others)
        if more is None:
            return
        if not more and self._asked:
            await self._give_up()
        if more and not relays:
            feeds = max(one.configuration.feeds for one in others)
            await self._begin(None if feeds >= MOST_FEEDS else limit_of(feeds))
        for name in own[1:] if more else own:
            await self.unsubscribe(name)
            _LOG.info("relay ends", extra={"subscription": name})

    async def _begin(self, limit: int | None) -> None:
        self._asked = self._asked or f"{RELAY}-{secrets.token_hex(8)}"
        try:
            told = await self.subscribe(self._asked, limit)
        except Unreachable:
            raise
        except NoAnswer:
            await self._give_up()
            raise
        self._asked = ""
        _LOG.info("relay begins", extra={"subscription": told["subscription"]})

    async def _give_up(self) -> None:
        """Forget a relay that was asked for; if it is at the source in some form, it ends there."""
        name, self._asked = self._asked, ""
        with suppress(NoAnswer):
            await self.unsubscribe(name)

    async def _wanted(self, others: Sequence[Hosted]) -> bool | None:
        """Say whether there should be a relay; None to leave things as they are."""
        if self.mode != "auto" or not others:
            return self.mode == "always" and bool(others)
        told = await self.ask("volume", None)
        for hosted in self.subscriptions.values():
            if hosted.is_relay:
                self._weighing.matched(hosted.name, hosted.outlet.matched_bytes)
        ratio = self._weighing.volume(int(told["documents"]), int(told["bytes"]))
        return None if ratio is None or _LESS <= ratio <= _MORE else ratio > _MORE

"""All subscriptions of one machine: frames and a clock in; frames, and results to store, out.

Frames between subscriptions of the same machine take the same way, without leaving it. Nothing here waits: what
is to be sent goes to the ``Port``, what is to be stored too, and ``committed`` says later that it is safe.
"""

from __future__ import annotations

import contextlib
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

from overlay.feeds.receiving import WINDOW
from overlay.wire.errors import MalformedFrame
from overlay.wire.frames import Batch, Cancel, Credit, Ended, Open, Pace
from peer.hosting.configuration import Input
from peer.hosting.feeding import Feeding, FeedingTimes
from peer.hosting.following import hand_out
from peer.hosting.history import RECENT_BYTES, History
from peer.hosting.hosted import Hosted
from peer.hosting.outlet import Outlet
from peer.hosting.relay import follow, may_be_relayed
from peer.hosting.results import DOCUMENTS
from peer.hosting.stepping import step
from peer.storage.result_values import Followers
from rewriting.errors import RewritingError
from xmlmatch import Pattern

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

    from overlay.wire.frames import FromReceiver, FromSender
    from peer.hosting.attempt import Attempt
    from peer.hosting.company import Company
    from peer.hosting.configuration import Configuration
    from peer.hosting.history import Stretch
    from peer.hosting.port import Port

_DRAINING_S: Final = 60.0
"""How long a subscription that was withdrawn feeds on; whoever has not moved by then falls back by itself."""
_MOST_UNSTORED: Final = 16 << 20
"""How much is kept in memory for those who are fed while nothing is stored: once withdrawn, or on a full disk."""
_MOST_EARLY: Final = 10_000
"""How many feeds of a generation that is not known here yet wait to be opened."""


class Host:
    """The subscriptions of one machine; see the module's text."""

    def __init__(
        self, site: str, source: str, port: Port, rng: random.Random, times: FeedingTimes | None = None, *,
        window: int = WINDOW, recent_bytes: int = RECENT_BYTES,
    ) -> None:  # fmt: skip
        self.site, self.source, self.window, self._recent_bytes = site, source, window, recent_bytes
        self.hosted: dict[str, Hosted] = {}
        """All subscriptions; those in the company may seem to be behind."""
        self._company: Company | None = None
        self._port, self._rng = port, rng
        self._times = times or FeedingTimes()
        self._feeds: dict[int, tuple[Feeding, Attempt, int]] = {}
        self._next = 1
        self._failovers = 0
        self._own: deque[FromReceiver | FromSender] = deque()
        self._awake: dict[str, None] = {}
        self._behind: dict[str, None] = {}
        """Whose feeds could be sent more at once, but have had their turn."""
        self._served: dict[tuple[str, int], str] = {}
        self._early: dict[tuple[str, int], Open] = {}
        self._relay: tuple[Input, ...] = ()
        self.is_awaited = True
        """Whether anybody on this machine waits for what comes."""
        self.is_settled = False
        """Whether, when it was last looked, time had nothing to bring: everybody is fed by their best choice."""
        self.is_full = False
        """Nothing can be stored for now: what comes is fed on, and kept in memory within a limit."""

    @property
    def subscriptions(self) -> dict[str, Hosted]:
        """All subscriptions, as they are."""
        self._part()
        return self.hosted

    # What happens.

    def install(
        self, configuration: Configuration, permit: bytes, now: float, *, frontier: int | None = None,
        lowest: int | None = None,
    ) -> bool:  # fmt: skip
        """Take a configuration in; say whether it was newer than what was there. ``frontier`` and ``lowest``: of a
        subscription that was hosted before."""
        known = self.subscriptions.get(configuration.subscription)
        if known is not None:
            if configuration.version <= known.configuration.version:
                return False
            known.configuration = configuration
            known.outlet.most = configuration.feeds
            known.feeding.reconfigure(configuration, permit, now)
            for (site, feed), asked in list(self._early.items()):
                if asked.upstream == configuration.subscription:
                    del self._early[site, feed]
                    self._open(site, asked)
            self._wake(configuration.subscription)
            self._run(now)
            return True
        pattern = Pattern.parse(configuration.pattern)
        start = configuration.start if frontier is None else frontier
        name = configuration.subscription

        def stored(after: int, upto: int, most_bytes: int) -> Stretch:
            return self._port.stored(name, after, upto, most_bytes)

        lowest = configuration.start if lowest is None else lowest
        history = History(start, lowest, stored, recent_bytes=self._recent_bytes)
        outlet = Outlet(pattern, history, configuration.feeds, self.site)
        outlet.resolve = partial(follow, pattern, self._had)
        feeding = Feeding(pattern, configuration, permit, start, self.source, self, self._rng, self._times)
        self.subscriptions[name] = Hosted(name, configuration, feeding, outlet, start)
        if may_be_relayed(pattern):
            feeding.own = self._relay
        feeding.begin(now)
        self._wake(name)
        if self.subscriptions[name].is_relay:
            self._find_relay(now)
        self._run(now)
        return True

    def _find_relay(self, now: float) -> None:
        """Have the others fed by a subscription to whole documents, if there is one."""
        live = [one.name for one in self.subscriptions.values() if one.is_relay and not one.is_draining]
        self._relay = tuple(Input(name, self.site, DOCUMENTS.text) for name in live[:1])
        for hosted in self.subscriptions.values():
            if may_be_relayed(hosted.outlet.pattern):
                hosted.feeding.relayed(self._relay, now)

    def withdraw(self, name: str, now: float, end: int = 0) -> None:
        """Let a subscription go: when it has what it is owed, and those it feeds have moved."""
        hosted = self.subscriptions[name]
        hosted.is_draining, hosted.end, hosted.drained_by = True, end, now + _DRAINING_S
        if hosted.is_relay:
            self._find_relay(now)
        self._finish_draining(now)

    def handle(self, site: str, frame: FromReceiver | FromSender, now: float) -> None:
        """Take a frame of another machine in."""
        self.handle_all(site, (frame,), now)

    def handle_all(self, site: str, frames: Sequence[FromReceiver | FromSender], now: float) -> None:
        """Take frames in that came together, and then do all that they have made possible."""
        for frame in frames:
            if not (isinstance(frame, Batch) and self._step(site, frame)):
                self._handle(site, frame, now)
        self._run(now)

    def site_up(self, site: str, now: float) -> None:
        """A connection to a machine is there."""
        for hosted in list(self.subscriptions.values()):
            hosted.feeding.site_up(site)
        self._run(now)

    def site_lost(self, site: str, now: float) -> None:
        """A machine cannot be reached, or its connection broke."""
        for hosted in list(self.subscriptions.values()):
            hosted.outlet.site_lost(site)
            hosted.feeding.site_lost(site, now)
        self._served = {key: name for key, name in self._served.items() if key[0] != site}
        self._early = {key: asked for key, asked in self._early.items() if key[0] != site}
        self._finish_draining(now)
        self._wake_all()
        self._run(now)

    def committed(self, name: str, upto: int) -> None:
        """Results up to a document are safe on disk: only now do the senders get more credit."""
        hosted = self.hosted.get(name)
        if hosted is None:
            return
        hosted.committed = max(hosted.committed, upto)
        hosted.outlet.history.stored_upto(hosted.committed)
        self._grant(hosted, hosted.committed)

    def all_committed(self, names: Sequence[str], upto: int) -> None:
        """Results of several up to a document are safe on disk."""
        for name in names if self._company is None else self._company.committed(names, upto):
            self.committed(name, upto)

    def abandon(self, name: str) -> None:
        """Forget a subscription at once: what of it is in memory is not to be trusted. It may come again."""
        hosted = self.subscriptions.pop(name, None)
        if hosted is not None:
            for site, frame in hosted.outlet.end("gone"):
                self.send(site, frame)
            hosted.feeding.end()

    def trimmed(self, name: str, lowest: int) -> None:
        """The store has dropped a subscription's results up to a document."""
        hosted = self.hosted.get(name)
        if hosted is not None:
            hosted.outlet.history.lowest = max(hosted.outlet.history.lowest, lowest)

    def tick(self, now: float) -> None:
        """Do what time brings."""
        moved_as_one = self._company.own if self._company is not None else frozenset[str]()
        self.is_settled = True
        for hosted in [one for name, one in self.hosted.items() if name not in moved_as_one]:
            if not hosted.feeding.is_settled:
                self.is_settled = False
                hosted.feeding.tick(now)
                if hosted.feeding.trial is not None:
                    self._wake(hosted.name)
            if self.is_full:
                self._feed_on(hosted, hosted.frontier)
        self._awake |= self._behind
        self._finish_draining(now)
        self._run(now)

    def uses(self, site: str) -> bool:
        """Say whether anything here is fed by a machine, or feeds it."""
        return any(
            site in hosted.feeding.sites or any(feed.site == site for feed in hosted.outlet.feeds.values())
            for hosted in self.hosted.values()
        )

    def feeds(self, site: str) -> bool:
        """Say whether anything on a machine is fed from here."""
        return any(of == site for of, _ in self._served)

    def unnumbered(self) -> list[str]:
        """List the patterns that relays here match themselves because they have no number (``marks``)."""
        relays = [one for one in self.hosted.values() if one.is_relay]
        return [text for one in relays for text in one.outlet.numbers.missing()]

    def numbered(self, name: bytes, numbers: Mapping[str, int]) -> None:
        """The source has said what numbers patterns have, in the numbering of a name."""
        for one in self.hosted.values():
            if one.is_relay:
                one.outlet.numbers.told(name, numbers)

    def keep_pace(self, *, is_awaited: bool | None = None) -> None:
        """Let those who feed relays here know whether documents may be held for a moment: they may if nobody here
        is waiting for them (``is_awaited``), nor anybody whom relays feed."""
        self.is_awaited = self.is_awaited if is_awaited is None else is_awaited
        for one in self.hosted.values():
            if one.is_relay:
                one.feeding.keep_pace(is_gentle=not self.is_awaited and one.outlet.is_gentle)

    @property
    def has_work(self) -> bool:
        """Whether feeds that are behind could be sent more: call ``tick`` again soon."""
        return bool(self._behind)

    @property
    def feeds_given(self) -> int:
        """How many subscriptions of other machines are fed here."""
        return sum(site != self.site for one in self.hosted.values() for site, _ in one.outlet.feeds)

    @property
    def failovers(self) -> int:
        """How often a choice failed and another was taken, of all subscriptions there ever were here."""
        return self._failovers + sum(hosted.feeding.failovers for hosted in self.hosted.values())

    # What ``Feeding`` needs.

    def next_feed(self) -> int:
        """Return a number for a feed."""
        self._next += 1
        return self._next

    def registered(self, feed: int, owner: Feeding, attempt: Attempt, place: int) -> None:
        """Let frames of a feed find their way."""
        self._feeds[feed] = owner, attempt, place

    def forget(self, feed: int) -> None:
        """Drop what still comes for a feed."""
        self._feeds.pop(feed, None)

    def send(self, site: str, frame: FromReceiver | FromSender) -> bool:
        """Send to a machine, this one included."""
        if site == self.site:
            self._own.append(frame)
            return True
        return self._port.send(site, frame)

    # How it is done.

    def _run(self, now: float) -> None:
        """Go on until nothing happens on this machine any more."""
        while True:
            while self._own:
                self._handle(self.site, self._own.popleft(), now)
            awake, self._awake = self._awake, {}
            for name in awake:
                hosted = self.hosted.get(name)
                if hosted is None:
                    self._behind.pop(name, None)
                    continue
                while self._advance(hosted, now):
                    pass
                self._tell_level(hosted)
                self._pump(hosted)
            if not self._own and not self._awake:
                return

    def _pump(self, hosted: Hosted) -> None:
        for site, frame in hosted.outlet.pump():
            self.send(site, frame)
        if hosted.outlet.is_behind:
            self._behind[hosted.name] = None
        else:
            self._behind.pop(hosted.name, None)

    def _part(self, name: str | None = None) -> None:
        """Have the company part, if there is one; with ``name``, if that is in it."""
        if self._company is not None and (name is None or name in self._company):
            self._company.part()
            self._company = None

    def _tell_level(self, hosted: Hosted) -> None:
        if hosted.feeding.is_live and hosted.feeding.level != hosted.outlet.level:
            self._part()
            for site, frame in hosted.outlet.at_level(hosted.feeding.level):
                self.send(site, frame)

    def _wake(self, name: str) -> None:
        self._awake[name] = None

    def _wake_all(self) -> None:
        self._awake = dict.fromkeys(self.hosted)

    def _handle(self, site: str, frame: FromReceiver | FromSender, now: float) -> None:
        if isinstance(frame, Open):
            self._open(site, frame)
        elif isinstance(frame, Credit | Cancel | Pace):
            name = self._served.get((site, frame.feed), "")
            if name in self.hosted:
                self.hosted[name].outlet.handle(site, frame)
                if isinstance(frame, Pace):
                    self.keep_pace()
                else:
                    self._wake(name)
            if isinstance(frame, Cancel):
                self._served.pop((site, frame.feed), None)
                self._early.pop((site, frame.feed), None)
        elif frame.feed in self._feeds:
            owner, attempt, place = self._feeds[frame.feed]
            if attempt.sites[place] == site:
                self._part(owner.configuration.subscription)
                # A frame that does not follow ends its feed, and another way of being fed begins.
                with contextlib.suppress(MalformedFrame):
                    owner.handle(attempt, place, frame, now)
                self._wake(owner.configuration.subscription)

    def _step(self, site: str, frame: Batch) -> bool:
        """Take a frame in the short way, if it is a step; say whether it was."""
        company = self._company
        if company is None or self._awake or self._own or self.is_full:
            return False
        done = step(company, site, frame)
        if done is None:
            return False
        relay, item = company.relay, done.item
        self._port.store_together(
            [(relay.name, [item], item.number)], Followers(company.names([]), [done.flags])
        )  # fmt: skip
        if relay.outlet.feeds:
            self._pump(relay)
        return True

    def _open(self, site: str, asked: Open) -> None:
        hosted = self.subscriptions.get(asked.upstream)
        reason = "" if site == self.site else self._port.forbids(site, asked)
        if hosted is None or hosted.is_draining:
            self.send(site, Ended(asked.feed, "gone", f"{asked.upstream} is not here"))
        elif reason:
            self.send(site, Ended(asked.feed, "forbidden", reason))
        elif self.is_full and hosted.outlet.history.recent_bytes > _MOST_UNSTORED:
            self.send(site, Ended(asked.feed, "busy", "its disk is full"))
        elif hosted.configuration.generation < asked.generation and len(self._early) < _MOST_EARLY:
            # The source was restored, and will tell us too: what we have of the old log may be nowhere else.
            self._early[site, asked.feed] = asked
        elif hosted.configuration.generation != asked.generation:
            self.send(site, Ended(asked.feed, "lost", "another generation of the log"))
        else:
            self._tell_level(hosted)
            self._wake(hosted.name)
            for frame in hosted.outlet.open(site, asked):
                self.send(site, frame)
            if (site, asked.feed) in hosted.outlet.feeds:
                self._served[site, asked.feed] = hosted.name

    def _advance(self, hosted: Hosted, now: float) -> bool:
        """Compute what the inputs of a subscription have made possible; say whether there may be more at once."""
        before = hosted.feeding.frontier
        ready = hosted.feeding.ready()
        if ready is None:
            return False
        try:
            items = [] if hosted.feeding.current is None else hosted.feeding.current.joined(ready, self.site)
        except RewritingError:
            hosted.feeding.frontier = before
            hosted.feeding.poisoned(now)
            return True
        hosted.outlet.history.add(items, ready.upto)
        if hosted.feeding.current is not None:
            hosted.unsafe.append((ready.upto, hosted.feeding.current, ready.used))
        if hosted.is_draining and before >= hosted.end:
            self._feed_on(hosted, ready.upto)
        else:
            part = (hosted.name, items, ready.upto)
            if hosted.is_relay and not (self.is_full or hosted.is_draining):
                found = hand_out(
                    hosted, items, before, ready.upto, company=self._company, feeds=self._feeds,
                    subscriptions=self.hosted,
                )  # fmt: skip
                self._company = found.company
                self._awake |= {one.name: None for one in found.taken if one.outlet.feeds}
                self._port.store_together([part, *found.parts], found.followers)
            else:
                if hosted.is_relay:
                    self._part()
                self._port.store(*part)
            if self.is_full:
                self._feed_on(hosted, ready.upto)
        return hosted.feeding.trial is not None

    def _had(self, relay: str, number: int) -> Stretch:
        """Read a document that a relay has, or had before it ended."""
        if relay in self.hosted:
            return self.hosted[relay].outlet.history.read(number - 1, 1)
        return self._port.stored(relay, number - 1, number, 1)

    def _feed_on(self, hosted: Hosted, upto: int) -> None:
        """Take more although nothing is stored of it, up to a limit; then whoever is fed must look elsewhere."""
        if hosted.outlet.history.recent_bytes <= _MOST_UNSTORED:
            self._grant(hosted, upto)
        else:
            for site, frame in hosted.outlet.end("gone"):
                self.send(site, frame)

    def _grant(self, hosted: Hosted, upto: int) -> None:
        while hosted.unsafe and hosted.unsafe[0][0] <= upto:
            _, attempt, sizes = hosted.unsafe.popleft()
            hosted.feeding.used(attempt, sizes, min(upto, hosted.committed))

    def _finish_draining(self, now: float) -> None:
        for name, hosted in [one for one in self.hosted.items() if one[1].is_draining]:
            if hosted.committed < hosted.end:
                continue
            if now >= hosted.drained_by:
                for site, frame in hosted.outlet.end("moved"):
                    self.send(site, frame)
            if not hosted.outlet.feeds:
                hosted.feeding.end()
                self._failovers += hosted.feeding.failovers
                del self.hosted[name]

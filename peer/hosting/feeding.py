"""How one subscription is fed: its first choice, failover, and moves without a break.

Theory of operation. An *attempt* is one choice of inputs, opened from the frontier on. The *current* attempt
makes results. When it fails (a machine is lost, a feed is refused or ends, a sender lacks what is owed) the next
choice begins at once from the frontier; the source is the last. A choice that failed rests for a while, longer
each time, with jitter. While something better than the current choice may be tried, a *trial* runs beside it,
and takes over when it has come as far as the frontier: so a new configuration, or the way back to the first
choice, costs no pause. A sender that has lost what is owed is tried again when the source has fed the
subscription past that. A sender that is more links away from the source than any plan makes it has failed as
well: somewhere above, feeds go in a circle, and each turn adds to the level.

    none --begin--> current                    current --fails--> next choice as current
    current --better choice rested, or new configuration--> current + trial
    current + trial --trial reaches the frontier--> trial is current        trial --fails--> current
"""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from overlay.feeds.intake import Intake
from overlay.feeds.receiving import Receiving
from overlay.wire.frames import Open
from peer.hosting.attempt import Attempt, needed
from peer.hosting.results import BadLink
from xmlmatch import PatternError

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from overlay.feeds.intake import Ready
    from overlay.wire.frames import FromReceiver, FromSender
    from peer.hosting.configuration import Configuration, Input
    from xmlmatch import Pattern


@dataclass(frozen=True, slots=True)
class FeedingTimes:
    """``open_s``: a feed that is not open by then has failed. ``rest_s``: how long a failed choice rests the first
    time; ``longest_rest_s``: at most. Less returns sooner to the first choice, and asks more often."""

    open_s: float = 3.0
    rest_s: float = 2.0
    longest_rest_s: float = 60.0


class FeedPort(Protocol):
    """What feeding needs of its host."""

    window: int
    """How many bytes may be under way on a feed."""

    def next_feed(self) -> int:
        """Return a number that no other feed to this host has."""

    def send(self, site: str, frame: FromReceiver) -> bool:
        """Send, or say that there is no connection; then one is made."""

    def registered(self, feed: int, owner: Feeding, attempt: Attempt, place: int) -> None:
        """Let frames of a feed find their way."""

    def forget(self, feed: int) -> None:
        """No frame of this feed is wanted any more."""


_LOG: Final = logging.getLogger("distributary.hosting")
SOURCE_PLACE: Final = 1 << 30
_MOVES: Final = 32


@dataclass(slots=True)
class _Rest:
    until: float = 0.0
    times: int = 0
    frontier: int = 0  # not before the subscription is there


@dataclass(slots=True, eq=False)
class Feeding:
    """The feeds into one subscription. ``frontier``: everything up to there has been taken out."""

    pattern: Pattern
    configuration: Configuration
    permit: bytes
    frontier: int
    source: str
    port: FeedPort
    rng: random.Random
    times: FeedingTimes = field(default_factory=FeedingTimes)
    own: tuple[Input, ...] = ()
    """This machine's relay, if it has one: better than any choice of the configuration."""
    current: Attempt | None = None
    trial: Attempt | None = None
    failovers: int = 0
    circles: int = 0
    came_by: deque[tuple[int, tuple[Input, ...]]] = field(default_factory=lambda: deque(maxlen=_MOVES))
    """Behind which document which inputs began to feed it; none: the source."""
    _rests: dict[int, _Rest] = field(default_factory=dict)
    _unsent: list[tuple[str, Open]] = field(default_factory=list)

    def begin(self, now: float) -> None:
        """Begin with the best choice that is not resting."""
        self.current = self._attempt(now)

    def reconfigure(self, configuration: Configuration, permit: bytes, now: float) -> None:
        """Move to another configuration; what runs goes on until the new first choice has caught up."""
        self.configuration, self.permit = configuration, permit
        self._move(now)

    def relayed(self, own: tuple[Input, ...], now: float) -> None:
        """This machine has a relay now, or none any more."""
        if own != self.own:
            self.own = own
            self._move(now)

    def _move(self, now: float) -> None:
        """Go over to what is the first choice now, without a break."""
        self._rests.clear()
        self._drop(self.trial)
        self.trial = None
        if self.current is None:
            self.begin(now)
            return
        wanted = next(iter(self._choices), ())
        if self.current.choice == wanted:
            self.current.place = 0 if wanted else SOURCE_PLACE
            return
        self.current.place = SOURCE_PLACE + 1  # worse than anything in the new configuration
        self.trial = self._attempt(now)

    def handle(self, attempt: Attempt, place: int, frame: FromSender, now: float) -> None:
        """Take a frame in; ``MalformedFrame`` passes through when the feed is done with."""
        if attempt not in (self.current, self.trial):
            return
        try:
            attempt.handle(place, frame)
        finally:
            self._judge(attempt, now)

    @property
    def is_as_configured(self) -> bool:
        """Whether the first choice feeds it, and nothing else is being tried."""
        wanted = next(iter(self._choices), ())
        return self.trial is None and self.is_live and self.current is not None and self.current.choice == wanted

    def site_lost(self, site: str, now: float) -> None:
        """A machine cannot be reached: what hangs on it has failed."""
        self._unsent = [one for one in self._unsent if one[0] != site]
        for attempt in (self.trial, self.current):
            if attempt is not None and site in attempt.sites:
                self._failed(attempt, now)

    def site_up(self, site: str) -> None:
        """A machine is connected: ask it for what waits. Who has nothing else rests no longer because of it."""
        if self.current is None:
            for place, rest in self._rests.items():
                if site in self._sites(place):
                    rest.until = 0.0
        waiting = [frame for where, frame in self._unsent if where == site]
        self._unsent = [one for one in self._unsent if one[0] != site]
        for frame in waiting:
            self.port.send(site, frame)

    @property
    def is_settled(self) -> bool:
        """Whether its best choice feeds it, and nothing else is being tried: time brings nothing."""
        current = self.current
        if current is None or self.trial is not None or not current.is_live:
            return False
        return current.place == (0 if self._choices else SOURCE_PLACE)

    def tick(self, now: float) -> None:
        """Give up what takes too long, and try what is better than the current choice."""
        for attempt in (self.trial, self.current):
            if attempt is not None and not attempt.is_live and now - attempt.begun >= self.times.open_s:
                self._failed(attempt, now)
        if self.current is None:
            self.begin(now)
        elif self.trial is None:
            best = self._best(now)
            if best is not None and best < self.current.place:
                self.trial = self._attempt(now)

    def ready(self) -> Ready | None:
        """Take out what can be computed now, and use up the credit it took; None if there is nothing new."""
        if self.trial is not None and self.trial.is_live and self.trial.intake.covered >= self.frontier:
            self._drop(self.current)
            self.current, self.trial = self.trial, None
        for attempt in (self.trial, self.current):
            # What another attempt has already made results of: its credit must not be held back.
            if attempt is not None and attempt.intake.covered <= self.frontier:
                self.used(attempt, attempt.intake.forget(self.frontier), 0)
        if self.current is None or self.current.intake.covered <= self.frontier:
            return None
        self._note_inputs(self.current)
        ready = self.current.intake.ready(frontier=self.frontier)
        self.frontier = ready.upto
        return ready

    def is_at(self, number: int, attempt: Attempt) -> bool:
        """Say whether an attempt alone feeds it, and everything up to a document, and nothing else, has come."""
        is_alone = self.current is attempt and self.trial is None and self.frontier == number
        return is_alone and attempt.is_at(number)

    def handed(self, upto: int) -> None:
        """What its one input has up to a document was handed over without frames."""
        if self.current is not None:
            self._note_inputs(self.current)
            self.current.skip_to(upto)
            self.frontier = upto

    def _note_inputs(self, current: Attempt) -> None:
        if not self.came_by or self.came_by[-1][1] is not current.inputs:
            self.came_by.append((self.frontier, current.inputs))

    def used(self, attempt: Attempt, sizes: Sequence[int], acknowledged: int) -> None:
        """Grant the senders more, for what was taken out and is safe."""
        if attempt not in (self.current, self.trial):
            return
        for feed, site, size in zip(attempt.feeds, attempt.sites, sizes, strict=True):
            for frame in feed.use(size, acknowledged):
                self.port.send(site, frame)

    def keep_pace(self, *, is_gentle: bool) -> None:
        """Let the senders know whether what they send may be held for a moment."""
        for attempt in (self.current, self.trial):
            if attempt is not None and attempt.is_live:
                for feed, site in zip(attempt.feeds, attempt.sites, strict=True):
                    for frame in feed.keep_pace(is_gentle=is_gentle):
                        self.port.send(site, frame)

    def poisoned(self, now: float) -> None:
        """What came could not be joined: this choice has failed."""
        if self.current is not None:
            self._failed(self.current, now)

    def end(self) -> None:
        """Take no more."""
        self._drop(self.trial)
        self._drop(self.current)
        self.trial = self.current = None
        self._unsent = []

    def inputs_of(self, number: int) -> tuple[Input, ...] | None:
        """Return by which inputs a document came (none: from the source); None if that is not known any more."""
        for after, inputs in reversed(self.came_by):
            if after < number:
                return inputs
        return None

    @property
    def level(self) -> int:
        """One more than the deepest feeder's."""
        return 1 + max((feed.level for feed in self.current.feeds), default=0) if self.current else 0

    @property
    def sites(self) -> set[str]:
        """The machines that feed it, or are about to."""
        return {site for attempt in (self.current, self.trial) if attempt is not None for site in attempt.sites}

    @property
    def is_live(self) -> bool:
        """Whether every feed of the current choice is open, so that its level is known."""
        return self.current is not None and self.current.is_live

    @property
    def _choices(self) -> tuple[tuple[Input, ...], ...]:
        return (self.own, *self.configuration.choices) if self.own else self.configuration.choices

    def _best(self, now: float) -> int | None:
        """Return the first choice that is not resting, the source last; None if all are."""
        places: list[int] = [*range(len(self._choices)), SOURCE_PLACE]
        for place in places:
            rest = self._rests.get(place)
            if rest is None or (now >= rest.until and self.frontier >= rest.frontier):
                return place
        return None

    def _attempt(self, now: float) -> Attempt | None:
        """Open the feeds of the best choice; None if all are resting."""
        place = self._best(now)
        if place is None:
            return None
        choice: tuple[Input, ...] = () if place == SOURCE_PLACE else self._choices[place]
        try:
            inputs, joining = needed(self.pattern, choice)
            cuts = joining.cuts()
        except (BadLink, PatternError):
            self._rest(place, now)
            return self._attempt(now)
        sites = tuple(one.site for one in inputs) or (self.source,)
        feeds = [Receiving(self.port.next_feed(), self.frontier, self.port.window) for _ in sites]
        attempt = Attempt(place, choice, inputs, joining, sites, feeds, Intake(len(feeds), self.frontier), now)
        for number, (feed, site, cut) in enumerate(zip(feeds, sites, cuts, strict=True)):
            self.port.registered(feed.feed, self, attempt, number)
            upstream = inputs[number].subscription if inputs else ""
            asked = Open(
                feed.feed, upstream, self.configuration.subscription, self.pattern.text, cut, self.permit,
                self.configuration.generation, self.frontier, feed.window,
            )  # fmt: skip
            if not self.port.send(site, asked):
                self._unsent.append((site, asked))
        return attempt

    def _sites(self, place: int) -> tuple[str, ...]:
        if place == SOURCE_PLACE or place >= len(self._choices):
            return (self.source,)
        return tuple(one.site for one in self._choices[place]) or (self.source,)

    def _judge(self, attempt: Attempt, now: float) -> None:
        if not attempt.has_failed:
            return
        if attempt.is_too_deep:
            # Configurations follow a fixed order and make no circles: whoever signed this has to know.
            _LOG.error("fed in a circle", extra={
                "subscription": self.configuration.subscription, "version": tuple(self.configuration.version),
                "inputs": [one.subscription for one in attempt.inputs],
            })  # fmt: skip
            self.circles += 1
        self._failed(attempt, now)

    def _failed(self, attempt: Attempt, now: float) -> None:
        self._rest(attempt.place, now, attempt.missing)
        self._drop(attempt)
        if attempt is self.trial:
            self.trial = None
            return
        self.failovers += 1
        self.current, self.trial = self.trial, None
        if self.current is None:
            self.current = self._attempt(now)

    def _rest(self, place: int, now: float, frontier: int = 0) -> None:
        rest = self._rests.setdefault(place, _Rest())
        longest = min(self.times.rest_s * 2**rest.times, self.times.longest_rest_s)
        rest.until, rest.times = now + longest * (0.5 + self.rng.random()), min(rest.times + 1, 20)
        rest.frontier = frontier

    def _drop(self, attempt: Attempt | None) -> None:
        if attempt is None:
            return
        gone = {feed.feed for feed in attempt.feeds}
        waiting = {frame.feed for _, frame in self._unsent}
        self._unsent = [one for one in self._unsent if one[1].feed not in gone]
        for feed, site in zip(attempt.feeds, attempt.sites, strict=True):
            self.port.forget(feed.feed)
            if feed.feed not in waiting:
                for frame in feed.end():
                    self.port.send(site, frame)

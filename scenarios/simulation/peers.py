"""A subscriber's machine in virtual time: the real host, store and permits, and the daemon's part in short."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

import msgspec

from overlay.wire.frames import Answer, Ask, Credit, Ended
from peer.daemon.entries import entry_of, item_of
from peer.daemon.hosted import HostedHere
from peer.daemon.numbering import ask_numbers
from peer.daemon.questions import NoAnswer, answer
from peer.hosting.history import Stretch
from peer.hosting.rows import write_columns
from peer.storage.errors import StorageError
from peer.storage.result_store import ResultStore
from peer.storage.result_values import Frontier, ResultLimits, Results, Together, results_of, subscriptions_of
from scenarios.simulation.asking import Asking
from scenarios.simulation.disk import Disk
from scenarios.simulation.tasks import Tasks
from scenarios.simulation.unsigned import UnsignedPermits
from scenarios.simulation.verdicts import Check, WentWrong
from scenarios.simulation.watched import WatchedHost
from xmlmatch import Pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from overlay.feeds.items import Item
    from overlay.wire.frames import Frame, Open
    from peer.storage.result_values import Change, Followers
    from scenarios.simulation.agenda import Agenda
    from scenarios.simulation.wires import Wires

SOURCE: Final = "source"
_BEAT_S: Final = 0.25
_TRIMMING_S: Final = 0.05


class PeerMachine:
    """See the module's text. ``memory``: the window of each feed, and how much stays in memory of each
    subscription. What a machine says that cannot be true ends the run."""

    def __init__(
        self, agenda: Agenda, wires: Wires, name: str, folder: Path, *, rate: float = 1.0, memory: int = 1 << 20
    ) -> None:
        self._agenda, self._wires, self.name, self.rate, self._memory = agenda, wires, name, rate, memory
        self.disk: Disk[ResultStore, Change, bool] = Disk(
            agenda,
            folder / f"{name}.sqlite",
            lambda path: ResultStore.open(path, clock=lambda: agenda.now),
            _commit,
        )
        self.disk.done = self._committed
        self.host: WatchedHost | None = None
        self._tasks = Tasks()
        self.life = 0
        self._safe: dict[str, int] = {}
        """Up to where each subscription was known to be on disk."""
        self._dropped: dict[str, list[Item]] = {}
        """What was stored once, and read by the user, before it was dropped."""

    def close(self) -> None:
        """The run is over: nothing goes on, and the store is closed."""
        self._tasks.end()
        self.disk.close()

    @property
    def is_up(self) -> bool:
        """Whether its process runs."""
        return self.host is not None

    @property
    def results(self) -> ResultStore:
        """What it has stored."""
        return self.disk.store

    @property
    def _now(self) -> float:
        return self._agenda.now * self.rate

    # What happens to it.

    def start(self) -> None:
        """Start the process: everything goes on from the disk."""
        store = self.disk.start()
        for name, upto in self._safe.items():
            found = store.frontier(name)
            if found is None or found.upto < upto:
                what = f"{self.name} had {upto} of {name} on disk, and now it has {found}"
                raise WentWrong(Check.KEPT, what)
        self.host = WatchedHost(
            self.name, SOURCE, self, self._agenda.rng, window=self._memory, recent_bytes=self._memory
        )
        self.host.results = store
        self._permits, self._tasks = UnsignedPermits(), Tasks()
        self._asking = Asking(self._agenda, self._wires, self.name)
        committer: Any = self.disk  # it does what a committer does
        self.hosted = HostedHere(self.name, store, self._permits, self.host, committer, lambda: self._now)
        self._has_greeted = self._is_asking = False
        self.life += 1
        self.hosted.resume()
        self._tick(self.life)

    def crash(self, *, is_power: bool) -> None:
        """End the process at once."""
        self.host = None
        self._asking.end()
        self._tasks.end()
        self.disk.crash(is_power=is_power)

    def subscribe(self, name: str, text: str, limit: int | None, done: Callable[[int], None]) -> None:
        """Subscribe for the user; ``done`` hears from which document on, once it is safe here."""
        # A user asks under a new name each time. Here it is the same, so the order of columns must be too: of a
        # subscription whose answer was lost only the canonical text is known.
        self._tasks.start(self._subscribe(name, Pattern.parse(Pattern.parse(text).text), limit, done))

    async def _subscribe(
        self, name: str, pattern: Pattern, limit: int | None, done: Callable[[int], None]
    ) -> None:
        if self.disk.trouble:
            return
        asked = {
            "subscription": name, "pattern": pattern.text, "columns": write_columns(pattern), "limit": limit,
        }  # fmt: skip
        self.hosted.expect(name, write_columns(pattern))
        try:
            found = await self._asking.ask(SOURCE, "subscribe", asked)
            await self.hosted.begin(
                name, pattern.text, found["start"], found["generation"], found["configuration"]
            )
        except (NoAnswer, StorageError):
            return
        done(found["start"])

    def unsubscribe(self, name: str, done: Callable[[int], None]) -> None:
        """End a subscription for the user; ``done`` hears with which document."""
        self._tasks.start(self._unsubscribe(name, done))

    async def _unsubscribe(self, name: str, done: Callable[[int], None]) -> None:
        try:
            found = await self._asking.ask(SOURCE, "unsubscribe", {"subscription": name})
            await self.hosted.end(name, found["end"])
        except (NoAnswer, StorageError):
            return
        done(found["end"])

    def ask(self, what: str, body: Any, done: Callable[[Any], None] = lambda found: None) -> None:
        """Ask the source something for the user; a refusal is not told."""
        self._tasks.start(self._ask(what, body, done))

    async def _ask(self, what: str, body: Any, done: Callable[[Any], None]) -> None:
        try:
            found = await self._asking.ask(SOURCE, what, body)
        except NoAnswer:
            return
        done(found)

    def trim(self, moment: float) -> None:
        """Drop results that were stored up to a moment, as retention would."""
        assert self.host is not None
        stored = {one.id: self._stored_items(one.id) for one in self.results.subscriptions()}
        try:
            dropped = self.results.trim(moment + ResultLimits().kept_age_s)
        except StorageError:
            dropped = {}  # some of it may be done
        for name, items in stored.items():
            kept = self.results.lowest(name)
            gone = [one for one in items if kept is None or one.number <= kept]
            self._dropped.setdefault(name, []).extend(gone)
        # A daemon trims in a thread, and its host hears of it later.
        self._agenda.after(_TRIMMING_S, self._trimmed, self.life, dropped)

    def _trimmed(self, life: int, dropped: dict[str, int]) -> None:
        if life == self.life and self.host is not None:
            for name, lowest in dropped.items():
                self.host.trimmed(name, lowest)

    # What the wires tell.

    def connected(self, site: str) -> None:
        """A machine is there; the source is greeted first."""
        assert self.host is not None
        if site == SOURCE:
            self._tasks.start(self._greet())
        self.host.site_up(site, self._now)
        self._asking.again(site)

    def lost(self, site: str) -> None:
        """A machine is gone."""
        assert self.host is not None
        self.host.site_lost(site, self._now)

    def heard(self, site: str, frame: Frame) -> None:
        """A frame has come."""
        assert self.host is not None
        if isinstance(frame, Answer):
            self._asking.take(site, frame)
        elif isinstance(frame, Ask):
            if site == SOURCE:
                self._told(frame)
        elif hasattr(frame, "feed"):
            self.host.handle(site, frame, self._now)  # type: ignore[arg-type]  # a feed's

    def feeds(self, site: str) -> bool:
        """Say whether anything on another machine is fed by this one."""
        return self.host is not None and self.host.feeds(site)

    def _told(self, question: Ask) -> None:
        body = msgspec.msgpack.decode(question.body)
        if question.what == "configure":
            for signed in body:
                self.hosted.configure(signed)
        elif question.what == "withdrawn":
            self.hosted.withdrawn(body["subscription"], body["end"])
        self._wires.send(self.name, SOURCE, answer(question, True))

    async def _greet(self) -> None:
        """Compare with the source, as ``peer.daemon.membership`` does."""
        generation, frontier = self.hosted.seen()
        greeting = {
            "addresses": [], "generation": generation, "frontier": frontier, "is_first": not self._has_greeted,
            "subscriptions": self.hosted.live(),
        }  # fmt: skip
        try:
            found = await self._asking.ask(SOURCE, "greet", greeting)
            self._has_greeted = True
            if found["unknown"]:
                what = f"{self.name} has {found['unknown']}, and the source has lost them"
                raise WentWrong(Check.KEPT, what)
            for name, end in found["ended"].items():
                self.hosted.withdrawn(name, end)
            for name in [one for one in map(self.hosted.configure, found["configurations"]) if one]:
                await self._asking.ask(SOURCE, "unsubscribe", {"subscription": name})
        except NoAnswer as exc:
            self._agenda.note(f"{self.name} and the source do not agree: {exc}")

    async def _ask_numbers(self) -> None:
        """Ask for what reads marks, as ``peer.daemon.numbering`` does."""
        assert self.host is not None
        with contextlib.suppress(NoAnswer):
            await ask_numbers(self.host, lambda what, body: self._asking.ask(SOURCE, what, body))
        self._is_asking = False

    # What the host asks for.

    def send(self, site: str, frame: Any) -> bool:
        """Send to a machine."""
        assert self.host is not None
        if isinstance(frame, Credit) and (fed := self.host._feeds.get(frame.feed)) is not None:
            name = fed[0].configuration.subscription
            safe, end = self.results.extent(name) or (fed[0].configuration.start, None)
            if frame.acknowledged > safe and safe != end:  # what lies behind its end is not owed
                what = f"{name} acknowledged {frame.acknowledged}, and {safe} is on disk"
                raise WentWrong(Check.ACKNOWLEDGED, what)
        elif isinstance(frame, Ended) and frame.why == "busy":
            self._check_busy(site, frame)
        return self._wires.send(self.name, site, frame)

    def _check_busy(self, site: str, frame: Ended) -> None:
        """Nobody is turned away while there is room."""
        assert self.host is not None
        outlets = [hosted.outlet for hosted in self.host.subscriptions.values()]
        full = [
            outlet for outlet in outlets
            if len({feed.downstream for feed in outlet.feeds.values() if feed.site != self.name}) >= outlet.most
        ]  # fmt: skip
        if not full:
            what = f"{self.name} is too busy for feed {frame.feed} of {site}, and nobody there is"
            raise WentWrong(Check.ROOM, what)

    def store(self, subscription: str, items: Sequence[Item], upto: int) -> None:
        """Store results."""
        self.disk.put(self._results(subscription, items, upto))

    def store_together(
        self, parts: Sequence[tuple[str, Sequence[Item], int]], followers: Followers | None = None
    ) -> None:
        """Store results of several subscriptions at once."""
        self.disk.put(Together([self._results(*part) for part in parts], followers))

    def _results(self, subscription: str, items: Sequence[Item], upto: int) -> Results:
        assert self.host is not None
        generation = self.host.hosted[subscription].configuration.generation
        return Results(subscription, [entry_of(one) for one in items], Frontier(generation, upto))

    def stored(self, subscription: str, after: int, upto: int, most_bytes: int) -> Stretch:
        """Read results back, as a daemon does."""
        dropped = min(self.results.lowest(subscription) or 0, upto)
        if self.host is not None and dropped > after:
            self.host.trimmed(subscription, dropped)
        items = self._items(subscription, after, upto, most_bytes)
        return Stretch(items, items[-1].number if items else upto)

    def had(self, subscription: str) -> list[Item]:
        """Return everything that was ever stored of a subscription, also what was dropped later."""
        return [*self._dropped.get(subscription, ()), *self._stored_items(subscription)]

    def _stored_items(self, subscription: str) -> list[Item]:
        after = self.results.lowest(subscription) or 0
        return self._items(subscription, after, 1 << 60, 1 << 40)

    def _items(self, subscription: str, after: int, upto: int, most_bytes: int) -> list[Item]:
        known = self.results.hosted(subscription)
        if known is None:
            return []
        pattern = Pattern.parse(known.pattern)
        return [item_of(pattern, one) for one in self.results.entries(subscription, after, upto, most_bytes)]

    def forbids(self, site: str, asked: Open) -> str:
        """Say why a machine may not open a feed here."""
        return self._permits.forbids(site, asked) or self._permits.names(asked, self.name)

    # The disk.

    def _committed(self, change: Change, _: bool) -> None:
        for name in sorted(subscriptions_of(change)):
            found = self.results.frontier(name)
            assert found is not None
            self._safe[name] = found.upto
        if self.host is None:
            return
        for part in results_of(change):
            self.host.committed(part.subscription, part.frontier.upto)
        if isinstance(change, Together) and change.followers is not None:
            self.host.all_committed(change.followers.names, change.parts[0].frontier.upto)

    def _tick(self, life: int) -> None:
        if life != self.life or self.host is None:
            return
        if not self._wires.is_connected(self.name, SOURCE):
            self._wires.send(self.name, SOURCE, Answer(0, ok=False, body=b""))
        self.host.is_full = bool(self.disk.trouble)
        self.host.tick(self._now)
        self.host.keep_pace(is_awaited=(int(self._now) + sum(self.name.encode())) % 3 == 0)
        if not self._is_asking and self.host.unnumbered():
            self._is_asking = True
            self._tasks.start(self._ask_numbers())
        self._agenda.after(0.02 if self.host.has_work else _BEAT_S, self._tick, life)


def _commit(store: ResultStore, changes: Sequence[Change]) -> list[bool]:
    store.commit(changes)
    return [True] * len(changes)

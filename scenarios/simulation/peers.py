"""A subscriber's machine in virtual time: the real host, with a disk of ours, and the daemon's part in short."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from overlay.wire.frames import Answer, Ask, Credit, Ended
from peer.hosting.configuration import decode_untrusted
from peer.hosting.history import Stretch
from peer.hosting.host import Host
from scenarios.simulation.asking import Asking, answer
from scenarios.simulation.disk import Disk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from overlay.feeds.items import Item
    from overlay.wire.frames import Frame, Open
    from peer.hosting.configuration import Configuration
    from scenarios.simulation.agenda import Agenda
    from scenarios.simulation.wires import Wires

SOURCE: Final = "source"
_BEAT_S: Final = 0.25


@dataclass(slots=True)
class Kept:
    """What is on disk of a subscription."""

    start: int
    frontier: int
    permit: bytes = b""
    items: dict[int, Item] = field(default_factory=dict)
    lowest: int = 0
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Begin:
    """A subscription begins."""

    name: str
    start: int


@dataclass(frozen=True, slots=True)
class Install:
    """A configuration is kept."""

    name: str
    permit: bytes


@dataclass(frozen=True, slots=True)
class Results:
    """Results, and the frontier that they reach."""

    name: str
    items: tuple[Item, ...]
    upto: int


@dataclass(frozen=True, slots=True)
class End:
    """A subscription ends with a document."""

    name: str
    end: int


Change = Begin | Install | Results | End


class WentWrong(Exception):
    """Something happened that must not, whatever the faults."""


class PeerMachine:
    """See the module's text. ``memory``: the window of each feed, and how much stays in memory of each
    subscription. What a machine says that cannot be true ends the run."""

    def __init__(self, agenda: Agenda, wires: Wires, name: str, rate: float = 1.0, memory: int = 1 << 20) -> None:
        self._agenda, self._wires, self.name, self.rate, self._memory = agenda, wires, name, rate, memory
        self.kept: dict[str, Kept] = {}
        self._disk: Disk[Change] = Disk(agenda, self._apply)
        self._disk.done = self._committed
        self.host: Host | None = None
        self._asking = Asking(agenda, wires, name)
        self._heirs: dict[str, Callable[[], None]] = {}
        self._life = 0

    @property
    def is_up(self) -> bool:
        """Whether its process runs."""
        return self.host is not None

    @property
    def disk(self) -> Disk[Change]:
        """Its disk, to be made slow or full."""
        return self._disk

    @property
    def _now(self) -> float:
        return self._agenda.now * self.rate

    # What happens to it.

    def start(self) -> None:
        """Start the process: everything goes on from the disk."""
        self.host = Host(self.name, SOURCE, self, self._agenda.rng, window=self._memory, recent_bytes=self._memory)
        self._asking = Asking(self._agenda, self._wires, self.name)
        self._life += 1
        for name, kept in list(self.kept.items()):
            if kept.permit and (kept.end is None or kept.frontier < kept.end):
                self._take_up(kept)
                if kept.end is not None:
                    self.host.withdraw(name, self._now, kept.end)
        self._tick(self._life)

    def crash(self) -> None:
        """End the process at once."""
        self.host = None
        self._asking.end()
        self._heirs.clear()
        self._disk.crash()

    def subscribe(self, name: str, text: str, limit: int | None, done: Callable[[int], None]) -> None:
        """Subscribe for the user; ``done`` hears from which document on, once it is safe here."""

        def answered(found: Any) -> None:
            if found is None:
                return
            self._configure(found["permit"], found["start"])
            self._heirs[name] = lambda: done(found["start"])

        body = {"name": name, "text": text, "limit": limit}
        self._asking.ask(SOURCE, "subscribe", body, answered)

    def unsubscribe(self, name: str, done: Callable[[int], None]) -> None:
        """End a subscription for the user; ``done`` hears with which document."""

        def answered(found: Any) -> None:
            if found is not None:
                self._withdrawn(name, found["end"])
                done(found["end"])

        self._asking.ask(SOURCE, "unsubscribe", {"name": name}, answered)

    def trim(self, upto: int) -> None:
        """Drop stored results up to a document, as retention would."""
        for name, kept in self.kept.items():
            lowest = min(upto, kept.frontier)
            kept.items = {number: item for number, item in kept.items.items() if number > lowest}
            kept.lowest = max(kept.lowest, lowest)
            if self.host is not None:
                self.host.trimmed(name, kept.lowest)

    # What the wires tell.

    def connected(self, site: str) -> None:
        """A machine is there; the source is greeted first."""
        assert self.host is not None
        if site == SOURCE:
            self._asking.ask(SOURCE, "greet", {}, self._greeted)
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

    def _told(self, question: Ask) -> None:
        body = msgspec.msgpack.decode(question.body)
        if question.what == "configure":
            for permit in body:
                self._configure(permit)
        elif question.what == "withdrawn":
            self._withdrawn(body["name"], body["end"])
        self._wires.send(self.name, SOURCE, answer(question, True))

    def _greeted(self, found: Any) -> None:
        for permit in found["permits"]:
            self._configure(permit)
        for name, end in found["ended"].items():
            self._withdrawn(name, end)

    # Configurations.

    def _configure(self, permit: bytes, start: int | None = None) -> None:
        assert self.host is not None
        found = decode_untrusted(permit)
        name = found.subscription
        kept = self.kept.get(name)
        if kept is not None and kept.end is not None:
            return
        if kept is None and name not in self.host.subscriptions:
            self._disk.put(Begin(name, found.start if start is None else start))
        self._disk.put(Install(name, permit))
        if name in self.host.subscriptions or kept is None:
            known = self.host.subscriptions.get(name)
            before = None if known is None else known.configuration.version
            if self.host.install(found, permit, self._now) and before is not None and found.version <= before:
                raise WentWrong(f"{name} took {found.version} after {before}")
        else:
            kept.permit = kept.permit or permit
            self._install_again(found, permit, kept)

    def _take_up(self, kept: Kept) -> None:
        self._install_again(decode_untrusted(kept.permit), kept.permit, kept)

    def _install_again(self, found: Configuration, permit: bytes, kept: Kept) -> None:
        assert self.host is not None
        self.host.install(found, permit, self._now, frontier=kept.frontier, lowest=kept.lowest)

    def _withdrawn(self, name: str, end: int) -> None:
        assert self.host is not None
        kept = self.kept.get(name)
        if kept is not None and kept.end is None:
            self._disk.put(End(name, end))
            if name in self.host.subscriptions:
                self.host.withdraw(name, self._now, end)

    # What the host asks for.

    def send(self, site: str, frame: Any) -> bool:
        """Send to a machine."""
        assert self.host is not None
        if isinstance(frame, Credit) and (fed := self.host._feeds.get(frame.feed)) is not None:
            name = fed[0].configuration.subscription
            safe = self.kept[name].frontier if name in self.kept else fed[0].configuration.start
            if frame.acknowledged > safe:
                raise WentWrong(f"{name} acknowledged {frame.acknowledged}, and {safe} is on disk")
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
            raise WentWrong(f"{self.name} is too busy for feed {frame.feed} of {site}, and nobody there is")

    def store(self, subscription: str, items: Sequence[Item], upto: int) -> None:
        """Store results."""
        self._disk.put(Results(subscription, tuple(items), upto))

    def stored(self, subscription: str, after: int, upto: int, most_bytes: int) -> Stretch:
        """Read results back."""
        kept = self.kept.get(subscription)
        everything = [] if kept is None else [*kept.items.values()]
        found: list[Item] = []
        size = 0
        for item in sorted(everything, key=lambda one: one.number):
            if after < item.number <= upto:
                found.append(item)
                size += len(item.data)
                if size >= most_bytes:
                    return Stretch(found, item.number)
        return Stretch(found, upto)

    def forbids(self, site: str, asked: Open) -> str:
        """Say why a machine may not open a feed here."""
        found = decode_untrusted(asked.permit)
        if found.site != site or found.subscription != asked.downstream:
            return "not your permit"
        return "" if found.names(asked.upstream, self.name) else "not named"

    # The disk.

    def _apply(self, change: Change) -> None:
        if isinstance(change, Begin):
            self.kept.setdefault(change.name, Kept(change.start, change.start, lowest=change.start))
            return
        kept = self.kept[change.name]
        match change:
            case Install():
                kept.permit = change.permit
            case End():
                kept.end = change.end
            case Results():
                self._apply_results(kept, change)

    def _apply_results(self, kept: Kept, change: Results) -> None:
        if change.upto <= kept.frontier:
            raise WentWrong(f"{change.name}: the frontier went from {kept.frontier} to {change.upto}")
        for item in change.items:
            if not kept.frontier < item.number <= change.upto:
                raise WentWrong(f"{change.name}: {item.number} is outside ({kept.frontier}, {change.upto}]")
            kept.items[item.number] = item
        kept.frontier = change.upto

    def _committed(self, changes: list[Change]) -> None:
        for change in changes:
            if isinstance(change, Results) and self.host is not None:
                self.host.committed(change.name, change.upto)
            if isinstance(change, Install) and change.name in self._heirs:
                self._heirs.pop(change.name)()

    def _tick(self, life: int) -> None:
        if life != self._life or self.host is None:
            return
        if not self._wires.is_connected(self.name, SOURCE):
            self._wires.send(self.name, SOURCE, Answer(0, ok=False, body=b""))
        self.host.tick(self._now)
        self._agenda.after(0.02 if self.host.has_work else _BEAT_S, self._tick, life)

"""The source in virtual time: the real log, catalog, views and steering, and the daemon's part in short."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from overlay.wire.frames import Answer, Ask, Cancel, Credit, Open, Pace
from peer.daemon import requests
from peer.daemon.catalog import Catalog
from peer.daemon.log_view import LogView
from peer.daemon.one_writer import OneWriter
from peer.daemon.questions import NoAnswer, answer, refuse
from peer.hosting.source_views import SourceViews
from peer.storage.errors import StorageError
from peer.storage.log_values import Appended, NewDocument, Refused, Retention
from peer.storage.source_log import SourceLog
from scenarios.simulation.asking import Asking
from scenarios.simulation.disk import Disk
from scenarios.simulation.peers import SOURCE
from scenarios.simulation.tasks import Tasks, Turn, at_once
from scenarios.simulation.unsigned import UnsignedPermits
from scenarios.simulation.verdicts import Check, WentWrong

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from overlay.wire.frames import Frame
    from peer.storage.log_values import Configuration, NewEntry
    from scenarios.simulation.agenda import Agenda
    from scenarios.simulation.tasks import Promise
    from scenarios.simulation.wires import Wires

_BEAT_S: Final = 0.25
_PUBLISHER: Final = "publisher"


class SourceMachine:
    """See the module's text."""

    name = SOURCE

    def __init__(
        self, agenda: Agenda, wires: Wires, folder: Path, feeds: int | None, *, rate: float = 1.0
    ) -> None:
        self._agenda, self._wires, self._feeds, self.rate = agenda, wires, feeds, rate
        self.disk: Disk[SourceLog, NewEntry, Appended | Refused] = Disk(
            agenda, folder / "source.sqlite", lambda path: SourceLog.open(path, clock=lambda: agenda.now),
            lambda log, entries: log.append(entries),
        )  # fmt: skip
        self.disk.done = self._appended
        self.views: SourceViews | None = None
        self._tasks = Tasks()
        self.life = 0
        self._safe = self._safe_epoch = 0
        """Up to where the log was known to be on disk, and the epoch that was told."""

    def close(self) -> None:
        """The run is over: nothing goes on, and the store is closed."""
        self._tasks.end()
        self.disk.close()

    @property
    def is_up(self) -> bool:
        """Whether its process runs."""
        return self.views is not None

    @property
    def log(self) -> SourceLog:
        """Its log."""
        return self.disk.store

    # What happens to it.

    def start(self) -> None:
        """Start the process from what is on disk; ``DiskFull`` if it must write, and cannot."""
        log = self.disk.start()
        if log.last < self._safe:
            raise WentWrong(Check.KEPT, f"the source had {self._safe} entries on disk, and now it has {log.last}")
        self._permits, self._tasks = UnsignedPermits(), Tasks()
        self._asking = Asking(self._agenda, self._wires, self.name)
        self._view = LogView(log)
        committer: Any = self.disk  # it does what a committer does
        self.catalog = Catalog(
            log, OneWriter(), self._permits, committer, self, source=SOURCE, feeds=self._feeds, turn=Turn(),
            in_thread=at_once,
        )  # fmt: skip
        if self.catalog.steering.epoch < self._safe_epoch:
            epoch = self.catalog.steering.epoch
            raise WentWrong(Check.KEPT, f"it was epoch {self._safe_epoch}, and now it is {epoch}")
        try:
            self.catalog.begin()
        except StorageError:
            self.disk.crash(is_power=False)
            raise
        self.life += 1
        self.views = SourceViews(SOURCE, self._view, self, f"life {self.life:>3}".encode())
        self._tick(self.life)

    def crash(self, *, is_power: bool) -> None:
        """End the process at once."""
        self.views = None
        self._asking.end()
        self._tasks.end()
        self.disk.crash(is_power=is_power)

    def publish(self, key: str, body: bytes, done: Callable[[int], None]) -> None:
        """Number a document; ``done`` hears how once it is safe, unless there is a crash or no room."""
        self._tasks.start(self._publish(key, body, done))

    async def _publish(self, key: str, body: bytes, done: Callable[[int], None]) -> None:
        try:
            found = await self.disk.commit(NewDocument(_PUBLISHER, key, key, body))
        except StorageError:
            return
        if isinstance(found, Refused):
            raise WentWrong(Check.COMPLETE, f"{key} was refused: {found.reason}")
        done(found.number)

    def adopt(self, base_epoch: int, rows: list[dict[str, Any]], done: Callable[[dict[str, Any]], None]) -> None:
        """Take a full plan over; ``done`` hears what became of it, unless it could not be kept."""
        self._tasks.start(self._adopt(base_epoch, rows, done))

    async def _adopt(
        self, base_epoch: int, rows: list[dict[str, Any]], done: Callable[[dict[str, Any]], None]
    ) -> None:
        try:
            found = await self.catalog.adopt(base_epoch, rows)
        except StorageError:
            return
        self._safe_epoch = self.catalog.steering.epoch
        done(found)

    def trim(self, moment: float) -> None:
        """Drop documents that were published up to a moment, as retention would."""
        assert self.views is not None
        try:
            self._view.lowest = self.log.trim(moment + Retention().document_age_s)
        except StorageError:
            return
        self.views.trimmed(self._view.lowest)

    # What the wires tell.

    def connected(self, site: str) -> None:
        """A machine is there; it greets."""

    def lost(self, site: str) -> None:
        """A machine is gone."""
        assert self.views is not None
        self.views.site_lost(site)

    def heard(self, site: str, frame: Frame) -> None:
        """A frame has come."""
        assert self.views is not None
        match frame:
            case Open() | Credit() | Cancel() | Pace():
                self.views.handle(site, frame)
            case Ask():
                self._tasks.start(self._asked(site, frame))
            case Answer():
                self._asking.take(site, frame)

    def feeds(self, site: str) -> bool:
        """Say whether anything on another machine is fed by the source."""
        return self.views is not None and self.views.feeds(site)

    async def _asked(self, site: str, question: Ask) -> None:
        try:
            told = answer(question, await self._answer(site, question.what, question.body))
        except (NoAnswer, StorageError) as exc:
            told = refuse(question, str(exc))
        self._wires.send(SOURCE, site, told)

    async def _answer(self, site: str, what: str, body: bytes) -> Any:
        match what:
            case "greet":
                return await self._greeted(site, requests.read(body, requests.Greet))
            case "subscribe":
                return await self.catalog.subscribe(site, requests.read(body, requests.Subscribe))
            case "unsubscribe":
                return await self.catalog.unsubscribe(site, requests.read(body, requests.Of).subscription)
            case "numbers":
                assert self.views is not None
                wanted = requests.read(body, requests.Numbers).patterns
                # In other orders in each life, so that a number means another pattern then.
                return self.views.numbers(wanted[:: 1 if self.life % 2 else -1], self._agenda.now)
            case "drain":
                is_over = requests.read(body, requests.Drain).is_over
                await (self.catalog.take_back if is_over else self.catalog.set_aside)(site)
                return True
            case "leave":
                for name in self.catalog.owned_by(site):
                    await self.catalog.withdraw(name)
                return True
            case _:
                raise NoAnswer(f"nobody here knows about {what}")

    async def _greeted(self, site: str, asked: requests.Greet) -> dict[str, Any]:
        """Compare with a machine, as ``peer.daemon.members`` does."""
        if asked.frontier > self.log.last:
            what = f"{site} has {asked.frontier} of the log, which ends with {self.log.last}"
            raise WentWrong(Check.BEYOND, what)
        member: Any = SimpleNamespace(site=site)
        found = self.catalog.greeted(member, asked)
        if asked.is_first:
            await self.catalog.take_back(site)
        ended, unknown = self.catalog.compared(site, asked.subscriptions)
        return {"configurations": found, "ended": ended, "unknown": unknown}

    # What the catalog lets others know.

    def tell(self, site: str, what: str, body: Any) -> None:
        """Tell a machine something if it is connected; else it learns of it when it greets."""
        if self._wires.is_connected(SOURCE, site):
            self._tasks.start(_told(self._asking.ask(site, what, body)))

    def push(self, kept: Sequence[Configuration]) -> None:
        """There is no directory here."""

    def forget(self, subscription: str) -> None:
        """There is no directory here."""

    # What the views ask for.

    def send(self, site: str, frame: Any) -> bool:
        """Send to a machine; machines dial the source."""
        return self._wires.is_connected(SOURCE, site) and self._wires.send(SOURCE, site, frame)

    def forbids(self, site: str, asked: Open) -> str:
        """Say why a machine may not be fed by the source."""
        if self.catalog.owners.get(asked.downstream) == site:
            return self._permits.forbids(site, asked)
        if self.catalog.end_of(site, asked.downstream) is None:
            return f"{asked.downstream} is not a subscription of {site}"
        return self._permits.forbids(site, asked, is_last=True)

    # The disk.

    def _appended(self, entry: NewEntry, done: Appended | Refused) -> None:
        """An entry is safe: feed it, in the order of numbers."""
        if self.views is None or not isinstance(done, Appended) or not done.is_new:
            return
        self._safe = self._view.last = done.number
        if isinstance(entry, NewDocument):
            self.views.published(done.number, entry.name, entry.body, now=self._agenda.now)
        else:
            self.views.published(done.number, "", None)

    def _tick(self, life: int) -> None:
        if life != self.life or self.views is None:
            return
        self.views.pump(self._agenda.now)
        self._agenda.after(0.02 if self.views.has_work else _BEAT_S, self._tick, life)


async def _told(answered: Promise[Any]) -> None:
    """Wait for an answer that says nothing."""
    try:
        await answered
    except NoAnswer:
        return

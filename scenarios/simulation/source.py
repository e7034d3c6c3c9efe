"""The source in virtual time: real views and real steering over a log of ours.

Entries wait for the disk; what is acknowledged is in the log. After a crash the steering is made again from what
was kept, as the daemon does it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from overlay.wire.frames import Answer, Ask, Cancel, Credit, Open
from peer.hosting.configuration import decode_untrusted, encode
from peer.hosting.source_views import Body, Lost, SourceViews
from peer.steering.entries import Entry, SiteEntry
from peer.steering.steering import Steering
from scenarios.simulation.asking import Asking, answer, refuse
from scenarios.simulation.disk import Disk
from scenarios.simulation.peers import SOURCE
from xmlmatch import Pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from overlay.wire.frames import Frame
    from peer.hosting.configuration import Configuration
    from peer.steering.proposal import Adopted, Proposal, Stale
    from scenarios.simulation.agenda import Agenda
    from scenarios.simulation.wires import Wires

_BEAT_S: Final = 0.25
GENERATION: Final = 1


@dataclass(frozen=True, slots=True)
class NewEntry:
    """Something to be numbered; ``key`` makes it the same when it is asked again."""

    key: str
    body: bytes | None = None
    subscription: tuple[str, str, str, int | None] | None = None
    """Name, pattern, site, limit."""
    withdrawn: str = ""


@dataclass(slots=True)
class Log:
    """What the source has on disk."""

    bodies_by_number: dict[int, bytes] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    subscriptions: dict[str, Entry] = field(default_factory=dict)
    ended: dict[str, tuple[str, int]] = field(default_factory=dict)
    """By name: the site, and the last document owed."""
    configurations: dict[str, bytes] = field(default_factory=dict)
    sites: list[str] = field(default_factory=list)
    epoch: int = 0
    last: int = 0
    lowest: int = 0
    generation: int = GENERATION

    def bodies(self, after: int, upto: int, most_bytes: int) -> list[Body | Lost]:
        """Read documents in order, and what is lost among them."""
        found: list[Body | Lost] = []
        if after < min(self.lowest, upto):
            found.append(Lost(after, min(self.lowest, upto)))
        size = 0
        for number in range(max(after, self.lowest) + 1, upto + 1):
            body = self.bodies_by_number.get(number)
            if body is not None:
                found.append(Body(number, f"d{number}", body))
                size += len(body)
                if size >= most_bytes:
                    break
        return found


class SourceMachine:
    """See the module's text."""

    name = SOURCE

    def __init__(self, agenda: Agenda, wires: Wires, feeds: int | None, rate: float = 1.0) -> None:
        self._agenda, self._wires, self._feeds, self.rate = agenda, wires, feeds, rate
        self.log = Log()
        self._disk: Disk[tuple[NewEntry, Callable[[int], None]]] = Disk(agenda, self._apply)
        self._disk.done = self._appended
        self.views: SourceViews | None = None
        self.steering = Steering(SOURCE, feeds)
        self._asking = Asking(agenda, wires, self.name)
        self._life = 0

    @property
    def is_up(self) -> bool:
        """Whether its process runs."""
        return self.views is not None

    @property
    def disk(self) -> Disk[tuple[NewEntry, Callable[[int], None]]]:
        """Its disk, to be made slow or full."""
        return self._disk

    # What happens to it.

    def start(self) -> None:
        """Start the process from what is on disk."""
        log = self.log
        self.views = SourceViews(SOURCE, log, self)
        self._asking = Asking(self._agenda, self._wires, self.name)
        self._life += 1
        kept = [decode_untrusted(body) for name, body in log.configurations.items() if name in log.subscriptions]
        self.steering, changed = Steering.restored(
            SOURCE, self._feeds, sites=[SiteEntry(name) for name in log.sites],
            entries=list(log.subscriptions.values()), configurations=kept, generation=GENERATION, epoch=log.epoch,
        )  # fmt: skip
        self._install(changed)
        self._tick(self._life)

    def crash(self) -> None:
        """End the process at once."""
        self.views = None
        self._asking.end()
        self._disk.crash()

    def append(self, entry: NewEntry, done: Callable[[int], None]) -> None:
        """Put an entry into the log; ``done`` hears its number once it is safe, unless there is a crash."""
        self._disk.put((entry, done))

    def adopt(self, proposal: Proposal) -> Adopted | Stale:
        """Take a full plan over, as the daemon does: everybody gets a permit of the new epoch."""
        done = self.steering.adopt(proposal)
        if self.steering.epoch != self.log.epoch:
            self.log.epoch = self.steering.epoch
            self._install(self.steering.configurations())
        return done

    def trim(self, upto: int) -> None:
        """Drop documents up to a number, as retention would."""
        self.log.lowest = max(self.log.lowest, min(upto, self.log.last))
        if self.views is not None:
            self.views.trimmed(self.log.lowest)

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
            case Open() | Credit() | Cancel():
                self.views.handle(site, frame)
            case Ask():
                self._asked(site, frame)
            case Answer():
                self._asking.take(site, frame)

    def _asked(self, site: str, question: Ask) -> None:
        body = msgspec.msgpack.decode(question.body)

        def told(found: Any) -> None:
            self._wires.send(SOURCE, site, answer(question, found))

        match question.what:
            case "greet":
                self._greeted(site, told)
            case "subscribe":
                self._subscribe(site, body, told)
            case "unsubscribe" if body["name"] in (*self.log.subscriptions, *self.log.ended):
                entry = NewEntry(f"end {body['name']}", withdrawn=body["name"])
                self.append(entry, lambda number: self._withdrawn(body["name"], told))
            case _:
                self._wires.send(SOURCE, site, refuse(question, "there is no such thing"))

    def _greeted(self, site: str, told: Callable[[Any], None]) -> None:
        if site not in self.log.sites:
            self.log.sites.append(site)
            self.steering.add_site(site)
        mine = [name for name, entry in self.log.subscriptions.items() if entry.site == site]
        told({
            "permits": [self.log.configurations[name] for name in mine if name in self.log.configurations],
            "ended": {name: end for name, (where, end) in self.log.ended.items() if where == site},
        })  # fmt: skip

    def _subscribe(self, site: str, body: dict[str, Any], told: Callable[[Any], None]) -> None:
        name = body["name"]
        if name in self.log.ended:
            return

        def safe(_: int) -> None:
            if name in self.log.ended:
                return
            entry = self.log.subscriptions[name]
            if name not in {one.subscription for one in self.steering.entries()}:
                self._install(self.steering.add(name, entry.pattern, site, entry.limit, entry.start), but=name)
            told({"permit": self.log.configurations[name], "start": entry.start})

        self.append(
            NewEntry(f"sub {name}", subscription=(name, Pattern.parse(body["text"]).text, site, body["limit"])),
            safe,
        )

    def _withdrawn(self, name: str, told: Callable[[Any], None]) -> None:
        site, end = self.log.ended[name]
        if name in {one.subscription for one in self.steering.entries()}:
            self.log.configurations.pop(name, None)
            self._install(self.steering.withdraw(name))
        self._tell(site, "withdrawn", {"name": name, "end": end})
        told({"end": end})

    # Configurations.

    def _install(self, changed: Iterable[Configuration], *, but: str = "") -> None:
        by_site: dict[str, list[bytes]] = {}
        for one in changed:
            self.log.configurations[one.subscription] = encode(one)
            if one.subscription != but:
                by_site.setdefault(one.site, []).append(encode(one))
        for site, permits in by_site.items():
            self._tell(site, "configure", permits)

    def _tell(self, site: str, what: str, body: Any) -> None:
        if self._wires.is_connected(SOURCE, site):
            self._asking.ask(site, what, body, lambda found: None)

    # What the views ask for.

    def send(self, site: str, frame: Any) -> bool:
        """Send to a machine; machines dial the source."""
        return self._wires.is_connected(SOURCE, site) and self._wires.send(SOURCE, site, frame)

    def forbids(self, site: str, asked: Open) -> str:
        """Say why a machine may not be fed by the source."""
        found = decode_untrusted(asked.permit)
        entry, ended = self.log.subscriptions.get(asked.downstream), self.log.ended.get(asked.downstream)
        if site not in (entry and entry.site, ended and ended[0]):
            return "no subscription of yours"  # one that has ended may still owe its user documents
        return "" if found.site == site and found.subscription == asked.downstream else "not your permit"

    # The disk.

    def _apply(self, change: tuple[NewEntry, Callable[[int], None]]) -> None:
        entry, _ = change
        log = self.log
        if entry.key in log.numbers:
            return
        log.last += 1
        log.numbers[entry.key] = log.last
        if entry.body is not None:
            log.bodies_by_number[log.last] = entry.body
        elif entry.subscription is not None:
            name, text, site, limit = entry.subscription
            log.subscriptions[name] = Entry(name, text, site, limit, log.last)
        elif entry.withdrawn in log.subscriptions:
            gone = log.subscriptions.pop(entry.withdrawn)
            log.ended[entry.withdrawn] = gone.site, log.last

    def _appended(self, changes: list[tuple[NewEntry, Callable[[int], None]]]) -> None:
        """Entries are safe: feed them in order, then answer."""
        for entry, done in changes:
            number = self.log.numbers[entry.key]
            if self.views is not None and number > self._fed:
                self.views.published(number, f"d{number}" if entry.body is not None else "", entry.body)
            if self.views is not None:
                done(number)

    @property
    def _fed(self) -> int:
        """Up to where the views know the log."""
        assert self.views is not None
        return self.views._frontier

    def _tick(self, life: int) -> None:
        if life != self._life or self.views is None:
            return
        self.views.pump()
        self._agenda.after(0.02 if self.views.has_work else _BEAT_S, self._tick, life)

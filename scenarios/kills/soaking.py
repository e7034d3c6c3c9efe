"""All of it: a network of processes under load, kills, and the comparison with direct matching."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from peer.daemon.relaying import RELAY
from scenarios.kills.killing import Killing
from scenarios.kills.ledger import Ledger
from scenarios.kills.load import PATIENCE_S, Changes, TooLate, patiently, publish
from scenarios.kills.moments import Moments
from scenarios.processes import SOURCE, running

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from scenarios.kills.ledger import Owed
    from scenarios.processes import ProcessNetwork

_PUBLISHERS: Final = 2
_LOOKED_AT: Final = 4
"""How many subscriptions of a daemon are read after it was killed; all of them are in the end."""


@dataclass(frozen=True, slots=True)
class SoakSettings:
    """``kills``: how many processes at least. ``pace_s``: how long a publisher pauses, about; less makes more
    documents per kill. ``is_warm``: daemons start by forking."""

    kills: int = 200
    seed: int = 1
    peers: int = 4
    pace_s: float = 0.1
    is_warm: bool = True


@dataclass(slots=True)
class SoakReport:
    """What was done, and what was wrong."""

    seed: int
    peers: int
    kills: int = 0
    by_aim: dict[str, int] = field(default_factory=dict)
    moments: dict[str, int] = field(default_factory=dict)
    changes: dict[str, int] = field(default_factory=dict)
    documents: int = 0
    subscriptions: int = 0
    compared: int = 0
    failovers: int = 0
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


def soak(folder: Path, settings: SoakSettings, step: Callable[[int], None] = lambda _: None) -> SoakReport:
    """Run it in a folder; ``step`` hears how many were killed."""
    began = time.monotonic()
    report = SoakReport(settings.seed, settings.peers)
    with running(folder, is_warm=settings.is_warm) as network:
        run = _Run(network, settings)
        try:
            run.start()
            run.under_load(step)
            run.finish()
        except TooLate as exc:
            run.ledger.complain(str(exc))
        report.kills, report.by_aim = run.killing.total, dict(sorted(run.killing.kills.items()))
        report.moments, report.changes = run.moments.counts(), run.changes.done
        report.documents, report.subscriptions = len(run.ledger.documents), len(run.ledger.subscriptions)
        report.compared, report.wrong = run.ledger.compared, run.ledger.wrong
        report.failovers = run.failovers
    report.seconds = round(time.monotonic() - began, 1)
    return report


class _Run:
    """One run; its threads share a ledger."""

    def __init__(self, network: ProcessNetwork, settings: SoakSettings) -> None:
        self.network, self.settings = network, settings
        self.ledger, self.moments = Ledger(), Moments()
        self.peers = [f"p{i}" for i in range(settings.peers)]
        rng = random.Random(settings.seed)
        self.killing = Killing(network, self.moments, self.peers, rng)
        self.changes = Changes(network, self.ledger, self.moments, self.peers, random.Random(rng.random()))
        self.failovers = 0
        self._rng = random.Random(rng.random())

    def start(self) -> None:
        """Start everybody, and subscribe a few."""
        self.network.start_source()
        for name in self.peers:
            self.network.join(name)
            self.network.begin_peer(name)
        for name in self.peers:
            self.network.await_ready(name)
        while len(self.ledger.live()) < 3 * len(self.peers):
            self.changes.subscribe()

    def under_load(self, step: Callable[[int], None]) -> None:
        """Publish and change things while daemons are killed; check those that were after each restart."""
        stop = threading.Event()
        threads = [
            threading.Thread(target=self._guarded, args=(publish, *self._publishing(stop, n)), daemon=True)
            for n in range(_PUBLISHERS)
        ]
        few, many = 3 * len(self.peers), 6 * len(self.peers)
        threads.append(
            threading.Thread(target=self._guarded, args=(self.changes.run, stop, few, many), daemon=True)
        )
        for thread in threads:
            thread.start()
        try:
            while self.killing.total < self.settings.kills and not self.ledger.wrong:
                before = self.killing.total
                struck = self.killing.strike()
                self._check_after(struck)
                step(self.killing.total - before)
        finally:
            stop.set()
            for thread in threads:
                thread.join(PATIENCE_S)

    def _publishing(self, stop: threading.Event, n: int) -> tuple[Any, ...]:
        self.ledger.begin(f"publisher-{n}")
        return self.network, self.ledger, self.moments, stop, n, self.settings.pace_s

    def _guarded(self, work: Callable[..., None], *arguments: Any) -> None:
        """Run a thread's work; whatever ends it is noted."""
        try:
            work(*arguments)
        except Exception as exc:  # a thread has nobody else to tell
            self.ledger.complain(f"{work.__name__}: {type(exc).__name__}: {exc}")

    def _check_after(self, struck: list[str]) -> None:
        """What those who were killed have must be right, as far as it goes; nobody may have ended by itself."""
        for name in self.network.ended:
            self.ledger.complain(f"{name} has ended by itself; its log is {self.network.folder / f'{name}.log'}")
        for name in struck:
            due = [one for one in self.ledger.of(name) if one.end is None or one.checked < one.end]
            for owed in self._rng.sample(due, min(len(due), _LOOKED_AT)):
                self._read(owed, since=owed.checked)

    def finish(self) -> None:
        """Let everything come to rest, and compare all that everybody has."""
        if self.ledger.wrong:
            return
        self.changes.sweep()
        upto = self.ledger.last
        for owed in self.ledger.subscriptions.values():
            self._await(owed, upto if owed.end is None else min(owed.end, upto))
        for owed in self.ledger.subscriptions.values():
            self._read(owed, since=0)
        self._check_after([])
        known, relays = self.network.one(SOURCE, "status")["subscriptions"], 0
        for name in self.peers:
            here = self.network.many(name, "subscriptions")
            relays += sum(one["subscription"].startswith(RELAY) for one in here)
            self.failovers += sum(one["failovers"] for one in here)
        # Machines make relays by themselves; one that has ended may still be listed.
        if not 0 <= known - len(self.ledger.live()) <= relays:
            mine = f"{len(self.ledger.live())} and {relays} relays at most"
            self.ledger.complain(f"the source knows {known} subscriptions, not {mine}")

    def _await(self, owed: Owed, upto: int) -> None:
        end = time.monotonic() + PATIENCE_S
        while (found := self._entries(owed, owed.seen))[-1]["complete"] < upto:
            if time.monotonic() > end:
                raise TooLate(f"{owed.name} of {owed.peer} is complete up to {found[-1]['complete']}, not {upto}")
            time.sleep(0.1)

    def _read(self, owed: Owed, *, since: int) -> None:
        self.ledger.check(owed, self._entries(owed, since), since=since)

    def _entries(self, owed: Owed, since: int) -> list[dict[str, Any]]:
        return patiently(
            f"reading {owed.name} of {owed.peer}",
            lambda: self.network.many(owed.peer, "entries", subscription=owed.name, since=since),
        )

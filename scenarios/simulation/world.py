"""A network in virtual time, and what can happen to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from peer.storage.errors import DiskFull
from scenarios.hosts.links import Link, Links
from scenarios.simulation.agenda import Agenda
from scenarios.simulation.checks import Watcher, final_wrong
from scenarios.simulation.peers import SOURCE, PeerMachine
from scenarios.simulation.source import SourceMachine
from scenarios.simulation.verdicts import Check, WentWrong
from scenarios.simulation.wires import Chaos, Wires

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from scenarios.simulation.verdicts import Violation

_AGAIN_S: Final = 1.0
_LOOK_S: Final = 0.5
_PATIENCE_S: Final = 240.0


@dataclass(slots=True)
class Asked:
    """A subscription that a user wants; ``start`` is known once it is acknowledged."""

    name: str
    site: str
    text: str
    limit: int | None
    start: int | None = None
    is_ended: bool = False


class World:
    """A source and peers. Everything that happens to them is said here, so that the log tells it."""

    def __init__(
        self, seed: int, peers: list[str], folder: Path, *, link: Link | None = None,
        source_feeds: int | None = None, skew: float = 0.0, memory: int = 1 << 20, later: Collection[str] = (),
        is_detailed: bool = False,
    ) -> None:  # fmt: skip
        """``folder``: for the stores. ``later``: the machines that are not there yet; ``join`` starts them."""
        self.seed = seed
        self.links = Links(link or Link(rtt_ms=40, jitter_ms=5))
        self.agenda, self.wires = self._made(seed, is_detailed=is_detailed)
        rates = [1 + skew * (2 * self.agenda.rng.random() - 1) for _ in (SOURCE, *peers)]
        self.source = SourceMachine(self.agenda, self.wires, folder, source_feeds, rate=rates[0])
        self.peers = {
            name: PeerMachine(self.agenda, self.wires, name, folder, rate=rate, memory=memory)
            for name, rate in zip(peers, rates[1:], strict=True)
        }
        for machine in self._machines:
            self.wires.add(machine)
        for machine in self._machines:
            if machine.name not in later:
                machine.start()
        self.bodies: dict[str, bytes] = {}
        """What was published, by key."""
        self.acknowledged: dict[str, int] = {}
        self.asked: dict[str, Asked] = {}
        self.left: set[str] = set()
        """Machines that have gone for good."""
        self.dropped = 0
        """Documents up to there may be gaps."""
        self.faults: dict[str, int] = {}
        self.watcher = Watcher()
        self.agenda.after(_LOOK_S, self._look)

    def _made(self, seed: int, *, is_detailed: bool) -> tuple[Agenda, Wires]:
        """Make time and connections; the same machines could have others."""
        agenda = Agenda(seed, is_detailed=is_detailed)
        return agenda, Wires(agenda, self.links)

    def close(self) -> None:
        """Close the stores; the folder is not needed any more."""
        for machine in self._machines:
            machine.close()

    @property
    def _machines(self) -> list[SourceMachine | PeerMachine]:
        return [self.source, *self.peers.values()]

    # Work.

    def publish(self, key: str, body: bytes) -> None:
        """Publish a document, and ask again until it is acknowledged."""
        if key in self.acknowledged:
            return
        self.bodies[key] = body
        if self.source.is_up:
            self.source.publish(key, body, lambda number: self._acknowledge(key, number))
        self.agenda.after(_AGAIN_S, self.publish, key, body)

    def _acknowledge(self, key: str, number: int) -> None:
        before = self.acknowledged.setdefault(key, number)
        if before != number:
            raise WentWrong(Check.ORDER, f"{key} is {before}, and then {number}")

    def subscribe(self, asked: Asked) -> None:
        """Let a user subscribe, and ask again until it is acknowledged."""
        self.asked.setdefault(asked.name, asked)
        if asked.start is not None or asked.site in self.left:
            return

        def done(start: int) -> None:
            if asked.start is None:
                asked.start = start
                self.agenda.note(f"{asked.name} ({asked.text}) at {asked.site} from {start} on")

        peer = self.peers[asked.site]
        if peer.is_up:
            peer.subscribe(asked.name, asked.text, asked.limit, done)
        self.agenda.after(3 * _AGAIN_S, self.subscribe, asked)

    def unsubscribe(self, asked: Asked) -> None:
        """Let a user end a subscription, and ask again until that is acknowledged."""
        if asked.is_ended or asked.start is None or asked.site in self.left:
            return

        def done(end: int) -> None:
            asked.is_ended = True
            self.agenda.note(f"{asked.name} ends with {end}")

        peer = self.peers[asked.site]
        if peer.is_up:
            peer.unsubscribe(asked.name, done)
        self.agenda.after(3 * _AGAIN_S, self.unsubscribe, asked)

    def propose(self, rows: list[dict[str, Any]], base_epoch: int) -> None:
        """Hand the source a full plan, which may be stale."""
        if not self.source.is_up:
            return

        def done(found: dict[str, Any]) -> None:
            is_stale = "stale" in found
            self.fault("stale proposal" if is_stale else "reconfiguration", f"of a plan made in {base_epoch}")
            epoch = self.source.catalog.steering.epoch
            if base_epoch == epoch if is_stale else found["epoch"] != base_epoch + 1:
                what = f"a plan of epoch {base_epoch} became {found}; it is epoch {epoch}"
                self.watcher.say(Check.PROPOSAL, what)

        self.source.adopt(base_epoch, rows, done)

    def drain(self, name: str) -> None:
        """Let a machine's user ask that it feeds nobody, before some maintenance; until it starts again."""
        if name in self.peers and self.peers[name].is_up:
            self.fault("drain", name)
            self.peers[name].ask("drain", {})

    def join(self, name: str) -> None:
        """Let a machine come that was not there yet."""
        self.fault("join", name)
        self.restart(name)

    def leave(self, name: str) -> None:
        """Let a machine go for good: its subscriptions end, and those it feeds must do without it."""
        if name in self.left:
            return
        if self.peers[name].is_up:
            self.peers[name].ask("leave", {}, lambda found: self._left(name))
        self.agenda.after(3 * _AGAIN_S, self.leave, name)

    def _left(self, name: str) -> None:
        if name not in self.left:
            self.fault("leave", name)
            self.left.add(name)
            # Not within what the machine is doing just now.
            self.agenda.after(0.0, self._stop, name)

    def _stop(self, name: str) -> None:
        if self.peers[name].is_up:
            self.peers[name].crash(is_power=False)
            self.wires.crash(name, is_noticed=True)

    # Faults.

    def crash(self, name: str, *, is_noticed: bool = True) -> None:
        """End a machine's process: with its system telling the others, or without: then the power has gone."""
        machine = self._machine(name)
        if machine.is_up:
            self.fault("crash" if is_noticed else "power loss", name)
            before = machine.disk.torn
            machine.crash(is_power=not is_noticed)
            self.wires.crash(name, is_noticed=is_noticed)
            if machine.disk.torn > before:
                self.fault("torn tail", name)

    def crash_writing(self, name: str) -> None:
        """Let a machine lose its power in the middle of its next commit; a little later it starts again."""

        def crash() -> None:
            self.crash(name, is_noticed=False)
            self.agenda.after(2 * _AGAIN_S, self.restart, name)

        self._machine(name).disk.trap = crash

    def restart(self, name: str) -> None:
        """Start a machine again."""
        machine = self._machine(name)
        if not machine.is_up and name not in self.left:
            self.agenda.note(f"{name} starts")
            try:
                machine.start()
            except DiskFull:
                self.agenda.note(f"{name} cannot start: its disk is full")
                self.agenda.after(_AGAIN_S, self.restart, name)

    def cut(self, some: list[str]) -> None:
        """Cut some machines off from the rest."""
        self.fault("partition", ", ".join(some))
        self.links.cut(some, [name for name in (SOURCE, *self.peers) if name not in some])

    def heal(self) -> None:
        """Let everything pass again."""
        self.agenda.note("healed")
        self.links.heal()

    def disturb(self, chaos: Chaos) -> None:
        """Lose, repeat and reorder frames."""
        if chaos != Chaos():
            self.fault("chaos", f"{chaos}")
        self.wires.chaos = chaos

    def slow(self, name: str, slowness: float) -> None:
        """Make a disk slow, or quick again."""
        if slowness > 1:
            self.fault("slow disk", name)
        self._machine(name).disk.slowness = slowness

    def fill(self, name: str, *, is_full: bool) -> None:
        """Fill a disk, or make room."""
        if is_full:
            self.fault("full disk", name)
        self._machine(name).disk.is_full = is_full

    def trim(self, name: str, moment: float) -> None:
        """Let a machine drop what it had stored by a moment, as retention would."""
        if self._machine(name).is_up:
            self.fault("trim", f"{name}, what is older than {moment:.1f}")
            self._machine(name).trim(moment)
            if name == SOURCE:
                self.dropped = max(self.dropped, self.source.log.lowest)

    # The end.

    def finish(self) -> list[Violation]:
        """Bring everything back, wait until everybody has everything, and say what is wrong."""
        self.recover()
        end = self.agenda.now + _PATIENCE_S
        while self.agenda.now < end and not self.is_done:
            self.agenda.run(self.agenda.now + 1.0)
        self.agenda.run(self.agenda.now + 2.0)
        return self.wrong()

    def recover(self) -> None:
        """Bring everything back."""
        self.agenda.note("everything comes back")
        self.wires.chaos = Chaos()
        self.links.heal()
        self.links.put_all(Link(rtt_ms=20))
        for name in (SOURCE, *self.peers):
            self.slow(name, 1.0)
            self.fill(name, is_full=False)
            self.restart(name)

    def wrong(self) -> list[Violation]:
        """Say what was wrong at any moment, and what is wrong now, when everybody should have everything."""
        return [*self.watcher.wrong, *final_wrong(self)]

    @property
    def is_done(self) -> bool:
        """Whether everything is acknowledged, and everybody that is still there has come as far as it must."""
        return self.bodies.keys() == self.acknowledged.keys() and all(
            one.start is not None and not self.lacks(one)
            for one in self.asked.values()
            if one.site not in self.left
        )

    def lacks(self, one: Asked) -> str:
        """Say what a subscription still lacks; nothing if it has come as far as it must."""
        entry, found = self.source.log.subscription(one.name), self.peers[one.site].results.frontier(one.name)
        if entry is None or found is None:
            return f"{one.name} was acknowledged, and {SOURCE if entry is None else one.site} does not know it"
        upto = self.source.log.last if entry.end is None else entry.end
        return "" if found.upto >= upto else f"{one.name} at {one.site} knows {found.upto} of {upto}"

    def _look(self) -> None:
        self.watcher.look(self)
        if not self.watcher.wrong:
            self.agenda.after(_LOOK_S, self._look)

    def fault(self, kind: str, what: str) -> None:
        """Count something that happened, and write it into the log."""
        self.faults[kind] = self.faults.get(kind, 0) + 1
        self.agenda.note(f"{kind}: {what}")

    def _machine(self, name: str) -> SourceMachine | PeerMachine:
        return self.source if name == SOURCE else self.peers[name]

"""A network in virtual time, and what can happen to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from peer.steering.proposal import Stale, read_proposal
from scenarios.hosts.links import Link, Links
from scenarios.simulation.agenda import Agenda
from scenarios.simulation.checks import Watcher, final_wrong
from scenarios.simulation.peers import SOURCE, PeerMachine, WentWrong
from scenarios.simulation.source import NewEntry, SourceMachine
from scenarios.simulation.wires import Chaos, Wires

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
        self, seed: int, peers: list[str], *, link: Link | None = None, source_feeds: int | None = None,
        skew: float = 0.0, memory: int = 1 << 20,
    ) -> None:  # fmt: skip
        self.agenda = Agenda(seed)
        self.links = Links(link or Link(rtt_ms=40, jitter_ms=5))
        self.wires = Wires(self.agenda, self.links)
        rates = [1 + skew * (2 * self.agenda.rng.random() - 1) for _ in (SOURCE, *peers)]
        self.source = SourceMachine(self.agenda, self.wires, source_feeds, rates[0])
        self.peers = {
            name: PeerMachine(self.agenda, self.wires, name, rate, memory)
            for name, rate in zip(peers, rates[1:], strict=True)
        }
        machines: list[SourceMachine | PeerMachine] = [self.source, *self.peers.values()]
        for machine in machines:
            self.wires.add(machine)
        for machine in machines:
            machine.start()
        self.acknowledged: dict[str, int] = {}
        self.asked: dict[str, Asked] = {}
        self.dropped = 0
        """Documents up to there may be gaps."""
        self.faults: dict[str, int] = {}
        self.watcher = Watcher()
        self.agenda.after(_LOOK_S, self._look)

    # Work.

    def publish(self, key: str, body: bytes) -> None:
        """Publish a document, and ask again until it is acknowledged."""
        if key in self.acknowledged:
            return
        if self.source.is_up:
            self.source.append(NewEntry(key, body), lambda number: self._acknowledge(key, number))
        self.agenda.after(_AGAIN_S, self.publish, key, body)

    def _acknowledge(self, key: str, number: int) -> None:
        before = self.acknowledged.setdefault(key, number)
        if before != number:
            raise WentWrong(f"{key} is {before}, and then {number}")

    def subscribe(self, asked: Asked) -> None:
        """Let a user subscribe, and ask again until it is acknowledged."""
        self.asked.setdefault(asked.name, asked)
        if asked.start is not None:
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
        if asked.is_ended or asked.start is None:
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
        before = self.source.steering.epoch
        done = self.source.adopt(read_proposal(rows, base_epoch))
        self.agenda.note(f"a plan made in epoch {base_epoch}: {type(done).__name__}")
        if isinstance(done, Stale) != (base_epoch != before):
            self.watcher.wrong.append(f"a plan of epoch {base_epoch} in epoch {before}: {type(done).__name__}")

    # Faults.

    def crash(self, name: str, *, is_noticed: bool = True) -> None:
        """End a machine's process: with or without its system telling the others (power)."""
        machine = self._machine(name)
        if machine.is_up:
            self._fault("crash" if is_noticed else "power loss", name)
            machine.crash()
            self.wires.crash(name, is_noticed=is_noticed)

    def restart(self, name: str) -> None:
        """Start a machine again."""
        machine = self._machine(name)
        if not machine.is_up:
            self.agenda.note(f"{name} starts")
            machine.start()

    def cut(self, some: list[str]) -> None:
        """Cut some machines off from the rest."""
        self._fault("partition", ", ".join(some))
        self.links.cut(some, [name for name in (SOURCE, *self.peers) if name not in some])

    def heal(self) -> None:
        """Let everything pass again."""
        self.agenda.note("healed")
        self.links.heal()

    def disturb(self, chaos: Chaos) -> None:
        """Lose, repeat and reorder frames."""
        self._fault("chaos", f"{chaos}")
        self.wires.chaos = chaos

    def slow(self, name: str, slowness: float) -> None:
        """Make a disk slow, or quick again."""
        if slowness > 1:
            self._fault("slow disk", name)
        self._machine(name).disk.slowness = slowness

    def fill(self, name: str, *, is_full: bool) -> None:
        """Fill a disk, or make room."""
        if is_full:
            self._fault("full disk", name)
        self._machine(name).disk.is_full = is_full

    def trim(self, name: str, upto: int) -> None:
        """Let a machine drop what it has stored up to a document, as retention would."""
        self._fault("trim", f"{name} up to {upto}")
        self._machine(name).trim(upto)
        if name == SOURCE:
            self.dropped = max(self.dropped, self.source.log.lowest)

    # The end.

    def finish(self) -> list[str]:
        """Bring everything back, wait until everybody has everything, and say what is wrong."""
        self.agenda.note("everything comes back")
        self.wires.chaos = Chaos()
        self.links.heal()
        self.links.put_all(Link(rtt_ms=20))
        for name in (SOURCE, *self.peers):
            self.restart(name)
            self.slow(name, 1.0)
            self.fill(name, is_full=False)
        end = self.agenda.now + _PATIENCE_S
        while self.agenda.now < end and not self._is_done():
            self.agenda.run(self.agenda.now + 1.0)
        self.agenda.run(self.agenda.now + 2.0)
        return [*self.watcher.wrong, *final_wrong(self)]

    def _is_done(self) -> bool:
        if any(one.start is None for one in self.asked.values()):
            return False
        for one in self.asked.values():
            kept = self.peers[one.site].kept.get(one.name)
            ended = self.source.log.ended.get(one.name)
            if kept is None or kept.frontier < (self.source.log.last if ended is None else ended[1]):
                return False
        return True

    def _look(self) -> None:
        self.watcher.look(self)
        if not self.watcher.wrong:
            self.agenda.after(_LOOK_S, self._look)

    def _fault(self, kind: str, what: str) -> None:
        self.faults[kind] = self.faults.get(kind, 0) + 1
        self.agenda.note(f"{kind}: {what}")

    def _machine(self, name: str) -> SourceMachine | PeerMachine:
        return self.source if name == SOURCE else self.peers[name]

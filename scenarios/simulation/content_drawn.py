"""Draw what happens to a content-driven network from a seed: work and faults, mixed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from scenarios.simulation.content import SOURCE
from scenarios.simulation.wires import Chaos

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from rewriting.filters.region import Point, Region
    from scenarios.simulation.content import ContentWorld

CHAOS: Final = Chaos(lose=0.05, repeat=0.05, overtake=0.1)


class Drawn:
    """What a run is drawn from: how filters, points, messages and regions look. ``faults`` counts what was
    done."""

    def __init__(
        self,
        world: ContentWorld,
        *,
        wanted: Callable[[Random], str | Point],
        message: Callable[[Random], dict[str, str]],
        region: Callable[[Random], Region | None],
        payload: tuple[str, ...] = (),
        cap_bytes: Callable[[Random], int | None] = lambda _: None,
    ) -> None:
        self.world, self.rng = world, world.agenda.rng
        self._wanted, self._message, self._region = wanted, message, region
        self._payload, self._cap_bytes = payload, cap_bytes
        self.faults: Counter[str] = Counter()
        self._machines = self._subscriptions = 0

    def begin(self, machines: int, subscriptions: int) -> None:
        """Let machines and subscriptions come."""
        for _ in range(machines):
            self._join()
            for _ in range(subscriptions // machines):
                self._subscribe()
            self._pass(0.4)

    def run(self, steps: int) -> None:
        """Let things happen, one after the other or at once."""
        weights = {
            self._publish: 12, self._subscribe: 3, self._unsubscribe: 2, self._crash: 2, self._restart: 4,
            self._cut: 1, self._heal: 2, self._disturb: 1, self._calm: 2, self._join: 1, self._leave: 1,
            self._rebalance: 1, self._crash_source: 1,
        }  # fmt: skip
        actions = [action for action, weight in weights.items() for _ in range(weight)]
        for _ in range(steps):
            self.rng.choice(actions)()
            self._pass(self.rng.choice((0.0, 0.0, 0.005, 0.05, 0.5, 3.0)))

    def _pass(self, seconds: float) -> None:
        self.world.agenda.run(self.world.agenda.now + seconds)

    def _some(self, *, up: bool) -> str | None:
        names = [name for name in self.world.machines if self.world.nodes.is_up(name) == up]
        return self.rng.choice(names) if names else None

    def _publish(self) -> None:
        for _ in range(self.rng.choice((1, 1, 3))):
            message = self._message(self.rng)
            payload = tuple(name for name in self._payload if name in message)
            self.world.publish(message, region=self._region(self.rng), payload=payload)

    def _subscribe(self) -> None:
        self._subscriptions += 1
        site = self.rng.choice(list(self.world.machines))
        self.world.subscribe(f"s{self._subscriptions}", site, self._wanted(self.rng))

    def _unsubscribe(self) -> None:
        live = [one.name for one in self.world.wanted if one.end is None]
        if live:
            self.world.unsubscribe(self.rng.choice(live))

    def _crash(self) -> None:
        name = self._some(up=True)
        if name is not None and sum(map(self.world.nodes.is_up, self.world.machines)) > 2:
            self.faults["crash"] += 1
            self.world.crash(name)

    def _crash_source(self) -> None:
        """Let the source end and start again from what it wrote, or from a snapshot of it."""
        self.faults["source crash"] += 1
        if self.rng.random() < 0.3:
            self.world.records = self.world.origin.snapshot()
        self.world.crash_source()
        self._pass(self.rng.choice((0.0, 0.3, 6.0)))
        self.world.restart_source()

    def _restart(self) -> None:
        name = self._some(up=False)
        if name is not None:
            self.world.restart(name)

    def _cut(self) -> None:
        """Cut a machine off from the source alone, or some from all others."""
        self.faults["cut"] += 1
        names = list(self.world.machines)
        some = self.rng.sample(names, self.rng.randint(1, max(1, len(names) // 3)))
        rest = [SOURCE] if self.rng.random() < 0.6 else [SOURCE, *(name for name in names if name not in some)]
        self.world.links.cut(some, rest)

    def _heal(self) -> None:
        self.world.links.heal()

    def _disturb(self) -> None:
        self.faults["chaos"] += 1
        self.world.nodes.chaos = Chaos(CHAOS.lose, CHAOS.repeat, CHAOS.overtake)

    def _calm(self) -> None:
        self.world.nodes.chaos = Chaos()

    def _join(self) -> None:
        if len(self.world.machines) >= 16:
            return
        self._machines += 1
        self.faults["join"] += 1
        self.world.add(f"m{self._machines:02}", cap_bytes=self._cap_bytes(self.rng))

    def _leave(self) -> None:
        """Let a machine give its zones away while it runs; it may come back at its next start."""
        present = [name for name, one in self.world.origin.machines.items() if one.is_present]
        if len(present) > 2:
            self.faults["leave"] += 1
            self.world.send(SOURCE, self.world.origin.leave(self.rng.choice(present), self.world.agenda.now))

    def _rebalance(self) -> None:
        self.faults["rebalance"] += 1
        self.world.send(SOURCE, self.world.origin.rebalance(self.world.agenda.now))

"""A run drawn from its seed: subscriptions, documents, plans and faults of every kind."""

from __future__ import annotations

import os
import random
import tempfile
import traceback
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from peer.hosting.results import DOCUMENTS
from scenarios.drawn_plans import proposal
from scenarios.hosts.links import Link
from scenarios.simulation.peers import SOURCE
from scenarios.simulation.planned import planned
from scenarios.simulation.verdicts import Check, Violation, WentWrong
from scenarios.simulation.wires import Chaos
from scenarios.simulation.world import Asked, World
from scenarios.small_documents import PATTERNS, small_document

if TYPE_CHECKING:
    from collections.abc import Callable

_SECONDS: Final = 40.0
_SAMPLE: Final = 8
_IN_MEMORY: Final = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Where stores need not wait for a real disk, if there is such a place."""


@dataclass(slots=True)
class Outcome:
    """What came of a run."""

    seed: int
    seconds: float
    wrong: list[Violation]
    faults: dict[str, int]
    documents: int
    subscriptions: int
    digest: str = ""
    """Stands for everything that happened: the same seed has the same."""
    lines: list[str] = field(default_factory=list)


def simulate(seed: int, *, machines: int | None = None, is_detailed: bool = False) -> Outcome:
    """Run one seed, on so many machines (two to five). ``is_detailed``: the log has every message."""
    with tempfile.TemporaryDirectory(prefix="distributary-simulation-", dir=_IN_MEMORY) as folder:
        return _simulate(seed, Path(folder), machines, is_detailed=is_detailed)


def _simulate(seed: int, folder: Path, machines: int | None, *, is_detailed: bool) -> Outcome:
    rng = random.Random(f"run {seed}")
    names = [f"m{i}" for i in range(rng.randint(2, 5))]
    if machines is not None:
        names = [f"m{i}" for i in range(machines)]
    link = Link(rtt_ms=rng.choice((2, 20, 80)), jitter_ms=rng.choice((0, 5)), loss=rng.choice((0, 0, 0.02)),
                mbit=rng.choice((None, None, 1)))  # fmt: skip
    feeds = rng.choice((None, None, 3))
    skew, memory = rng.choice((0.0, 0.02)), rng.choice((60, 400, 1 << 20))
    late = names[2:] if rng.random() < 0.3 else []
    world = World(seed, names, folder, link=link, source_feeds=feeds, skew=skew, memory=memory, later=late,
                  is_detailed=is_detailed)  # fmt: skip
    drawing = _Drawing(world, rng, names)
    try:
        drawing.draw_links(link, skew)
        drawing.draw(late)
        drawing.draw_losses()
        world.agenda.run(_SECONDS)
        wrong = world.finish()
    except WentWrong as exc:
        wrong = [exc.violation]
    except Exception as exc:  # of the objects that are simulated: a defect like any other, told with its seed
        at = traceback.extract_tb(exc.__traceback__)[-1]
        what = f"{type(exc).__name__}: {exc} ({Path(at.filename).name}:{at.lineno})"
        wrong = [Violation(Check.ERROR, what)]
    finally:
        world.close()
    return Outcome(
        seed, round(world.agenda.now, 1), wrong[:10], world.faults, len(world.acknowledged), len(world.asked),
        world.agenda.digest, world.agenda.lines,
    )  # fmt: skip


class _Drawing:
    """Puts what happens in a run on its agenda."""

    def __init__(self, world: World, rng: random.Random, names: list[str]) -> None:
        self._world, self._rng, self._names = world, rng, names
        # What came later is drawn apart, so that seeds stay what they were before.
        self._relays = random.Random(f"relays {world.seed}")
        self._losses = random.Random(f"losses {world.seed}")
        self._snapshots: list[dict[str, Any]] = []

    def draw_links(self, common: Link, skew: float) -> None:
        """Let some pairs have links of their own, and tell what is not as it should be from the beginning."""
        rng, world = self._rng, self._world
        for one, other in combinations((SOURCE, *self._names), 2):
            if rng.random() < 0.3:
                own = replace(common, rtt_ms=rng.choice((1, 40, 160)), mbit=rng.choice((None, 0.5)))
                world.links.put(one, other, own)
                world.fault("link of its own", f"{one} to {other}: {own}")
        for kind, is_so in (("loss", common.loss), ("narrow links", common.mbit), ("clock skew", skew)):
            if is_so:
                world.fault(kind, "all along")

    def draw(self, late: list[str]) -> None:
        """Draw all of it."""
        rng, world = self._rng, self._world
        for i in range(max(rng.randint(4, 12), 3 * (len(self._names) - 5))):
            asked = Asked(f"s{i}", rng.choice(self._names), self._pattern(), rng.choice((1, 2, 4, None)))
            self._at(rng.choice((0.0, 0.0, rng.random() * 25)), world.subscribe, asked)
            if rng.random() < 0.25:
                self._at(10 + rng.random() * 25, world.unsubscribe, asked)
        for i in range(rng.randint(10, 30)):
            at = 2 + rng.random() * 33
            for copy in range(rng.choice((1, 1, 1, 8))):  # now and then several at once
                self._at(at, world.publish, f"k{i}-{copy}", small_document(rng))
        for _ in range(rng.randint(0, 3)):
            self._at(5 + rng.random() * 25, self._snapshot)
            self._at(8 + rng.random() * 28, self._propose)
        for name in late:
            self._at(rng.random() * 25, world.join, name)
        if len(self._names) > 2 and rng.random() < 0.2:
            self._at(10 + rng.random() * 25, world.leave, self._names[1])
        kinds = (
            self._crash, self._crash, self._partition, self._chaos, self._disk, self._trim, self._pressure,
            self._drain,
        )  # fmt: skip
        for _ in range(rng.randint(0, 6)):
            self._at(4 + rng.random() * 30, rng.choice(kinds))

    def draw_losses(self) -> None:
        """Draw that results are dropped while somebody needs them: by those who feed it, or by everybody."""
        for kind in (self._pressure, self._away):
            if self._losses.random() < 0.35:
                self._at(5 + self._losses.random() * 25, kind)

    def _pattern(self) -> str:
        """Draw a pattern; now and then whole documents, by which a machine relays to its other subscriptions."""
        drawn = self._rng.choice(PATTERNS)
        return DOCUMENTS.text if self._relays.random() < 0.15 else drawn

    def _at(self, at: float, action: Callable[..., None], *arguments: Any) -> None:
        self._world.agenda.after(at, action, *arguments)

    def _crash(self) -> None:
        name = self._rng.choice([SOURCE, *self._names])
        if self._rng.random() < 0.4:
            self._world.crash_writing(name)
            return
        self._world.crash(name, is_noticed=self._rng.random() < 0.6)
        self._at(self._rng.random() * 6, self._world.restart, name)

    def _partition(self) -> None:
        self._world.cut(self._rng.sample(self._names, self._rng.randint(1, len(self._names) - 1)))
        self._at(self._rng.random() * 8, self._world.heal)

    def _chaos(self) -> None:
        some = (self._rng.choice((0, often)) for often in (0.02, 0.05, 0.03))
        chaos = Chaos(*some)
        self._world.disturb(chaos if chaos != Chaos() else Chaos(overtake=0.03))
        self._at(self._rng.random() * 6, self._world.disturb, Chaos())

    def _disk(self) -> None:
        name = self._rng.choice([SOURCE, *self._names])
        if self._rng.random() < 0.5:
            self._world.slow(name, 80.0)
            self._at(self._rng.random() * 5, self._world.slow, name, 1.0)
        else:
            self._world.fill(name, is_full=True)
            self._at(self._rng.random() * 4, lambda: self._world.fill(name, is_full=False))

    def _trim(self) -> None:
        name = self._rng.choice([SOURCE, *self._names])
        self._world.trim(name, self._rng.random() * self._world.agenda.now)

    def _drain(self) -> None:
        self._world.drain(self._rng.choice(self._names))

    def _pressure(self) -> None:
        """Many documents at once to a machine whose disk is slow; those who feed it drop what they owe it."""
        name = self._rng.choice(self._names)
        self._world.slow(name, 100.0)
        for i in range(12):
            self._world.publish(f"{self._world.agenda.now}-{i}", small_document(self._rng))
        self._at(0.5 + self._rng.random() * 2, self._trim_peers)
        self._at(3 + self._rng.random() * 3, self._world.slow, name, 1.0)

    def _away(self) -> None:
        """Some machines are away until nobody has what they miss: who comes back first has a gap to pass on."""
        rng, world = self._losses, self._world
        away = rng.sample(self._names, rng.randint(1, len(self._names)))
        for name in away:
            world.crash(name, is_noticed=rng.random() < 0.5)
        for i in range(rng.randint(2, 6)):
            world.publish(f"away {world.agenda.now}-{i}", small_document(rng))
        self._at(1.5, self._trim_peers)
        self._at(1.5, lambda: world.trim(SOURCE, world.agenda.now))
        for name in away:
            self._at(2 + rng.random() * 4, world.restart, name)

    def _trim_peers(self) -> None:
        for name in self._names:
            self._world.trim(name, self._world.agenda.now)

    def _snapshot(self) -> None:
        if self._world.source.is_up:
            self._snapshots.append(self._world.source.catalog.snapshot(_SAMPLE))

    def _propose(self) -> None:
        """Propose a plan made from some snapshot, which may be stale: by the planner, or one that it would not
        make."""
        if self._snapshots:
            found = self._rng.choice(self._snapshots)
            rows = planned(found) if self._rng.random() < 0.5 else None
            self._world.propose(rows or proposal(found["subscriptions"], self._rng), found["epoch"])

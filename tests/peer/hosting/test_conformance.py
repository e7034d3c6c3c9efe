"""What arrives is what direct matching gives, once, in order, over TCP with TLS as in the simulator.

The machines are those of ``tests/simulation``, which runs them in virtual time with all kinds of faults; here they
have real links, and there are few runs, for they take real time.
"""

import random

import pytest
import trio

from scenarios.drawn_plans import proposal
from scenarios.simulation.peers import SOURCE
from scenarios.simulation.wires import Chaos
from scenarios.simulation.world import Asked
from scenarios.small_documents import PATTERNS, small_document
from tests.peer.hosting.tcp import tcp_world

MACHINES = ["m0", "m1", "m2", "m3"]


def subscribe(world, rng, names):
    found = [Asked(name, rng.choice(MACHINES), rng.choice(PATTERNS), rng.choice((1, 3, None))) for name in names]
    for one in found:
        world.subscribe(one)
    return found


def propose(world, rng):
    """Propose another plan of what there is."""
    if world.source.is_up:
        steering = world.source.catalog.steering
        known = [[one.subscription, one.pattern, one.site, one.limit] for one in steering.entries()]
        world.propose(proposal(known, rng), steering.epoch)


async def play(folder, seed, *, count, step):
    """Publish so many documents; before each, ``step`` does something to the world."""
    rng = random.Random(seed)
    async with tcp_world(folder, seed, MACHINES) as world:
        subscribe(world, rng, [f"s{i}" for i in range(12)])
        await trio.sleep(0.5)
        for n in range(count):
            step(world, rng, n)
            world.publish(f"k{n}", small_document(rng))
            await trio.sleep(rng.random() * 0.05)
        wrong = await world.finished()
        return wrong, world.faults, len(world.acknowledged)


def nothing(world, rng, n):
    pass


def connections_break(world, rng, n):
    world.wires.chaos = Chaos(lose=0.02)


def plans_change(world, rng, n):
    if n % 4 == 3:
        propose(world, rng)


def machines_crash(world, rng, n):
    name = rng.choice([*MACHINES, SOURCE])
    if not world._machine(name).is_up:
        world.restart(name)
    elif rng.random() < 0.4:
        world.crash(name, is_noticed=rng.random() < 0.5)


def some_come_and_go(world, rng, n):
    if n == 10:
        subscribe(world, rng, [f"t{i}" for i in range(10)])
    if n == 20:
        for i in range(0, 10, 2):
            world.unsubscribe(world.asked[f"s{i}"])


@pytest.mark.parametrize(
    ("step", "seed"),
    [(nothing, 0), (connections_break, 0), (plans_change, 0), (some_come_and_go, 0)]
    + [(machines_crash, seed) for seed in range(2)],
)
def test_everybody_gets_exactly_its_own(tmp_path, step, seed):
    wrong, faults, documents = trio.run(lambda: play(tmp_path, seed, count=30, step=step))
    assert wrong == []
    assert documents == 30
    assert bool(faults) is (step in (plans_change, machines_crash))

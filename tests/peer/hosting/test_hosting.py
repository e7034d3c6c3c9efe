"""What arrives is what direct matching gives, once, in order, whatever the network and the machines do."""

import random

import pytest

from tests.peer.hosting.simulation import SOURCE, Faults, Network
from tests.peer.hosting.workload import Workload, document

MACHINES = ["m0", "m1", "m2", "m3"]


def prepared(seed, faults=None, count=12):
    network, work = Network(seed, MACHINES, faults), Workload(seed, MACHINES, count)
    for i in range(count):
        work.install(network, i)
    return network, work, random.Random(seed)


def settle(network, seconds=60):
    """Let everything come to rest on a network without faults."""
    network.faults = Faults()
    for name in network.machines:
        if network.machines[name].host is None:
            network.restart(name)
    network.run(seconds)


def check(network, work):
    wrong = [reason for i in range(len(work.names)) if (reason := work.wrong(network, i))]
    assert wrong == []


@pytest.mark.parametrize("seed", range(25))
def test_everybody_gets_exactly_its_own(seed):
    network, work, rng = prepared(seed)
    for _ in range(30):
        network.source.publish(document(rng))
        network.run(rng.random() * 0.2)
    settle(network)
    check(network, work)


@pytest.mark.parametrize("seed", range(25))
def test_also_over_a_network_that_loses_repeats_and_reorders(seed):
    network, work, rng = prepared(seed, Faults(lose=0.01, repeat=0.05, overtake=0.02))
    for _ in range(30):
        network.source.publish(document(rng))
        network.run(rng.random() * 0.5)
    settle(network)
    check(network, work)


@pytest.mark.parametrize("seed", range(25))
def test_also_while_configurations_change(seed):
    network, work, rng = prepared(seed)
    for _ in range(40):
        network.source.publish(document(rng))
        work.install(network, rng.randrange(len(work.names)))
        network.run(rng.random() * 0.3)
    settle(network)
    check(network, work)


@pytest.mark.parametrize("seed", range(60))
def test_also_while_machines_crash_and_return(seed):
    network, work, rng = prepared(seed, Faults(lose=0.002))
    for _ in range(40):
        network.source.publish(document(rng))
        name = rng.choice([*MACHINES, SOURCE])
        if network.machines[name].host is None:
            network.restart(name)
        elif rng.random() < 0.4:
            network.crash(name)
        network.run(rng.random() * 0.8)
    settle(network)
    check(network, work)

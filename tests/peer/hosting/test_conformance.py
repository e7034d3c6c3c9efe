"""What arrives is what direct matching gives, once, in order: in a simulated network, and over TCP with TLS.

The same tests for both. Over TCP the machines of the simulation have real links; there are fewer runs, for they
take real time.
"""

import random
from contextlib import contextmanager

import pytest

from peer.hosting import host
from scenarios.small_documents import small_document
from tests.peer.hosting.simulation import SOURCE, Faults, Network
from tests.peer.hosting.tcp import tcp_network
from tests.peer.hosting.workload import Workload, settle, wrongs

MACHINES = ["m0", "m1", "m2", "m3"]


def runs(simulated, real):
    """Draw so many runs of each kind."""
    return pytest.mark.parametrize(
        ("kind", "seed"), [("memory", n) for n in range(simulated)] + [("tcp", n) for n in range(real)]
    )


@contextmanager
def prepared(kind, folder, seed, faults=None, count=12):
    """Run a network of a kind, with subscriptions."""
    work = Workload(seed, MACHINES, count)
    if kind == "tcp":
        with tcp_network(folder, seed, MACHINES, faults) as network:
            yield started(network, work), work, random.Random(seed)
    else:
        yield started(Network(seed, MACHINES, faults), work), work, random.Random(seed)


def started(network, work):
    for i in range(len(work.names)):
        work.install(network, i)
    return network


@runs(25, 1)
def test_everybody_gets_exactly_its_own(kind, seed, tmp_path):
    with prepared(kind, tmp_path, seed) as (network, work, rng):
        for _ in range(30):
            network.source.publish(small_document(rng))
            network.run(rng.random() * 0.2)
        settle(network, work)
        assert wrongs(network, work) == []


@runs(25, 2)
def test_also_over_a_network_that_loses_repeats_and_reorders(kind, seed, tmp_path):
    with prepared(kind, tmp_path, seed, Faults(lose=0.01, repeat=0.05, overtake=0.02)) as (network, work, rng):
        for _ in range(30):
            network.source.publish(small_document(rng))
            network.run(rng.random() * 0.5)
        settle(network, work)
        assert wrongs(network, work) == []


@runs(25, 2)
def test_also_while_configurations_change(kind, seed, tmp_path):
    with prepared(kind, tmp_path, seed) as (network, work, rng):
        for _ in range(40):
            network.source.publish(small_document(rng))
            work.install(network, rng.randrange(len(work.names)))
            network.run(rng.random() * 0.3)
        settle(network, work)
        assert wrongs(network, work) == []


@runs(60, 2)
def test_also_while_machines_crash_and_return(kind, seed, tmp_path):
    with prepared(kind, tmp_path, seed, Faults(lose=0.002)) as (network, work, rng):
        for _ in range(40):
            network.source.publish(small_document(rng))
            name = rng.choice([*MACHINES, SOURCE])
            if network.machines[name].host is None:
                network.restart(name)
            elif rng.random() < 0.4:
                network.crash(name)
            network.run(rng.random() * 0.8)
        settle(network, work)
        assert wrongs(network, work) == []


@runs(10, 1)
def test_subscriptions_come_late_and_go_early(kind, seed, tmp_path, monkeypatch):
    monkeypatch.setattr(host, "_DRAINING_S", 2.0)
    with prepared(kind, tmp_path, seed, count=10) as (network, work, rng):
        late = Workload(seed + 1000, MACHINES, 10)
        late.names = [f"t{i}" for i in range(10)]
        starts = {}
        for n in range(30):
            network.source.publish(small_document(rng))
            if n == 10:
                for i in range(10):
                    starts[i] = network.source.log.last
                    network.machines[late.sites[i]].install(late.configuration(i, start=starts[i]))
            if n == 20:
                for i in range(0, 10, 2):
                    network.machines[work.sites[i]].withdraw(work.names[i], network.source.log.last)
            network.run(rng.random() * 0.3)

        def wrong():
            """List what is wrong: of those that came late, that stayed, and that went early."""
            found = [late.wrong(network, i, start=starts[i]) for i in range(10)]
            found += [work.wrong(network, i, upto=21 if i % 2 == 0 else None) for i in range(10)]
            return [reason for reason in found if reason]

        def left():
            return [
                work.names[i]
                for i in range(0, 10, 2)
                if work.names[i] in network.machines[work.sites[i]].host.subscriptions
            ]

        network.rest(lambda: not wrong() and not left(), 120)
        assert wrong() == []
        assert left() == []

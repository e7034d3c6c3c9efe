"""What only a simulated network can show: exact times, lost logs, machines without memory."""

import random

import pytest
from msgspec import structs

from overlay.feeds.items import Kind
from peer.hosting.configuration import Configuration, Input
from peer.hosting.history import History
from scenarios.small_documents import small_document
from tests.peer.hosting import simulation
from tests.peer.hosting.simulation import Faults, Network
from tests.peer.hosting.workload import Workload, settle, wrongs

MACHINES = ["m0", "m1", "m2", "m3"]


def prepared(seed, faults=None, count=12):
    network, work = Network(seed, MACHINES, faults), Workload(seed, MACHINES, count)
    for i in range(count):
        work.install(network, i)
    return network, work, random.Random(seed)


@pytest.mark.parametrize("seed", range(15))
def test_also_when_little_stays_in_memory_and_windows_are_small(seed, monkeypatch):
    monkeypatch.setitem(History.__init__.__kwdefaults__, "recent_bytes", 40)
    monkeypatch.setattr(simulation, "WINDOW", 100)
    network, work, rng = prepared(seed, Faults(lose=0.002))
    for n in range(40):
        network.source.publish(small_document(rng))
        if n % 5 == 0:
            name = rng.choice(MACHINES)
            network.crash(name)
            network.run(rng.random())
            network.restart(name)
        work.install(network, rng.randrange(len(work.names)))
        network.run(rng.random() * 0.5)
    settle(network, work)
    assert wrongs(network, work) == []


@pytest.mark.parametrize("seed", range(10))
def test_who_lacks_what_is_owed_is_replaced_by_who_has_it(seed):
    network, work, rng = prepared(seed)
    for _ in range(15):
        network.source.publish(small_document(rng))
        network.run(0.2)
    gone = rng.choice(MACHINES)
    network.crash(gone)
    for _ in range(10):
        network.source.publish(small_document(rng))
        network.run(0.2)
    for name in MACHINES:
        if name != gone:
            network.machines[name].forget(20)
    network.restart(gone)
    settle(network, work)
    assert wrongs(network, work) == []


def test_what_the_log_has_lost_is_a_gap_for_everybody():
    network, rng = chain(), random.Random(3)
    network.crash("m1")
    for _ in range(10):
        network.source.publish(small_document(rng))
        network.run(0.3)
    network.source.log.lowest = 4
    network.source.host.trimmed(4)
    network.machines["m0"].forget(6)
    network.restart("m1")
    network.run(30)
    found, frontier = network.results("m1", "s1")
    assert frontier == 10
    gaps = {number: kind for number, kind in found.items() if kind is Kind.GAP}
    assert gaps == {4: Kind.GAP}


def chain(seed=1):
    """Three machines in a row: the source feeds s0, s0 feeds s1, s1 feeds s2."""
    network = Network(seed, MACHINES)
    text = "//a{cont}"
    before = []
    for i in range(3):
        choices = (tuple(before[-1:]),) if before else ()
        found = Configuration(f"s{i}", MACHINES[i], text, 1, 1, 1, 0, 5, choices)
        network.machines[MACHINES[i]].install(found)
        before.append(Input(f"s{i}", MACHINES[i], text))
    return network


def test_a_machine_that_falls_silent_costs_its_direct_downstreams_a_timeout_and_nobody_else_anything():
    network, rng = chain(), random.Random(1)
    for _ in range(5):
        network.source.publish(small_document(rng))
        network.run(0.5)
    network.freeze("m0")
    silent_at = network.now
    network.source.publish(b"<r><a>after</a></r>")
    fed = []
    while len(fed) < 2 and network.now < silent_at + 20:
        network.run(0.1)
        fed = [i for i in (1, 2) if network.results(MACHINES[i], f"s{i}")[1] == network.source.log.last]
    assert network.now - silent_at < network.dead_s + 1.0
    moved = {i: network.machines[MACHINES[i]].host.subscriptions[f"s{i}"].feeding.failovers for i in (1, 2)}
    assert moved == {1: 1, 2: 0}


def test_a_feeder_that_has_not_heard_of_a_new_generation_is_waited_for():
    network, rng = chain(), random.Random(1)
    for _ in range(5):
        network.source.publish(small_document(rng))
    network.run(5)
    network.source.log.generation = 2
    newer = {
        m: structs.replace(network.machines[m].installed[f"s{i}"], generation=2)
        for i, m in enumerate(MACHINES[:3])
    }
    network.crash("m1")
    network.run(3)
    network.machines["m1"].installed["s1"] = newer["m1"]
    network.restart("m1")
    network.run(0.5)
    feeding = network.machines["m1"].host.subscriptions["s1"].feeding
    assert (feeding.is_live, feeding.current.inputs[0].subscription) == (False, "s0")
    network.machines["m0"].install(newer["m0"])
    network.run(0.5)
    assert (feeding.is_live, feeding.current.inputs[0].subscription, feeding.failovers) == (True, "s0", 0)
    network.machines["m2"].install(newer["m2"])
    network.source.publish(b"<r><a>after</a></r>")
    network.run(10)
    assert [network.results(MACHINES[i], f"s{i}")[1] for i in range(3)] == [6] * 3


def levels(network):
    return [network.machines[m].host.subscriptions[f"s{i}"].feeding.level for i, m in enumerate(MACHINES[:3])]


def test_a_level_that_changes_is_told_all_the_way_down():
    network = chain()
    network.run(5)
    assert levels(network) == [1, 2, 3]
    network.crash("m0")
    network.run(10)
    on = network.machines["m2"].host.subscriptions["s2"].feeding
    assert (on.level, on.failovers) == (2, 0)


@pytest.mark.parametrize("sites", [MACHINES[:3], ["m0", "m0", "m0"]])
def test_configurations_that_feed_in_a_circle_are_noticed_and_the_source_helps(sites):
    network, rng, text = Network(1, MACHINES), random.Random(1), "//a{cont}"
    inputs = [Input(f"s{i}", sites[i], text) for i in range(3)]
    for i in range(3):
        found = Configuration(f"s{i}", sites[i], text, 1, 1, 1, 0, 5, ((inputs[i - 1],),))
        network.machines[sites[i]].install(found)
    for _ in range(20):
        network.source.publish(small_document(rng))
        network.run(1)
    network.run(100)
    feedings = [network.machines[sites[i]].host.subscriptions[f"s{i}"].feeding for i in range(3)]
    assert sum(one.circles for one in feedings) > 0
    assert [network.results(sites[i], f"s{i}")[1] for i in range(3)] == [20] * 3

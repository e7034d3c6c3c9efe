"""What only a simulated network can show: exact times, lost logs, given configurations."""

import pytest
from msgspec import structs

from overlay.feeds.items import Kind
from peer.hosting.configuration import Input
from scenarios.hosts.links import Link
from scenarios.simulation.peers import SOURCE
from scenarios.simulation.planned import planned
from scenarios.simulation.wires import PATIENCE
from scenarios.simulation.world import Asked, World

TEXT = "//a{cont}"
NAMES = ["m0", "m1", "m2"]


def run(world, seconds):
    world.agenda.run(world.agenda.now + seconds)


def publish(world, count, pause_s=0.3):
    """Publish some documents; return when each was safe."""
    moments = []
    for n in range(count):
        world.publish(f"{world.agenda.now}", f"<r><a>{n}</a></r>".encode())
        run(world, pause_s)
        moments.append(world.agenda.now)
    return moments


def feeding(world, i):
    """How the i-th subscription is fed."""
    return world.peers[f"m{i}"].host.subscriptions[f"s{i}"].feeding


def levels(world):
    return [feeding(world, i).level for i in range(3)]


@pytest.fixture
def chain(tmp_path):
    """Three machines in a row: the source feeds s0, s0 feeds s1, s1 feeds s2, for nobody may feed two."""
    world = World(1, NAMES, tmp_path, source_feeds=1)
    for i, name in enumerate(NAMES):
        world.subscribe(Asked(f"s{i}", name, TEXT, 1))
        run(world, 2)
    assert levels(world) == [1, 2, 3]
    yield world
    world.close()


def impose(world, choices):
    """Let subscriptions be fed as no plan would have it."""
    for name, one in choices.items():
        known = world.source.catalog.steering.configuration(name)
        changed = structs.replace(known, revision=known.revision + 100, choices=one)
        world.source.catalog._install([changed])


def test_what_the_log_has_lost_is_a_gap_for_who_needs_it_and_no_more_than_that(chain):
    chain.crash("m1")
    moments = publish(chain, 10)
    chain.trim(SOURCE, moments[3])
    chain.trim("m0", moments[5])
    chain.restart("m1")
    run(chain, 30)
    assert [chain.lacks(one) for one in chain.asked.values()] == ["", "", ""]
    gaps = [one for one in chain.peers["m1"].had("s1") if one.kind is Kind.GAP]
    assert [(one.after, one.number) for one in gaps] == [(3, 7)]  # the first three entries are subscriptions
    assert chain.wrong() == []


def test_a_machine_that_falls_silent_costs_its_direct_downstreams_a_timeout_and_nobody_else_anything(chain):
    publish(chain, 5, 0.5)
    chain.crash("m0", is_noticed=False)
    silent_at = chain.agenda.now
    chain.publish("after", b"<r><a>after</a></r>")
    run(chain, 0.2)
    last = chain.source.log.last
    while min(chain.peers[f"m{i}"].results.frontier(f"s{i}").upto for i in (1, 2)) < last:
        run(chain, 0.1)
        assert chain.agenda.now < silent_at + 20
    assert chain.agenda.now - silent_at < PATIENCE.dead_s + 1.0
    assert [feeding(chain, i).failovers for i in (1, 2)] == [1, 0]


def test_a_level_that_changes_is_told_all_the_way_down(chain):
    chain.crash("m0")
    run(chain, 10)
    assert [feeding(chain, i).level for i in (1, 2)] == [1, 2]
    assert feeding(chain, 2).failovers == 0


def test_a_feeder_that_has_not_heard_of_a_new_generation_is_waited_for(chain):
    publish(chain, 5)
    chain.crash("m2")  # it would take the place at s0 when s1 is away
    chain.links.cut(["m0"], [SOURCE])
    chain.crash(SOURCE)
    log = chain.source.disk.start()
    log.begin_generation(log.last)
    log.close()
    chain.restart(SOURCE)
    while feeding(chain, 1).configuration.generation == 1:
        run(chain, 0.1)
    run(chain, 0.5)
    chain.crash("m1")
    run(chain, 1.5)
    chain.links.heal()
    chain.links.put("m0", SOURCE, Link(rtt_ms=600))
    chain.restart("m1")
    run(chain, 0.5)
    assert feeding(chain, 0).configuration.generation == 1
    one = feeding(chain, 1)
    assert (one.is_live, one.current.inputs[0].subscription) == (False, "s0")
    while feeding(chain, 0).configuration.generation == 1:
        run(chain, 0.1)
    run(chain, 1)
    assert (one.is_live, one.current.inputs[0].subscription, one.failovers) == (True, "s0", 0)
    chain.publish("after", b"<r><a>after</a></r>")
    assert chain.finish() == []


@pytest.mark.parametrize("sites", [NAMES, ["m0", "m0", "m0"]])
def test_configurations_that_feed_in_a_circle_are_noticed_and_the_source_helps(tmp_path, sites):
    world = World(1, NAMES, tmp_path)
    world.watcher.look = lambda world: None  # it would say that there is a circle
    for i, site in enumerate(sites):
        world.subscribe(Asked(f"s{i}", site, TEXT, 5))
    run(world, 3)
    inputs = [Input(f"s{i}", sites[i], TEXT) for i in range(3)]
    impose(world, {f"s{i}": ((inputs[i - 1],),) for i in range(3)})
    publish(world, 20, 1.0)
    run(world, 100)
    found = [world.peers[sites[i]].host.subscriptions[f"s{i}"].feeding for i in range(3)]
    assert sum(one.circles for one in found) > 0
    assert world.finish() == []
    world.close()


def test_while_a_machine_is_set_aside_plans_can_be_made_and_it_feeds_nobody(tmp_path):
    world = World(1, NAMES, tmp_path)
    for i in range(9):
        world.subscribe(Asked(f"s{i}", NAMES[i % 3], TEXT, 2))
    run(world, 3)
    world.drain("m0")
    run(world, 3)
    snapshot = world.source.catalog.snapshot(5)
    rows = planned(snapshot)
    feeders = {one["site"] for row in rows for one in row["inputs"] if row["how"] != "local"}
    assert {row["site"] for row in rows} == set(NAMES)
    assert feeders <= {"m1", "m2"}
    assert feeders
    world.propose(rows, snapshot["epoch"])
    assert world.finish() == []
    assert world.faults["reconfiguration"] == 1
    world.close()

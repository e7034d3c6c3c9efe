"""A content-driven network without faults: everybody gets what it is owed, once, on both routings."""

import random

import pytest

from overlay.content import frames
from overlay.content.errors import MalformedContent, UnknownSubscription
from overlay.content.node import MOST_HOPS, ContentNode
from overlay.content.quick import QuickMatching
from overlay.content.routing import children, towards_corner
from rewriting.filters import Dimension, Quadrants, Rectangle, Space, SpaceError
from scenarios.hosts.links import Link
from scenarios.simulation.content import SOURCE, ContentWorld
from tests.overlay.content.drawn import PAIRS, PRICES, a_filter, a_message, a_point, a_region
from tests.overlay.zones.test_tree import random_tree
from tests.rewriting.filters.test_region import random_region

ROUTINGS = {"tree": (False, ""), "neighbours": (True, ""), "through one": (True, "m00")}


def a_world(seed, space, machines=8, subscriptions=60, *, routing="tree", **options):
    to_neighbours, access = ROUTINGS[routing]
    world = ContentWorld(seed, space, link=Link(rtt_ms=10), to_neighbours=to_neighbours, access=access, **options)
    rng = world.agenda.rng
    for i in range(machines):
        world.add(f"m{i:02}")
        world.agenda.run(world.agenda.now + 0.1)
        for k in range(subscriptions // machines):
            wanted = a_point(rng, space) if rng.random() < 0.3 else a_filter(rng, space)
            world.subscribe(f"s{i:02}{k:03}", f"m{rng.randrange(i + 1):02}", wanted)
        world.agenda.run(world.agenda.now + 0.3)
    return world


@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize("space", [PRICES, PAIRS], ids=lambda one: one.name)
def test_everybody_gets_what_it_is_owed_once(space, routing):
    for seed in range(3):
        world = a_world(seed, space, routing=routing)
        rng = world.agenda.rng
        assert len(world.origin.catalog.history.now.owners()) == 8
        for _ in range(40):
            world.publish(a_message(rng, space), region=a_region(rng, space))
            world.agenda.run(world.agenda.now + 0.05)
        assert world.finish() == []
        assert sum(len(one) for m in world.machines.values() for one in m.inbox.received.values()) > 50
        assert sum(m.inbox.doubles for m in world.machines.values()) == 0
        assert world.nodes.lost == 0


def test_the_quick_matcher_delivers_the_same():
    def make(name, start, desk):
        return ContentNode(name, SOURCE, PAIRS, incarnation=start, make_matcher=QuickMatching)

    world = a_world(4, PAIRS, make_node=make)
    for turn in range(40):
        world.publish(a_message(world.agenda.rng, PAIRS))
        world.unsubscribe(f"s0{turn % 8}{turn // 8:03}")
    assert world.finish() == []
    assert sum(len(one) for m in world.machines.values() for one in m.inbox.received.values()) > 20


@pytest.mark.parametrize("routing", ["tree", "neighbours"])
def test_a_message_takes_one_hop_for_every_machine_it_must_reach(routing):
    world = a_world(5, PAIRS, machines=24, subscriptions=240, routing=routing)
    world.finish()
    tree = world.origin.catalog.history.now.tree
    for _ in range(30):
        before = world.sent.get("Spread", 0)
        number = world.publish(a_message(world.agenda.rng, PAIRS))
        world.agenda.run(world.agenda.now + 1.0)
        met = len(list(tree.meeting(world.published[-1].region)))
        assert world.origin.frontier == number
        assert world.sent["Spread"] - before == met, "one per zone, the first one from the source"


def test_parents_make_a_tree_with_the_corner_as_its_root():
    rng = random.Random(8)
    for axes in (1, 2, 4):
        for _ in range(25):
            tree, region = random_tree(rng, axes, 25), random_region(rng, axes)
            met = list(tree.meeting(region))
            roots = [zone for zone in met if towards_corner(tree.box(zone), region) is None]
            reached, waiting = [], list(roots)
            while waiting:
                zone = waiting.pop()
                reached.append(zone)
                waiting += children(tree, zone, region)
            assert sorted(reached) == sorted(met), (region, tree.splits)
            assert roots == ([tree.entry(region)] if met else [])


def test_subscriptions_move_and_are_relabelled_without_a_gap_or_a_double():
    space = Space("labels", (Dimension("label", low=0, high=1000, holds_ranges=False),))
    world = ContentWorld(3, space, link=Link(rtt_ms=10))
    rng = world.agenda.rng
    for i in range(6):
        world.add(f"m{i}")
        for k in range(10):
            world.subscribe(f"s{i}{k}", f"m{i}", (float(rng.randint(0, 999)),))
        world.agenda.run(world.agenda.now + 0.5)
    for turn in range(80):
        low = rng.uniform(0, 900)
        world.publish({"turn": str(turn)}, region=Rectangle.span(1, 0, low, low + 100))
        if turn % 3 == 0:
            world.move(f"s{rng.randrange(6)}{rng.randrange(10)}", (float(rng.randint(0, 999)),))
        if turn % 10 == 5:
            world.relabel(0, 500.0, 600.0, 7.5)
        if turn % 4 == 1:
            world.publish({"turn": f"{turn}b"}, region=Rectangle.span(1, 0, 550.0, 620.0))
        world.agenda.run(world.agenda.now + rng.choice((0.0, 0.01, 0.1)))
    assert world.finish() == []
    assert len(world.wanted) > 90
    with pytest.raises(UnknownSubscription):
        world.origin.move("nobody", (1.0,), 0.0)
    with pytest.raises(SpaceError):
        world.origin.move("s00", (1.0, 2.0), 0.0)


def test_what_comes_and_goes_is_owed_exactly_what_lies_between():
    world = a_world(9, PRICES)
    rng = world.agenda.rng
    for turn in range(60):
        world.publish(a_message(rng, PRICES))
        name = f"x{turn}"
        world.subscribe(name, f"m{rng.randrange(8):02}", a_filter(rng, PRICES))
        world.publish(a_message(rng, PRICES))
        if turn > 5 and rng.random() < 0.7:
            world.unsubscribe(f"x{turn - 5}")
        world.agenda.run(world.agenda.now + rng.choice((0.0, 0.02, 0.2)))
    assert world.finish() == []
    entries = list(world.origin.catalog.entries())
    assert all(entry.end < 0 for entry in entries), "what has ended is forgotten"
    assert not any(node.tasks for m in world.machines.values() if (node := m.node))


def test_a_hook_sees_every_message_in_its_zone_and_says_who_gets_it():
    seen = []

    def even_only(zone, message, found):
        seen.append((zone, message.number))
        return [entry for entry in found if message.number % 2 == 0]

    def make(name, start, desk):
        return ContentNode(name, SOURCE, PRICES, incarnation=start, hook=even_only)

    world = a_world(2, PRICES, make_node=make)
    for _ in range(20):
        world.publish(a_message(world.agenda.rng, PRICES))
    wrong = world.finish()
    assert wrong
    assert all("lacks" in line and int(line.split()[-1]) % 2 for line in wrong)
    assert len(seen) == len(set(seen)) > 20


def test_a_message_that_is_sent_round_does_not_go_on_for_ever():
    world = a_world(6, PRICES, routing="through one")
    node = world.machines["m00"].node
    message = frames.Message(10_000, world.origin.catalog.version, 0, a_message(world.agenda.rng, PRICES))
    assert node.handle(SOURCE, frames.Approach(message), world.agenda.now)
    assert node.handle("m01", frames.Approach(message, MOST_HOPS), world.agenda.now) == []


def test_frames_read_back_and_nothing_else_does():
    region = frames.pack_region(Quadrants(((1.0, 2.0),)))
    message = frames.Message(7, 1, 2, {"a": "b"}, region, ("p",), b"id", "n", None)
    spread = frames.Spread("01", False, message)
    assert frames.decode_untrusted(frames.encode(spread)) == spread
    bad = frames.Spread("01", False, frames.Message(7, 1, 2, {}, ((), (2.0,), (1.0,), (1.0,))))
    hostile = [b"", b"\x93", frames.encode(bad), frames.encode(frames.Done(7, "02", ())), b"\x91\x63"]
    hostile += [frames.encode(frames.Done(-1, "0", ())), frames.encode(spread)[:-3]]
    for data in hostile:
        with pytest.raises(MalformedContent):
            frames.decode_untrusted(data)

"""A content-driven network under churn, loss, cuts and splits mid-message; and that broken ones are found out."""

import msgspec
import pytest

from overlay.content import node as node_module
from overlay.content import owed as owed_module
from overlay.content.catalog import SpaceCatalog
from overlay.content.errors import MalformedContent
from overlay.content.journal import Behind, decode_record, encode_record
from overlay.content.node import ContentNode
from overlay.content.origin import Origin
from overlay.content.spreading import Spreading
from overlay.content.tasks import Task
from scenarios.hosts.links import Link
from scenarios.simulation.content import SOURCE, ContentWorld
from scenarios.simulation.content_drawn import Drawn
from tests.overlay.content.drawn import PAIRS, PRICES, a_filter, a_message, a_point, a_region


def a_run(seed, *, space=PRICES, to_neighbours=False, steps=120, finish=True):
    world = ContentWorld(seed, space, link=Link(rtt_ms=30, jitter_ms=20), to_neighbours=to_neighbours)
    drawn = Drawn(
        world,
        wanted=lambda rng: a_point(rng, space) if rng.random() < 0.2 else a_filter(rng, space),
        message=lambda rng: a_message(rng, space),
        region=lambda rng: a_region(rng, space),
    )
    drawn.begin(5, 30)
    drawn.run(steps)
    return world, drawn, world.finish() if finish else []


@pytest.mark.parametrize("to_neighbours", [False, True], ids=["tree", "neighbours"])
@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens_everybody_gets_what_it_is_owed_once(seed, to_neighbours):
    world, drawn, wrong = a_run(seed, space=(PRICES, PAIRS)[seed % 2], to_neighbours=to_neighbours)
    assert wrong == [], (seed, drawn.faults)
    assert len(world.published) > 30
    assert drawn.faults.total() > 10


def test_the_runs_have_every_kind_of_fault():
    _, drawn, _ = a_run(1, finish=False)
    more = a_run(2, finish=False)[1].faults
    assert {"crash", "source crash", "cut", "chaos", "join", "leave", "rebalance"} <= (drawn.faults + more).keys()


def a_quiet_world(machines=4, seed=1, **options):
    world = ContentWorld(seed, PRICES, link=Link(rtt_ms=20), **options)
    for i in range(machines):
        world.add(f"m{i}")
        for k in range(10):
            world.subscribe(f"s{i}{k}", f"m{i}", a_filter(world.agenda.rng, PRICES))
        world.agenda.run(world.agenda.now + 0.5)
    world.finish()
    return world


def zones_of(world, name):
    return world.origin.catalog.history.now.owned_by(name)


def test_a_crashed_owner_loses_no_subscription_and_is_replaced():
    world = a_quiet_world()
    assert zones_of(world, "m1")
    world.crash("m1")
    for _ in range(20):
        world.publish(a_message(world.agenda.rng, PRICES))
    world.agenda.run(world.agenda.now + 8.0)
    assert zones_of(world, "m1") == []
    assert world.finish() == []


def test_a_machine_that_is_away_for_long_gets_everything_when_it_is_back():
    world = a_quiet_world()
    world.crash("m2")
    for _ in range(30):
        world.publish(a_message(world.agenda.rng, PRICES))
        world.agenda.run(world.agenda.now + 1.0)
    world.agenda.run(world.agenda.now + 20.0)
    owed = world.origin.machines["m2"].owed.numbers
    assert len(owed) > 5
    assert world.origin.frontier == world.origin.number, "the others do not wait for it"
    assert world.machines["m2"].inbox.complete < min(owed)
    assert world.finish() == []
    assert world.machines["m2"].inbox.complete == world.origin.number


def a_machine_away_and_a_source_that_crashes():
    """Let a machine be behind, and the source start again meanwhile."""
    world = a_quiet_world()
    world.crash("m2")
    for _ in range(20):
        world.publish(a_message(world.agenda.rng, PRICES))
    world.agenda.run(world.agenda.now + 20.0)
    assert world.origin.machines["m2"].owed.numbers
    world.crash_source()
    world.agenda.run(world.agenda.now + 1.0)
    world.restart_source()
    return world


def test_a_source_that_starts_again_knows_what_it_owes():
    world = a_machine_away_and_a_source_that_crashes()
    assert world.origin.machines["m2"].owed.numbers
    assert world.finish() == []
    again = Origin(SOURCE, PRICES)
    again.restore(map(decode_record, map(encode_record, world.origin.snapshot())), 0.0)
    assert again.snapshot() == world.origin.snapshot()
    with pytest.raises(MalformedContent):
        decode_record(b"\x91\x63")


def test_what_was_given_up_is_a_gap_also_for_a_source_that_starts_from_a_snapshot(monkeypatch):
    monkeypatch.setattr(owed_module, "MOST_OWED", 5)
    world = a_machine_away_and_a_source_that_crashes()
    gap = world.origin.machines["m2"].owed.gap
    assert gap > 0
    again = Origin(SOURCE, PRICES)
    again.restore(map(decode_record, map(encode_record, world.origin.snapshot())), 0.0)
    found, known = again.machines["m2"].owed, world.origin.machines["m2"].owed
    assert (found.numbers, found.gap) == (known.numbers, gap)


def test_a_source_that_starts_again_waits_for_changes_that_had_not_arrived_when_they_ended():
    world = a_quiet_world(1)
    world.links.cut(["m0"], [SOURCE])
    world.subscribe("late", "m0", "price >= 0 and price <= 100")
    for _ in range(5):
        world.publish({"price": "50", "topic": "art"})
    world.unsubscribe("late")
    world.crash_source()
    world.links.heal()
    world.restart_source()
    assert world.finish() == []
    assert len(world.machines["m0"].inbox.received["late"]) == 5


def an_owner_cut_off():
    """Cut an owner off from the source alone: it still hears the others, who believe in it until they hear
    more."""
    world = a_quiet_world(8)
    before = zones_of(world, "m1")
    world.links.cut(["m1"], [SOURCE])
    while zones_of(world, "m1"):
        world.agenda.run(world.agenda.now + 0.02)
    assert world.machines["m1"].node.known.owned_by("m1") == before, "it does not know yet"
    world.agenda.run(world.agenda.now + 0.1)
    table = world.machines["m1"].node.keeper.tables[before[0]]
    for k, entry in enumerate(list(table.entries.values())):
        world.subscribe(f"new{k}", "m0", entry.filter)  # so nobody but its heir hears of a change
    for _ in range(40):
        world.publish(a_message(world.agenda.rng, PRICES))
    world.agenda.run(world.agenda.now + 8.0)
    return world


def test_an_owner_that_was_cut_off_and_comes_back_is_fenced():
    world = an_owner_cut_off()
    assert world.origin.frontier == world.origin.number
    world.links.heal()
    world.agenda.run(world.agenda.now + 3.0)
    assert world.machines["m1"].node.known.version == world.origin.catalog.version
    assert world.finish() == []


def an_owner_replaced_after_unsubscribing():
    """Let subscriptions end that are owed messages, and then the owner of their zone, who knew it."""
    world = a_quiet_world()
    others = [name for name in world.machines if name != "m1"]
    world.links.cut(["m1"], others)
    for _ in range(30):
        world.publish(a_message(world.agenda.rng, PRICES))
    for one in list(world.wanted):
        world.unsubscribe(one.name)
    world.agenda.run(world.agenda.now + 0.5)
    world.crash("m1")
    world.links.heal()
    world.agenda.run(world.agenda.now + 8.0)
    assert zones_of(world, "m1") == []
    return world


def test_a_successor_serves_what_ended_before_it_came():
    world = an_owner_replaced_after_unsubscribing()
    assert world.finish() == []


def test_a_zone_that_is_split_while_messages_are_under_way_is_answered_for():
    world = a_quiet_world(2)
    split_meanwhile = 0
    for i in range(12):
        for _ in range(4):
            world.publish(a_message(world.agenda.rng, PRICES))
        world.agenda.run(world.agenda.now + 0.011)
        split_meanwhile += len(world.origin.spreading.under_way)
        world.add(f"late{i}")
        world.subscribe(f"l{i}", f"late{i}", a_filter(world.agenda.rng, PRICES))
    assert split_meanwhile > 3
    assert world.finish() == []
    assert len(world.origin.catalog.history.now.tree.splits) > 8


def test_a_machine_that_starts_again_is_granted_its_zones_anew():
    world = a_quiet_world()
    zone = zones_of(world, "m1")[0]
    fence = world.origin.catalog.history.now.grants[zone].fence
    world.crash("m1")
    world.agenda.run(world.agenda.now + 0.2)
    world.restart("m1")
    world.publish(a_message(world.agenda.rng, PRICES))
    world.agenda.run(world.agenda.now + 2.0)
    assert world.origin.catalog.history.now.grants[zone] == ("m1", world.origin.catalog.version)
    assert world.origin.catalog.version > fence
    assert world.finish() == []


# Broken on purpose: the runs above must notice.


def acknowledge_at_once(monkeypatch):
    """Say that a task is done as soon as it has begun."""
    monkeypatch.setattr(Task, "is_done", property(lambda task: not task.blocked_zones))


def ignore_the_fence(monkeypatch):
    """Take messages whatever version of the map they ask for."""
    accepts = ContentNode._accepts

    def anyhow(self, message, request):
        return accepts(self, msgspec.structs.replace(message, version=0), request)

    monkeypatch.setattr(ContentNode, "_accepts", anyhow)


def hand_over_without_the_frontier(monkeypatch):
    """Leave what has ended out of what a zone's next owner loads, though it is owed something still."""
    page = SpaceCatalog.page

    def only_live(self, zone, after, most):
        entries, more = page(self, zone, after, most)
        return [entry for entry in entries if entry.end < 0], more

    monkeypatch.setattr(SpaceCatalog, "page", only_live)


def release_before_placing(monkeypatch):
    """Let messages go before their subscriptions have arrived."""
    release = Spreading.release

    def at_once(self, frontier, now):
        placing, self._placing = self._placing, {}
        try:
            return release(self, frontier, now)
        finally:
            self._placing = placing

    monkeypatch.setattr(Spreading, "release", at_once)


def never_ask_again(monkeypatch):
    """Ask everybody once."""
    monkeypatch.setattr(node_module, "AGAIN_S", 1e9)
    monkeypatch.setattr("overlay.content.spreading.AGAIN_S", 1e9)


def take_messages_before_loading(monkeypatch):
    """Take messages for zones whose subscriptions are not all here."""
    monkeypatch.setattr(
        "overlay.content.keeper.ZoneKeeper.has", lambda self, zones: set(zones) <= set(self.tables)
    )


def forget_who_was_behind(monkeypatch):
    """Give a subscriber up after some tries, and tell nobody."""
    finish = ContentNode._finish

    def silently(self, task):
        task.behind.clear()
        return finish(self, task)

    monkeypatch.setattr(ContentNode, "_finish", silently)


def runs():
    """Say what is wrong after each of many runs."""
    return (a_run(seed, space=(PRICES, PAIRS)[seed % 2])[2] for seed in range(40))


def forget_the_journal_of_those_behind(monkeypatch):
    """Do not write down who was not there."""
    take = Origin.take_journal

    def without(self):
        return [record for record in take(self) if not isinstance(record, Behind)]

    monkeypatch.setattr(Origin, "take_journal", without)


@pytest.mark.parametrize(
    ("broken", "outcomes"),
    [
        (acknowledge_at_once, runs),
        (ignore_the_fence, lambda: [an_owner_cut_off().finish()]),
        (hand_over_without_the_frontier, lambda: [an_owner_replaced_after_unsubscribing().finish()]),
        (release_before_placing, runs),
        (never_ask_again, runs),
        (take_messages_before_loading, runs),
        (forget_who_was_behind, runs),
        (forget_the_journal_of_those_behind, lambda: [a_machine_away_and_a_source_that_crashes().finish()]),
    ],
)
def test_a_broken_network_is_found_out(broken, outcomes, monkeypatch):
    broken(monkeypatch)
    assert any(outcomes())

"""A lookup finds the nearest live nodes, whoever lies or is dead."""

import random

import pytest

from overlay.dht.contacts import Contact
from overlay.dht.lookup import MOST_ASKED, FoundRecords, Lookup
from overlay.dht.table import Table, as_id
from tests.overlay.dht.network import make_record

OWN = as_id(0)


def contact(number):
    return Contact(as_id(number), "127.0.0.1", number % 60000 + 1)


def run(lookup, knows, dead=frozenset()):
    asked = []
    while taken := lookup.take(3):
        for one in taken:
            asked.append(one)
            if one in dead:
                lookup.failed(one)
            else:
                lookup.heard(one, knows(one))
    assert not lookup.is_waiting
    return asked


@pytest.mark.parametrize("deaths", [0, 12])
def test_a_lookup_finds_the_nearest_live_nodes_of_a_network(deaths):
    rng = random.Random(1)
    everybody = [contact(rng.getrandbits(160)) for _ in range(60)]
    dead, alive = set(everybody[:deaths]), everybody[deaths:]
    tables = {one: Table(one, 8) for one in alive}
    for one, table in tables.items():
        for other in rng.sample(everybody, len(everybody)):
            # Half of the dead were noticed.
            if other != one and (other not in dead or rng.random() < 0.5):
                table.add_contact(other)
    for _ in range(20):
        target = rng.getrandbits(160)
        lookup = Lookup(target, 8, OWN)
        lookup.learn(rng.sample(alive, 3))
        run(lookup, lambda one, target=target: tables[one].find_neighbors(target), dead)
        truth = sorted(alive, key=lambda one: one.long_id ^ target)[:8]
        assert lookup.found()[:4] == truth[:4]
        assert deaths or lookup.found() == truth


def test_nobody_is_asked_twice_and_oneself_never():
    lookup = Lookup(1, 4, OWN)
    everybody = [contact(number) for number in range(1, 10)]
    lookup.learn([Contact(OWN, "127.0.0.1", 1), *everybody])
    asked = run(lookup, lambda _: [Contact(OWN, "127.0.0.1", 1), *everybody])
    assert len(asked) == len(set(asked))
    assert all(one.id != OWN for one in asked)


def test_who_failed_does_not_come_back():
    lookup = Lookup(0, 2, OWN)
    dead = contact(1)
    lookup.learn([dead, contact(2), contact(3)])
    asked = run(lookup, lambda _: [dead], {dead})
    assert asked.count(dead) == 1
    assert lookup.found() == [contact(2), contact(3)]


def test_a_node_that_makes_up_ever_nearer_nodes_is_asked_only_so_often():
    lookup = Lookup(0, 8, OWN)
    lookup.learn([contact(1 << 150)])
    asked = run(lookup, lambda one: [contact(one.long_id - i) for i in range(1, 30)])
    assert len(asked) == MOST_ASKED
    assert len(lookup._known) <= 1024


def test_the_newest_record_found_wins_and_who_has_older_ones_is_named():
    old, new = make_record(revision=1), make_record(revision=2)
    found = FoundRecords(enough=2)
    assert found.outdated([]) == []
    found.add(old, b"old", contact(1))
    assert not found.is_enough
    found.add(new, b"new", contact(2))
    found.add(old, b"old", None)
    assert found.is_enough
    assert found.best == (new, b"new")
    assert found.outdated([contact(1), contact(2), contact(3), contact(4)]) == [contact(1), contact(3)]
    assert found.outdated([contact(2)]) == [contact(1)]

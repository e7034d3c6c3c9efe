"""The table finds the nearest contacts it has, whatever came and went."""

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from overlay.dht.contacts import Contact
from overlay.dht.table import Table, as_id

MIDDLE = 1 << 159


def contact(number, port=1, ip="127.0.0.1"):
    return Contact(as_id(number), ip, port)


# Ids that crowd around a few points and the edges of buckets, where tables go wrong, and anywhere else.
IDS = st.one_of(
    st.integers(0, 2**160 - 1),
    st.integers(0, 200),
    st.integers(MIDDLE - 50, MIDDLE + 50),
    st.integers(0, 159).map(lambda bit: 1 << bit),
)


@given(IDS, st.lists(IDS, max_size=80), st.lists(st.integers(0, 79), max_size=10), IDS, st.integers(1, 8))
def test_the_nearest_contacts_are_those_of_the_whole_table(own, ids, removed, target, k):
    table = Table(contact(own), k)
    contacts = [contact(number, port) for port, number in enumerate(ids, 1)]
    for one in contacts:
        table.add_contact(one)
    for i in removed:
        if i < len(contacts):
            table.remove_contact(contacts[i])
    everybody = [one for bucket in table.buckets for one in bucket.nodes.values()]
    truth = sorted(everybody, key=lambda one: one.long_id ^ target)
    assert table.find_neighbors(target, k) == truth[:k]
    excluded = truth[0] if truth else None
    assert table.find_neighbors(contact(target), 2 * k, exclude=excluded) == truth[1 : 2 * k + 1]


@given(IDS, st.lists(IDS, max_size=60), st.integers(1, 4))
def test_buckets_hold_their_own_ids_and_cover_the_space(own, ids, k):
    table = Table(contact(own), k)
    for port, number in enumerate(ids, 1):
        table.add_contact(contact(number, port))
    bounds = [bucket.range for bucket in table.buckets]
    assert bounds[0][0] == 0
    assert bounds[-1][1] == 2**160 - 1
    assert all(one[1] + 1 == other[0] for one, other in pairwise(bounds))
    for bucket in table.buckets:
        assert len(bucket.nodes) <= k
        assert all(bucket.range[0] <= one.long_id <= bucket.range[1] for one in bucket.nodes.values())


def test_random_tables_of_many_contacts_find_the_nearest():
    rng = random.Random(1)
    table = Table(contact(rng.getrandbits(160)), 20)
    for port in range(1, 1001):
        table.add_contact(contact(rng.getrandbits(160), port))
    everybody = [one for bucket in table.buckets for one in bucket.nodes.values()]
    for _ in range(200):
        target = rng.getrandbits(160)
        assert table.find_neighbors(target) == sorted(everybody, key=lambda one: one.long_id ^ target)[:20]


def test_the_own_id_is_never_a_contact():
    table = Table(contact(5), 4)
    table.add_contact(contact(5, 99))
    assert list(table.contacts()) == []


def test_an_address_is_one_contact_and_an_id_has_one_address():
    table = Table(contact(0), 4)
    table.add_contact(contact(1, 10))
    table.add_contact(contact(2, 10))
    assert list(table.contacts()) == [contact(2, 10)]
    table.add_contact(contact(2, 11))
    assert list(table.contacts()) == [contact(2, 11)]


def test_a_contact_that_moved_is_not_dropped_for_its_former_address():
    table = Table(contact(0), 4)
    table.add_contact(contact(2, 11))
    table.remove_contact(contact(2, 10))
    assert list(table.contacts()) == [contact(2, 11)]


def test_a_full_bucket_lets_newcomers_wait_and_names_whom_to_doubt():
    table = Table(contact(0), 2)
    rng = random.Random(1)
    far = [contact(MIDDLE + rng.getrandbits(159), port) for port in range(1, 60)]
    doubts = [table.add_contact(one) for one in far]
    doubted = next(one for one in doubts if one is not None)
    assert table.contains(doubted)
    waiting = next(one for one in far if one not in table.find_neighbors(0, 1000))
    assert table.contains(waiting)
    bucket = table.buckets[table.get_bucket_for(waiting)]
    table.remove_contact(bucket.head())
    assert len(bucket.nodes) == 2


def test_contacts_are_bounded_whatever_ids_are_made_up():
    rng = random.Random(1)
    table = Table(contact(0), 4, most=100)
    for port in range(1, 3001):
        table.add_contact(contact(rng.getrandbits(rng.randrange(1, 161)), port))
    assert sum(1 for _ in table.contacts()) <= 100


def test_refreshing_looks_into_every_bucket():
    rng = random.Random(1)
    table = Table(contact(0), 2)
    for port in range(1, 50):
        table.add_contact(contact(rng.getrandbits(160), port))
    ids = table.refresh_ids(rng)
    assert len(ids) == len(table.buckets) > 3
    assert all(bucket.range[0] <= one <= bucket.range[1] for one, bucket in zip(ids, table.buckets, strict=True))

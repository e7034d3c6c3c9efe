"""A store keeps the newest valid records within its bounds, and evicts nobody."""

from functools import partial

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from overlay.dht import StoreLimits
from overlay.dht.record_store import RecordStore, Verdict
from overlay.dht.records import encode_record, make_chunk
from tests.overlay.dht import network

NOW = 1_700_000_000.0
make_record = partial(network.make_record, now=NOW)


def store_of(**limits):
    return RecordStore(network.verify, StoreLimits(**limits))


def offer(store, record, now=NOW):
    return store.offer(encode_record(record), now=now)


def held(store, record, now=NOW):
    found = store.find(record.key, now=now)
    return found and found.record


def test_a_newer_version_replaces_an_older_one_and_never_the_reverse():
    store = store_of()
    old, new = make_record(revision=1), make_record(revision=2)
    assert offer(store, old) is Verdict.KEPT
    assert offer(store, new) is Verdict.KEPT
    assert offer(store, old) is Verdict.OLDER
    assert held(store, old) == new
    assert store.records == 1
    assert store.size_bytes == len(encode_record(new))


def test_of_equal_versions_the_first_is_kept():
    store = store_of()
    first, second = make_record(payload=b"first"), make_record(payload=b"second")
    assert [offer(store, first), offer(store, second), offer(store, first)] == [
        Verdict.KEPT,
        Verdict.OLDER,
        Verdict.SAME,
    ]
    assert held(store, first) == first


def test_a_forged_record_is_refused_and_does_not_displace_a_true_one():
    store = store_of()
    true = make_record(revision=1)
    forged = msgspec.structs.replace(make_record(revision=2), payload=b"forged")
    assert offer(store, forged) is Verdict.INVALID
    offer(store, true)
    assert offer(store, forged) is Verdict.INVALID
    assert held(store, true) == true
    assert store.offer(b"no record", now=NOW) is Verdict.INVALID


def test_expired_records_are_neither_taken_nor_found():
    store = store_of()
    record = make_record(life_s=100)
    assert offer(store, record, NOW + 101) is Verdict.EXPIRED
    assert offer(store, record) is Verdict.KEPT
    assert held(store, record, NOW + 101) is None
    store.expire(NOW + 101)
    assert (store.records, store.size_bytes, store.keys()) == (0, 0, [])


def test_an_older_version_comes_in_after_the_newer_expired():
    store = store_of()
    offer(store, make_record(revision=2, life_s=50))
    assert offer(store, make_record(revision=1, life_s=500), NOW + 60) is Verdict.KEPT


def test_a_record_that_claims_to_live_for_ever_is_refused():
    assert offer(store_of(longest_life_s=1000), make_record(life_s=2000)) is Verdict.INVALID


def test_a_full_store_refuses_newcomers_and_keeps_what_it_has():
    store = store_of(records=3)
    records = [make_record(f"{i}") for i in range(5)]
    assert [offer(store, record) for record in records] == [Verdict.KEPT] * 3 + [Verdict.FULL] * 2
    assert [held(store, record) for record in records[:3]] == records[:3]
    assert offer(store, make_record("0", revision=2)) is Verdict.KEPT  # a newer version takes no more room


def test_expired_records_make_way():
    store = store_of(records=1)
    offer(store, make_record("old", life_s=10))
    assert offer(store, make_record("new")) is Verdict.FULL
    assert offer(store, make_record("new"), NOW + 11) is Verdict.KEPT


def test_no_kind_crowds_out_the_others():
    store = store_of(each_kind=2, per_kind={"zone": 1})
    offers = [offer(store, make_record(f"{i}", kind=kind)) for kind in ("site", "zone") for i in range(3)]
    assert [verdict is Verdict.KEPT for verdict in offers] == [True, True, False, True, False, False]


def test_bytes_are_bounded():
    store = store_of(bytes=3000)
    verdicts = [offer(store, make_record(f"{i}", payload=bytes(900))) for i in range(5)]
    assert (
        verdicts == [Verdict.KEPT] * 3 + [Verdict.FULL] * 2 or verdicts == [Verdict.KEPT] * 2 + [Verdict.FULL] * 3
    )
    assert store.size_bytes <= 3000
    assert offer(store, make_record("0", revision=2, payload=bytes(1000))) in (Verdict.KEPT, Verdict.FULL)
    assert store.size_bytes <= 3000


def test_storing_a_chunk_again_lengthens_its_life_and_never_shortens_it():
    store = store_of()
    short, long = make_chunk(b"piece", int(NOW) + 100), make_chunk(b"piece", int(NOW) + 200)
    assert [offer(store, short), offer(store, long), offer(store, short)] == [
        Verdict.KEPT,
        Verdict.KEPT,
        Verdict.OLDER,
    ]
    assert held(store, short) == long


def test_records_that_nobody_stored_lately_are_listed():
    store = store_of()
    one, other = make_record("one"), make_record("other")
    offer(store, one, NOW)
    offer(store, other, NOW)
    offer(store, other, NOW + 50)
    assert [held.record for held in store.not_heard_since(NOW + 20, now=NOW + 60)] == [one]


def test_many_versions_of_one_record_leave_nothing_behind():
    store = store_of()
    for revision in range(1, 1000):
        offer(store, make_record(revision=revision))
    assert len(store._expiry) < 100
    assert store.records == 1


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.integers(1, 9), st.integers(0, 3)), max_size=60
    )
)
def test_a_store_agrees_with_recounting_after_every_step(steps):
    store, now, truth = store_of(records=2), NOW, {}
    for name, revision, life_s, pause_s in steps:
        now += pause_s
        record = make_record(name, revision, life_s=life_s + int(now - NOW))
        truth = {key: record for key, record in truth.items() if now < record.expires_at}
        old = truth.get(name)
        if now < record.expires_at and (record.version > old.version if old else len(truth) < 2):
            truth[name] = record
        offer(store, record, now)
        assert {name: held(store, make_record(name), now) for name in truth} == truth
        keys = store.keys()
        assert sum(store.find(key, now=now) is not None for key in keys) == len(truth)
        assert store.size_bytes == sum(len(store._held[key].encoded) for key in keys)

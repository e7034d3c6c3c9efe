"""A peer's results: exactly once, in order, with a frontier that only grows, cursors, and what is dropped."""

import pytest

from peer.storage import (
    Begin,
    Cursor,
    Drain,
    DropCursor,
    End,
    Entry,
    Frontier,
    Install,
    Kind,
    LocalFrontierWentBack,
    LocalMisuse,
    RemoteStaleGeneration,
    ResultLimits,
    Results,
    ResultStore,
    State,
    Version,
)
from peer.storage.result_trimming import _OLDEST, _OLDEST_READ

EVERYTHING = 1 << 40
CHARGED = 64


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(tmp_path, clock):
    limits = ResultLimits(kept_bytes=3 * CHARGED, kept_age_s=100, hard_bytes=5 * CHARGED)
    with ResultStore.open(tmp_path / "results.db", limits=limits, clock=clock) as store:
        store.commit([begin()])
        yield store


def begin(name="s", start=10, generation=1):
    return Begin(name, "//a", b"columns", start, generation)


def batch(number, data=b""):
    return Entry(number, Kind.BATCH, "", data)


def gap(after, number):
    return Entry(number, Kind.GAP, after=after)


def results(*entries, upto=None, generation=1, name="s"):
    return Results(name, entries, Frontier(generation, entries[-1].number if upto is None else upto))


def numbers(store, after=0, upto=99, name="s"):
    return [entry.number for entry in store.entries(name, after, upto, EVERYTHING)]


def test_a_subscription_begins_complete_up_to_its_start(store):
    [hosted] = store.subscriptions()
    assert hosted == store.hosted("s")
    assert (hosted.id, hosted.pattern, hosted.columns, hosted.state) == ("s", "//a", b"columns", State.LIVE)
    assert (hosted.frontier, hosted.lowest, hosted.version) == (Frontier(1, 10), 10, None)
    assert store.entries("s", 0, 99, EVERYTHING) == []


def test_what_is_not_hosted_has_nothing_and_takes_nothing(store):
    assert store.hosted("t") is store.frontier("t") is store.lowest("t") is store.cursor("t", "c") is None
    assert store.entries("t", 0, 99, EVERYTHING) == []
    for change in (
        results(batch(11), name="t"),
        End("t"),
        Cursor("t", "c", 1),
        Install("t", Version(1, 1, 1), b""),
    ):
        with pytest.raises(LocalMisuse, match="subscription t is not hosted here"):
            store.commit([change])


def test_beginning_again_changes_nothing_and_beginning_otherwise_is_misuse(store):
    store.commit([results(batch(11)), begin(), begin(generation=2)])
    assert store.frontier("s") == Frontier(1, 11)
    with pytest.raises(LocalMisuse):
        store.commit([begin(start=9)])


def test_entries_come_back_in_order_as_they_were(store):
    given = [batch(11, b"\0"), Entry(12, Kind.ERROR, "d\u00e9", b"why"), gap(13, 20)]
    store.commit([results(*given, upto=25)])
    assert store.entries("s", 0, 99, EVERYTHING) == given
    assert store.frontier("s") == Frontier(1, 25)


def test_an_entry_is_stored_once_however_often_it_comes(store):
    store.commit([results(batch(11, b"a"), batch(12, b"b"))])
    store.commit([results(batch(11, b"x"), batch(12, b"x"), batch(13, b"c")), results(batch(13, b"x"))])
    assert [entry.data for entry in store.entries("s", 0, 99, EVERYTHING)] == [b"a", b"b", b"c"]


def test_a_gap_is_stored_for_what_is_not_complete_yet(store):
    store.commit([results(batch(12))])
    store.commit([results(gap(10, 15))])
    assert store.entries("s", 0, 99, EVERYTHING) == [batch(12), gap(12, 15)]


def test_a_gap_is_cut_to_what_is_asked_for(store):
    store.commit([results(gap(10, 20), batch(25))])
    assert store.entries("s", 12, 18, EVERYTHING) == [gap(12, 18)]
    assert store.entries("s", 20, 24, EVERYTHING) == []
    assert store.entries("s", 19, 25, EVERYTHING) == [gap(19, 20), batch(25)]
    assert store.entries("s", 15, 15, EVERYTHING) == store.entries("s", 15, 12, EVERYTHING) == []


def test_a_frontier_that_goes_back_is_refused_with_all_that_came_along(store):
    store.commit([results(batch(15))])
    with pytest.raises(LocalFrontierWentBack, match="s is complete up to 15; it cannot go back to 14"):
        store.commit([begin("t"), results(batch(14))])
    assert store.hosted("t") is None


def test_an_older_generation_is_refused_and_a_newer_one_numbers_on(store):
    store.commit([results(batch(15), generation=2)])
    with pytest.raises(RemoteStaleGeneration, match="follows generation 2 of the log, not 1"):
        store.commit([results(batch(16))])
    with pytest.raises(LocalFrontierWentBack):
        store.commit([results(batch(11), generation=3)])
    store.commit([results(batch(16), generation=3)])
    assert (numbers(store), store.frontier("s")) == ([15, 16], Frontier(3, 16))


@pytest.mark.parametrize(
    "make",
    [
        lambda: results(batch(12), batch(12)),
        lambda: results(batch(12), batch(11), upto=20),
        lambda: results(batch(12), gap(11, 15)),
        lambda: results(batch(12), upto=11),
        lambda: results(Entry(12, Kind.TRIMMED, after=3)),
        lambda: gap(5, 5),
        lambda: Entry(5, Kind.GAP),
        lambda: Entry(5, Kind.BATCH, after=4),
        lambda: ResultLimits(kept_bytes=2, hard_bytes=1),
    ],
)
def test_a_value_that_makes_no_sense_cannot_be_made(make):
    with pytest.raises(LocalMisuse):
        make()


def test_reading_hands_out_what_fits_and_at_least_one(store):
    store.commit([results(*(batch(n, b"x" * 36) for n in (11, 12, 13)))])
    assert [e.number for e in store.entries("s", 0, 99, 200)] == [11, 12]
    assert [e.number for e in store.entries("s", 11, 99, 0)] == [12]


def test_an_older_configuration_never_replaces_a_newer_one(store):
    for version in (Version(1, 2, 1), Version(1, 1, 5), Version(1, 2, 1), Version(1, 2, 0)):
        store.commit([Install("s", version, str(version).encode())])
    assert store.hosted("s").version == Version(1, 2, 1)
    store.commit([Install("s", Version(2, 0, 0), b"restored")])
    assert (store.hosted("s").version, store.hosted("s").configuration) == (Version(2, 0, 0), b"restored")


def test_a_draining_subscription_stores_up_to_its_end_and_no_further(store):
    store.commit([results(batch(11)), Drain("s", 15), Drain("s", 99)])
    store.commit([results(batch(14), gap(14, 17), batch(18))])
    assert store.entries("s", 0, 99, EVERYTHING) == [batch(11), batch(14), gap(14, 15)]
    assert (store.frontier("s").upto, store.hosted("s").state) == (15, State.DRAINING)


def test_a_gap_across_the_end_of_an_ended_subscription_leaves_nothing(store):
    store.commit([results(batch(15)), End("s"), results(gap(12, 20))])
    assert (numbers(store), store.held_bytes) == ([15], CHARGED)


def test_a_subscription_already_beyond_its_end_keeps_what_it_has(store):
    store.commit([results(batch(11), batch(14)), Drain("s", 12), results(batch(15))])
    assert (numbers(store), store.frontier("s").upto, store.hosted("s").end) == ([11, 14], 14, 12)


def test_an_ended_subscription_takes_no_more_and_cannot_begin_again(store):
    store.commit([results(batch(11)), Drain("s", 15), End("s"), End("s"), results(batch(12))])
    assert (numbers(store), store.hosted("s").state, store.hosted("s").end) == ([11], State.ENDED, 11)
    with pytest.raises(LocalMisuse):
        store.commit([begin()])


def test_a_cursor_only_goes_forward_and_never_beyond_the_frontier(store):
    store.commit([results(batch(20)), Cursor("s", "c", 15), Cursor("s", "c", 12), Cursor("s", "d", 10)])
    assert store.cursors("s") == {"c": 15, "d": 10}
    assert store.cursor("s", "c") == 15
    with pytest.raises(LocalMisuse, match="beyond the frontier 20"):
        store.commit([Cursor("s", "c", 21)])
    store.commit([DropCursor("s", "c")])
    assert store.cursor("s", "c") is None


def test_the_oldest_results_of_all_subscriptions_go_first(store, clock):
    store.commit([begin("t"), results(batch(11)), results(batch(11), name="t"), results(batch(12), batch(13))])
    assert store.trim(clock.now) == {"s": 11}
    assert store.lowest("s") == 11
    assert store.held_bytes == 3 * CHARGED
    assert store.entries("s", 0, 99, EVERYTHING) == [Entry(11, Kind.TRIMMED, after=10), batch(12), batch(13)]
    assert store.entries("s", 11, 99, EVERYTHING) == [batch(12), batch(13)]


def test_results_beyond_the_age_go(store, clock):
    store.commit([results(batch(11))])
    clock.now += 60
    store.commit([results(batch(12))])
    assert (store.trim(1099), store.trim(1100), store.trim(1159)) == ({}, {"s": 11}, {})
    assert store.trim(1160) == {"s": 12}
    assert store.held_bytes == 0


def test_what_a_cursor_has_yet_to_read_stays(store, clock):
    store.commit([begin("t")])
    store.commit([results(batch(11), batch(12)), Cursor("s", "slow", 11), Cursor("s", "fast", 12)])
    store.commit([results(batch(11), batch(12), name="t")])
    assert store.trim(5000) == {"s": 11, "t": 12}
    assert numbers(store, 11) == [12]


def test_beyond_the_hard_limit_a_reader_loses_what_it_has_not_read_and_is_told(store, clock):
    store.commit([Cursor("s", "slow", 10), results(*(batch(n) for n in range(11, 19)))])
    assert store.trim(clock.now) == {"s": 13}
    assert store.cursor("s", "slow") < store.lowest("s")
    first, *rest = store.entries("s", store.cursor("s", "slow"), 99, EVERYTHING)
    assert first == Entry(13, Kind.TRIMMED, after=10)
    assert [entry.number for entry in rest] == [14, 15, 16, 17, 18]


def test_an_ended_subscription_is_forgotten_when_nothing_of_it_is_left(store, clock):
    store.commit([results(batch(11)), Cursor("s", "c", 11), End("s")])
    store.trim(1099)
    assert store.hosted("s") is not None
    store.trim(1100)
    assert store.subscriptions() == []
    store.commit([begin()])
    assert store.cursors("s") == {}


def test_a_trim_longer_than_one_transaction_goes_to_its_end(store, monkeypatch):
    monkeypatch.setattr("peer.storage.result_trimming.TRIMMED_AT_ONCE", 2)
    monkeypatch.setattr("peer.storage.result_store.TRIMMED_AT_ONCE", 2)
    store.commit([Cursor("s", "slow", 10), results(*(batch(n) for n in range(11, 31)))])
    assert store.trim(1000) == {"s": 25}
    store.commit([DropCursor("s", "slow")])
    assert store.trim(5000) == {"s": 30}


def test_trimming_looks_at_no_page_with_data(store):
    with store._database.reading() as connection:
        for query in (_OLDEST, _OLDEST_READ):
            plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query} ORDER BY seq"))
            assert "r USING COVERING INDEX results_in_order" in plan
            assert "USE TEMP B-TREE FOR ORDER BY" not in plan

"""References: stored with the document that they mean, read as that, and dropped together with it, never before a
reader who has yet to read them."""

import random

import pytest

from peer.storage import (
    Begin,
    Cursor,
    End,
    Entry,
    Frontier,
    Kind,
    LocalMisuse,
    ResultLimits,
    Results,
    ResultStore,
    State,
    Together,
)

EVERYTHING = 1 << 40
CHARGED = 64
BODY = b"d" * (2 * CHARGED)


def opened(path, kept=1 << 20, hard=1 << 30):
    limits = ResultLimits(kept_bytes=kept, kept_age_s=100, hard_bytes=hard)
    return ResultStore.open(path / "results.db", limits=limits, clock=lambda: 1000.0)


def begin(*names):
    return [Begin(name, "//a", b"columns", 0, 1) for name in names]


def document(number, body=BODY):
    return Results("r", [Entry(number, Kind.BATCH, f"d{number}", body)], Frontier(1, number))


def refers(name, number):
    return Results(name, [Entry(number, Kind.REFERENCE, data=b"r")], Frontier(1, number))


def read(store, name, most=EVERYTHING):
    return [(entry.number, entry.kind, entry.name, entry.data) for entry in store.entries(name, 0, 99, most)]


def test_a_reference_is_read_as_the_document_and_costs_a_row(tmp_path):
    with opened(tmp_path) as store:
        store.commit([*begin("r", "s", "t"), document(1), refers("s", 1)])
        store.commit([refers("t", 1)])
        assert read(store, "s") == read(store, "t") == [(1, Kind.REFERENCE, "d1", BODY)]
        assert store.held_bytes == len(BODY) + 2 + 3 * CHARGED


def test_a_long_reading_counts_the_documents(tmp_path):
    with opened(tmp_path) as store:
        store.commit([*begin("r", "s"), *(change for n in (1, 2, 3) for change in (document(n), refers("s", n)))])
        assert [number for number, *_ in read(store, "s", 2 * (len(BODY) + CHARGED + 2))] == [1, 2]


@pytest.mark.parametrize("what", [[], [document(2)], [Results("r", [Entry(1, Kind.ERROR)], Frontier(1, 1))]])
def test_what_is_not_there_cannot_be_referred_to(tmp_path, what):
    with opened(tmp_path) as store:
        store.commit([*begin("r", "s"), *what])
        with pytest.raises(LocalMisuse, match="r has no such document"):
            store.commit([refers("s", 1)])
        assert (read(store, "s"), store.frontier("s")) == ([], Frontier(1, 0))


def test_a_document_goes_with_all_that_refers_to_it(tmp_path):
    with opened(tmp_path, kept=0) as store:
        store.commit([*begin("r", "s", "t"), document(1), refers("s", 1), document(2), refers("t", 2)])
        assert store.trim(1000.0) == {"r": 2, "s": 1, "t": 2}
        assert (store.held_bytes, read(store, "r"), read(store, "s")[0][1]) == (0, read(store, "r"), Kind.TRIMMED)


def test_what_a_reader_has_yet_to_read_keeps_the_document_up_to_the_hard_limit(tmp_path):
    with opened(tmp_path, kept=0, hard=EVERYTHING) as store:
        store.commit([*begin("r", "s", "t"), document(1), refers("s", 1), refers("t", 1)])
        store.commit([document(2), refers("s", 2), Cursor("s", "c", 0)])
        store.trim(1000.0)
        assert [kind for _, kind, *_ in read(store, "s")] == [Kind.REFERENCE] * 2
        store.commit([Cursor("s", "c", 1)])
        store.trim(1000.0)
        assert [(number, kind) for number, kind, *_ in read(store, "s")] == [
            (1, Kind.TRIMMED),
            (2, Kind.REFERENCE),
        ]
    with opened(tmp_path, kept=0, hard=0) as store:
        assert store.trim(1000.0) == {"r": 2, "s": 2}
        assert store.held_bytes == 0


def test_references_outlive_the_end_of_who_has_the_document(tmp_path):
    with opened(tmp_path) as store:
        store.commit([*begin("r", "s"), document(1), refers("s", 1), End("r")])
        store.trim(1099.0)
        assert read(store, "s") == [(1, Kind.REFERENCE, "d1", BODY)]
        store.trim(2000.0)
        assert [one.state for one in store.subscriptions()] == [State.LIVE]  # the other is forgotten
        assert [kind for _, kind, *_ in read(store, "s")] == [Kind.TRIMMED]


@pytest.mark.parametrize("seed", range(40))
def test_after_any_trimming_everything_above_lowest_can_be_read_and_the_bytes_are_right(tmp_path, seed):
    rng = random.Random(seed)
    names = ["s", "t", "u"]
    with opened(tmp_path, kept=rng.randrange(3000), hard=rng.randrange(3000, 6000)) as store:
        store.commit(begin("r", *names))
        kept = {name: [] for name in names}
        for number in range(1, 40):
            store.commit([document(number, b"d" * rng.randrange(300))])
            for name in rng.sample(names, rng.randrange(4)):
                own = rng.random() < 0.2
                plain = Results(name, [Entry(number, Kind.BATCH, "", b"own")], Frontier(1, number))
                store.commit([plain if own else refers(name, number)])
                kept[name].append((number, Kind.BATCH if own else Kind.REFERENCE))
            if rng.random() < 0.2:
                store.commit([Cursor(rng.choice(names), "c", 0)])
            if rng.random() < 0.3:
                store.trim(1000.0)
        for name in names:
            lowest = store.lowest(name)
            found = [(n, kind) for n, kind, *_ in read(store, name) if kind is not Kind.TRIMMED]
            assert found == [one for one in kept[name] if one[0] > lowest]
        with store._database.reading() as connection:
            assert connection.execute("SELECT coalesce(sum(size), 0) FROM results").fetchone() == (
                store.held_bytes,
            )
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_what_is_stored_together_is_stored_all_or_not_at_all(tmp_path):
    with opened(tmp_path) as store:
        store.commit(begin("r", "s", "t"))
        with pytest.raises(LocalMisuse, match="u is not hosted"):
            store.commit([Together([document(1), refers("s", 1), refers("u", 1)])])
        assert (read(store, "r"), read(store, "s")) == ([], [])
        store.commit([Together([document(1), refers("s", 1), refers("t", 1)])])
        assert read(store, "s") == read(store, "t") == [(1, Kind.REFERENCE, "d1", BODY)]

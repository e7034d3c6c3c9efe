"""A commit of many changes, in which rows and frontiers are gathered, leaves what one commit each would leave."""

import random

import pytest

from peer.storage import (
    Begin,
    Cursor,
    Drain,
    End,
    Entry,
    Frontier,
    Kind,
    LocalFrontierWentBack,
    Results,
    ResultStore,
    Together,
)

NAMES = ["r", "s", "t", "u"]
TABLES = ("hosted", "frontiers", "results", "cursors", "totals")


def drawn(rng):
    """Return changes that a peer could make: documents and references together, ends, cursors, late beginners."""
    changes = [Begin(name, "//a", b"", 0, 1) for name in NAMES[:3]]
    upto = dict.fromkeys(NAMES[:3], 0)
    generation, withdrawn = 1, set()
    for number in range(1, 30):
        if rng.random() < 0.1:
            generation += 1
        parts = [Results("r", [Entry(number, Kind.BATCH, f"d{number}", b"x")], Frontier(generation, number))]
        for name in rng.sample(NAMES[1:3], rng.randrange(3)):
            kind = rng.choice([Kind.REFERENCE, Kind.BATCH, Kind.ERROR])
            entries = [Entry(number, kind, data=b"r")] if rng.random() < 0.8 else []
            parts.append(Results(name, entries, Frontier(generation, number)))
            upto[name] = number
        changes += [Together(parts)] if rng.random() < 0.7 else parts
        if rng.random() < 0.2:
            name = rng.choice(NAMES[1:3])
            ending = rng.choice([Drain(name, number + 1), End(name)])
            changes.append(rng.choice([Cursor(name, "c", 0 if name in withdrawn else upto[name]), ending]))
            withdrawn |= {name} if changes[-1] is ending else set()
        if rng.random() < 0.1:
            changes.append(Begin("u", "//a", b"", 0, 1))
    return changes


def rows(store):
    with store._database.reading() as connection:
        return {table: connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in TABLES}


def opened(path):
    return ResultStore.open(path, clock=lambda: 1000.0)


@pytest.mark.parametrize("seed", range(60))
def test_together_is_as_one_by_one(tmp_path, seed):
    rng = random.Random(seed)
    changes = drawn(rng)
    groups, left = [], changes
    while left:
        some = rng.randrange(1, 12)
        groups.append(left[:some])
        left = left[some:]
    with opened(tmp_path / "one") as one, opened(tmp_path / "all") as several:
        for change in changes:
            one.commit([change])
        for group in groups:
            several.commit(group)
        assert rows(one) == rows(several)


def test_a_frontier_does_not_go_back_within_a_commit(tmp_path):
    with opened(tmp_path / "store") as store:
        store.commit([Begin("s", "//a", b"", 0, 1)])
        steps = [Results("s", [], Frontier(1, upto)) for upto in (7, 6)]
        with pytest.raises(LocalFrontierWentBack):
            store.commit([Together(steps)])
        assert store.frontier("s") == Frontier(1, 0)


def test_who_ends_within_a_commit_takes_nothing_after_it(tmp_path):
    with opened(tmp_path / "store") as store:
        entry = Entry(3, Kind.BATCH, "d", b"x")
        store.commit([
            Begin("s", "//a", b"", 0, 1), Drain("s", 2), Results("s", [entry], Frontier(1, 3)), End("s"),
            Results("s", [], Frontier(1, 9)),
        ])  # fmt: skip
        assert (store.frontier("s").upto, store.entries("s", 0, 99, 1 << 20)) == (2, [])

"""Those who keep step with a relay are stored with its documents, and read as if each had rows of its own."""

import random
import sqlite3
from itertools import pairwise

import pytest

from peer.storage import (
    Begin,
    Cursor,
    Drain,
    End,
    Entry,
    Followers,
    Frontier,
    Kind,
    LocalMisuse,
    RemoteStaleGeneration,
    ResultLimits,
    Results,
    ResultStore,
    State,
    Together,
)
from peer.storage.database import Database, Schema
from peer.storage.result_schema import RESULT_SCHEMA

EVERYTHING = 1 << 40
RELAYS = ["r", "q"]
OTHERS = ["s", "t", "u", "v"]


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def opened(path, clock=None):
    limits = ResultLimits(kept_bytes=EVERYTHING, kept_age_s=10, hard_bytes=EVERYTHING)
    return ResultStore.open(path, limits=limits, clock=clock or Clock())


def document(number, relay="r", generation=1):
    return Results(relay, [Entry(number, Kind.BATCH, f"d{number}", b"x" * 50)], Frontier(generation, number))


def step(number, matched, relay="r"):
    """A document, and who has results of it."""
    return Together([document(number, relay)], Followers(tuple(matched), [bytes(matched.values())]))


def apart(change):
    """The same without followers: everybody has rows of its own."""
    if not isinstance(change, Together) or change.followers is None:
        return change
    relay, *others = change.parts
    data = relay.subscription.encode()
    own = [
        Results(
            name,
            [
                Entry(entry.number, Kind.REFERENCE, data=data)
                for entry, matched in zip(relay.entries, change.followers.matched, strict=True)
                if matched[place]
            ],
            relay.frontier,
        )
        for place, name in enumerate(change.followers.names)
    ]
    return Together([relay, *own, *others])


def compare(one, other):
    """Everybody has the same; only, what was followed stays as long as the document, whoever keeps that."""
    for wanted in other.subscriptions():
        found = one.hosted(wanted.id)
        assert (found.state, found.end, found.frontier) == (wanted.state, wanted.end, wanted.frontier)
        assert found.lowest <= wanted.lowest
        got, right = (store.entries(wanted.id, wanted.lowest, 999, EVERYTHING) for store in (one, other))
        assert got == right


def drawn(rng):
    """Return what happens on a machine: documents with those who are in step, others on their own, comings, ends,
    cursors, new generations, and documents that come again."""
    at = dict.fromkeys(["r", "s", "t"], 0)
    changes = [Begin(name, "//a", b"", 0, 1) for name in at]
    generation, gone, withdrawn, relay, names = 1, set(), set(), "r", ()
    for number in range(1, 50):
        generation += rng.random() < 0.05
        if relay == "r" and rng.random() < 0.03:
            relay = "q"
            at["q"] = at["r"]
            changes += [rng.choice([Drain("r", at["r"]), End("r")]), Begin("q", "//a", b"", at["r"], 1)]
        elif rng.random() < 0.1 and (left := [name for name in OTHERS if name not in at]):
            name = left[0]
            at[name] = at[relay]
            changes.append(Begin(name, "//a", b"", at[relay], 1))
        others = [name for name in at if name not in RELAYS and name not in gone]
        near = [name for name in others if at[name] == at[relay] and rng.random() < 0.97]
        count = rng.choice([1, 1, 1, 2])
        entries = [
            Entry(number * 10 + i, Kind.BATCH, f"d{number}{i}", b"x" * rng.randrange(90)) for i in range(count)
        ]
        upto = entries[-1].number + rng.randrange(3)
        if set(near) != set(names) or rng.random() < 0.2:
            rng.shuffle(near)
            names = tuple(near)  # else the same go on, as they did before
        matched = [bytes(rng.random() < 0.6 for _ in names) for _ in entries]
        alone = [name for name in others if name not in near and rng.random() < 0.5]
        own = [
            Results(
                name, [Entry(upto, rng.choice([Kind.BATCH, Kind.ERROR]), "n", b"own")], Frontier(generation, upto)
            )
            for name in alone
        ]
        results = Results(relay, entries, Frontier(generation, upto))
        changes.append(Together([results, *own], Followers(names, matched)))
        at |= dict.fromkeys([relay, *near, *alone], upto)
        if rng.random() < 0.05:
            changes.append(changes[-1])  # it comes again
        if rng.random() < 0.1 and near:
            at[near[0]] = upto + 4
            changes.append(Results(near[0], [Entry(upto + 4, Kind.ERROR)], Frontier(generation, upto + 4)))
        what = rng.random()
        if what < 0.15 and others:
            name = rng.choice(others)
            changes.append(rng.choice([Drain(name, at[name]), Drain(name, at[name] + 5), End(name)]))
            withdrawn.add(name)
            if isinstance(changes[-1], End) or rng.random() < 0.5:  # else what is under way still comes
                gone.add(name)
        elif what < 0.2 and near:
            changes.append(Results(near[0], [], Frontier(generation, at[near[0]])))  # it leaves, and stays
        elif what < 0.3:
            name = rng.choice([*others, relay])
            changes.append(Cursor(name, "c", rng.choice([0, 0 if name in withdrawn else at[name]])))
        elif what < 0.35:
            at[relay] += 3
            changes.append(Results(relay, [], Frontier(generation, at[relay])))  # without its followers
    return changes


@pytest.mark.parametrize("seed", range(120))
def test_whoever_follows_has_what_it_would_have_alone(tmp_path, seed):
    rng = random.Random(seed)
    changes, clock = drawn(rng), Clock()
    one, other = opened(tmp_path / "one", clock), opened(tmp_path / "other", clock)
    has_cursors = any(isinstance(change, Cursor) for change in changes)
    while changes:
        some = changes[: rng.randrange(1, 8)]
        changes = changes[len(some) :]
        if rng.random() < 0.2:
            with pytest.raises(LocalMisuse):
                one.commit([*some, Cursor("nobody", "c", 0)])
        one.commit(some)
        other.commit([apart(change) for change in some])
        clock.now += rng.random() * 3
        if rng.random() < 0.2:
            gone, right = one.trim(clock.now), other.trim(clock.now)
            assert gone == right or has_cursors
        if rng.random() < 0.1:
            one.close()
            one = opened(tmp_path / "one", clock)
        compare(one, other)
        with one._database.reading() as connection:
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
            sizes = connection.execute("SELECT coalesce(sum(size), 0) FROM results").fetchone()
            assert sizes == (one.held_bytes,)
    one.close()
    other.close()


def test_in_most_draws_the_same_follow_on():
    lasting = 0
    for seed in range(120):
        steps = [change.followers for change in drawn(random.Random(seed)) if isinstance(change, Together)]
        lasting += any(one.names is other.names and any(map(any, other.matched)) for one, other in pairwise(steps))
    assert lasting > 100


def test_where_the_same_follow_on_nothing_is_read(tmp_path):
    with opened(tmp_path / "store") as store:
        names = ("s", "t")
        store.commit([Begin(name, "//a", b"", 0, 1) for name in ("r", *names)])
        asked = []
        store._database._writer.set_trace_callback(asked.append)
        reads = []
        for number in range(1, 5):
            asked.clear()
            store.commit([Together([document(number)], Followers(names, [bytes([1, number % 2])]))])
            reads.append(sum(statement.lstrip().startswith("SELECT") for statement in asked))
        assert reads[0] > 0
        assert reads[1:] == [0, 0, 0]
        store.commit([Cursor("t", "c", 4)])
        assert [one.number for one in store.entries("t", 0, 9, EVERYTHING)] == [1, 3]


def test_a_document_takes_the_same_rows_for_many_as_for_one(tmp_path):
    with opened(tmp_path / "store") as store:
        names = [f"s{i}" for i in range(300)]
        store.commit([Begin(name, "//a", b"", 0, 1) for name in ("r", *names)])
        store.commit([step(1, dict.fromkeys(names, 1))])
        with store._database.reading() as connection:
            before = connection.execute("SELECT * FROM frontiers WHERE hosted > 1").fetchall()
        store.commit([step(2, dict.fromkeys(names, 1))])
        with store._database.reading() as connection:
            assert connection.execute("SELECT count(*) FROM results").fetchone() == (2,)
            assert connection.execute("SELECT count(*) FROM followed").fetchone() == (2,)
            assert connection.execute("SELECT * FROM frontiers WHERE hosted > 1").fetchall() == before
        assert {store.frontier(name) for name in names} == {Frontier(1, 2)}
        assert {len(store.entries(name, 0, 9, EVERYTHING)) for name in names} == {2}


def test_a_long_reading_counts_the_documents_that_were_followed(tmp_path):
    with opened(tmp_path / "store") as store:
        store.commit([Begin(name, "//a", b"", 0, 1) for name in ("r", "s")])
        store.commit([step(number, {"s": 1}) for number in (1, 2, 3)])
        charged = 50 + len("d1") + 64 + 2  # s has the second key
        assert store.held_bytes == 3 * charged
        assert [one.number for one in store.entries("s", 0, 9, 2 * charged)] == [1, 2]
        assert [one.number for one in store.entries("s", 1, 2, EVERYTHING)] == [2]


def test_who_is_followed_may_have_followed_another(tmp_path):
    with opened(tmp_path / "store") as store:
        store.commit([Begin(name, "//a", b"", 0, 1) for name in ("q", "r", "s")])
        store.commit([step(1, {"r": 1, "s": 0}, "q")])
        store.commit([step(2, {"s": 1})])
        store.commit([Results("q", [], Frontier(1, 9))])
        assert [store.frontier(name).upto for name in ("q", "r", "s")] == [9, 2, 2]


def test_who_does_not_stand_with_the_relay_is_taken_one_by_one(tmp_path):
    with opened(tmp_path / "store") as store:
        store.commit([Begin(name, "//a", b"", 0, 1) for name in ("r", "s", "t")])
        store.commit([document(1), Results("s", [], Frontier(1, 1))])
        store.commit([step(2, {"s": 1, "t": 1})])  # t has not had 1
        assert [one.number for one in store.entries("t", 0, 9, EVERYTHING)] == [2]
        with store._database.reading() as connection:
            assert connection.execute("SELECT count(*) FROM followed").fetchone() == (0,)
        with pytest.raises(RemoteStaleGeneration):
            store.commit([step(3, {"s": 1}), Results("s", [], Frontier(0, 4))])
        assert store.frontier("s") == Frontier(1, 2)


def test_the_relay_may_end_and_be_forgotten_and_who_followed_stays(tmp_path):
    clock = Clock()
    with opened(tmp_path / "store", clock) as store:
        store.commit([Begin(name, "//a", b"", 0, 1) for name in ("r", "s")])
        store.commit([step(1, {"s": 1}), End("r")])
        clock.now += 100
        store.trim(clock.now)
        assert [(one.id, one.state, one.frontier, one.lowest) for one in store.subscriptions()] == [
            ("s", State.LIVE, Frontier(1, 1), 1)
        ]


def test_who_ended_is_kept_while_a_document_that_it_followed_is(tmp_path):
    clock = Clock()
    with opened(tmp_path / "store", clock) as store:
        store.commit([Begin(name, "//a", b"", 0, 1) for name in ("r", "s")])
        store.commit([step(1, {"s": 1}), End("s"), Cursor("r", "c", 0)])
        clock.now += 100
        store.trim(clock.now)
        assert [one.number for one in store.entries("s", 0, 9, EVERYTHING)] == [1]
        store.commit([Cursor("r", "c", 1)])
        store.trim(clock.now)
        assert [one.id for one in store.subscriptions()] == ["r"]


def test_a_cursor_of_a_follower_keeps_the_document(tmp_path):
    clock = Clock()
    with opened(tmp_path / "store", clock) as store:
        store.commit([Begin(name, "//a", b"", 0, 1) for name in ("r", "s", "t")])
        store.commit([step(1, {"s": 1, "t": 1}), step(2, {"s": 0, "t": 1}), Cursor("s", "c", 0)])
        clock.now += 100
        assert store.trim(clock.now) == {"r": 2, "t": 2}
        assert [(one.number, one.kind) for one in store.entries("s", 0, 9, EVERYTHING)] == [(1, Kind.REFERENCE)]
        store.commit([Cursor("s", "c", 2)])
        assert store.trim(clock.now) == {"r": 1, "s": 1, "t": 1}


@pytest.mark.parametrize(
    ("parts", "matched"),
    [
        ([Results("r", [Entry(1, Kind.ERROR)], Frontier(1, 1))], [b"\1"]),
        ([document(1)], []),
        ([document(1)], [b"\1\0"]),
    ],
    ids=["no document", "no answer", "too many answers"],
)
def test_what_cannot_be_followed_is_refused(parts, matched):
    with pytest.raises(LocalMisuse):
        Together(parts, Followers(("s",), matched))


def test_a_store_of_the_format_before_is_brought_over_with_all_it_has(tmp_path):
    before = Schema(RESULT_SCHEMA.what, RESULT_SCHEMA.application_id, RESULT_SCHEMA.steps[:2])
    Database(tmp_path / "store", before).close()
    with sqlite3.connect(tmp_path / "store") as connection:
        for key, name in ((1, "r"), (2, "s")):
            connection.execute(
                "INSERT INTO hosted (key, id, pattern, columns, start, state)"
                " VALUES (?, ?, '//a', x'', 0, 'live')",
                (key, name),
            )
            connection.execute("INSERT INTO frontiers VALUES (?, 1, 1, 0)", (key,))
        columns = "(hosted, number, kind, size, at, name, data, document)"
        row = f"INSERT INTO results {columns} VALUES (?, 1, ?, ?, 1, ?, ?, ?)"
        connection.execute(row, (1, Kind.BATCH, 100, "d1", b"x", None))
        connection.execute(row, (2, Kind.REFERENCE, 64, "", b"", 1))
    with opened(tmp_path / "store") as store:
        assert store.frontier("s") == Frontier(1, 1)
        store.commit([step(2, {"s": 1})])
        assert [(one.number, one.name) for one in store.entries("s", 0, 9, EVERYTHING)] == [(1, "d1"), (2, "d2")]

"""Power lost at any moment, also amid commits: the real stores hold what they told, and whole commits only."""

import random

import pytest

from peer.storage import Begin, Entry, Frontier, Kind, NewDocument, Results, ResultStore, SourceLog
from scenarios.simulation.agenda import Agenda
from scenarios.simulation.disk import Disk, torn

CRASHES = 60
EVERYTHING = 1 << 40


def commit(store, changes):
    store.commit(changes)
    return [True] * len(changes)


def log_disk(agenda, path):
    return Disk(agenda, path, SourceLog.open, lambda log, entries: log.append(entries))


def log_change(n, rng):
    return NewDocument("p", f"{n}", "n", rng.randbytes(rng.randint(0, 6000)))


def log_kept(log):
    return [(item.number, item.body) for item in log.documents(0, log.last, EVERYTHING)]


def log_entry(n, change):
    return n, change.body


def results_disk(agenda, path):
    return Disk(agenda, path, ResultStore.open, commit)


def results_change(n, rng):
    if n == 1:
        return Begin("s", "//a", b"", 1, 1)
    data = rng.randbytes(rng.randint(0, 6000))
    return Results("s", [Entry(n, Kind.BATCH, "n", data)], Frontier(1, n))


def results_kept(store):
    begun = [(1, b"")] if store.frontier("s") is not None else []
    return begun + [(entry.number, entry.data) for entry in store.entries("s", 0, 1 << 60, EVERYTHING)]


def results_entry(n, change):
    return n, b"" if isinstance(change, Begin) else change.entries[0].data


LOG = log_disk, log_change, log_kept, log_entry
RESULTS = results_disk, results_change, results_kept, results_entry


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("made", "change", "kept", "entry"), [LOG, RESULTS])
def test_after_any_power_loss_there_is_all_that_was_told_and_a_part_of_the_rest_in_order(
    tmp_path, seed, made, change, kept, entry
):
    agenda, rng, done = Agenda(seed), random.Random(seed), []
    disk = made(agenda, tmp_path / "store.db")
    disk.done = lambda one, _: done.append(one)
    store, safe = disk.start(), []
    for _ in range(CRASHES):
        done.clear()
        put = [change(len(safe) + i, rng) for i in range(1, rng.randint(2, 6))]
        for one in put:
            disk.put(one)
            agenda.run(agenda.now + rng.random() * 0.03)
        told = len(done)
        disk.crash(is_power=rng.random() < 0.8)
        agenda.run(agenda.now + 1)
        assert len(done) == told  # nobody hears of what was under way
        store = disk.start()
        found = kept(store)
        wanted = [*safe, *(entry(len(safe) + i, one) for i, one in enumerate(put, 1))]
        assert found == wanted[: len(found)]
        assert len(found) >= len(safe) + told
        with store._database.reading() as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        safe = found
    disk.close()
    assert disk.torn > CRASHES / 10
    assert len(safe) > CRASHES


def test_a_full_disk_is_told_to_who_waits_and_the_rest_is_written_when_there_is_room(tmp_path):
    agenda, rng, done = Agenda(1), random.Random(1), []
    disk = results_disk(agenda, tmp_path / "store.db")
    disk.done = lambda one, _: done.append(one)
    store = disk.start()
    disk.put(results_change(1, rng))
    agenda.run(1)
    disk.is_full = True
    for n in range(2, 30):
        disk.put(results_change(n, rng))
    agenda.run(10)
    assert "full" in disk.trouble
    assert len(done) < 29
    disk.is_full = False
    agenda.run(20)
    assert (disk.trouble, len(done), store.frontier("s").upto) == ("", 29, 29)
    disk.close()


def test_what_a_tear_leaves_is_of_what_was_and_what_should_be():
    before, after = bytes(5000), b"\x01" * 9000
    found = {torn(before, after, random.Random(seed)) for seed in range(50)}
    assert len(found) > 40
    assert {len(one) for one in found} > {9000}
    assert all(set(one) <= {0, 1} for one in found)
    assert sum(set(one) == {0, 1} for one in found) > 20
    assert torn(after, after, random.Random(1)) == after

"""What is left of a write-ahead log after a power loss: the commits before the damage, each whole."""

import random
import shutil

import pytest

from peer.storage import Begin, Entry, Frontier, Kind, NewDocument, Results, ResultStore, SourceLog

COMMITS = 40
DAMAGES = 40
EVERYTHING = 1 << 40


def log_state(log):
    return [(item.number, item.body) for item in log.documents(0, log.last, EVERYTHING)], log.extent()


def result_state(store):
    if store.frontier("s") is None:
        return None
    return store.entries("s", 0, 1 << 62, EVERYTHING), store.frontier("s"), store.held_bytes


def write_log(log, i, rng):
    log.append([NewDocument("p", f"{i}.{j}", "n", rng.randbytes(rng.randint(0, 9000))) for j in range(i % 4)])


def write_results(store, i, rng):
    if i == 0:
        store.commit([Begin("s", "//a", b"", 0, 1)])
        return
    upto = store.frontier("s").upto
    entries = [Entry(upto + 1 + j, Kind.BATCH, "n", rng.randbytes(rng.randint(0, 9000))) for j in range(i % 4)]
    store.commit([Results("s", entries, Frontier(1, upto + 1 + len(entries)))])


def truncate(data, at, rng):
    return data[:at]


def scribble(data, at, rng):
    """What was on the disk before: anything, in one sector or up to the end."""
    end = len(data) if rng.random() < 0.5 else at + 512
    return data[:at] + bytes(byte ^ 0xFF for byte in data[at:end]) + data[end:]


@pytest.mark.parametrize("damage", [truncate, scribble])
@pytest.mark.parametrize(
    ("kind", "write", "state"), [(SourceLog, write_log, log_state), (ResultStore, write_results, result_state)]
)
def test_the_commits_before_the_damage_survive_whole_and_no_others(tmp_path, kind, write, state, damage):
    rng = random.Random(4)
    path, wal = tmp_path / "store.db", tmp_path / "store.db-wal"
    with kind.open(path) as store:
        # Otherwise the file changes too, and cutting the log of what it holds already is no power loss.
        store._database._writer.execute("PRAGMA wal_autocheckpoint = 0")
        states = [(wal.stat().st_size, state(store))]
        for i in range(COMMITS):
            write(store, i, rng)
            states.append((wal.stat().st_size, state(store)))
        file, whole = path.read_bytes(), wal.read_bytes()
    assert len(whole) == states[-1][0]
    for _ in range(DAMAGES):
        at = rng.randrange(states[0][0], len(whole))
        folder = tmp_path / "copy"
        folder.mkdir()
        (folder / "store.db").write_bytes(file)
        (folder / "store.db-wal").write_bytes(damage(whole, at, rng))
        with kind.open(folder / "store.db") as store:
            assert state(store) == [expected for size, expected in states if size <= at][-1]
        shutil.rmtree(folder)


def test_a_store_whose_first_commit_was_cut_is_made_anew(tmp_path):
    with SourceLog.open(tmp_path / "a.db"):
        file, wal = ((tmp_path / name).read_bytes() for name in ("a.db", "a.db-wal"))
    (tmp_path / "b.db").write_bytes(file)
    (tmp_path / "b.db-wal").write_bytes(wal[:-1])
    with SourceLog.open(tmp_path / "b.db") as log:
        assert log.append([NewDocument("p", "1", "n", b"")])[0].number == 1

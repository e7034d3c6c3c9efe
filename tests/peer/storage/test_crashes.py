"""Whatever a crash leaves: all that was acknowledged, nothing half, nothing twice."""

import random
import subprocess
import sys
import time
from collections import Counter

from peer.storage import Entry, Kind, Missing
from tests.peer.storage.crash_writer import body_of, document, open_both
from tests.processes import ROOT

KILLS = 54
EVERYTHING = 1 << 40


def killed_writer(folder, seed, rng):
    """Run the writer and kill it: some way into its writing, or every ninth time into its beginning."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.peer.storage.crash_writer", str(folder), str(seed)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    if seed % 9:
        assert process.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0, 0.03))
    else:
        time.sleep(rng.uniform(0.05, 0.25))
    process.kill()
    told, _ = process.communicate()
    assert process.returncode == -9
    return [line for line in told.splitlines(keepends=True) if line.endswith("\n")]


def acknowledged(lines):
    """The numbers of keys, the frontier and the cursor that were told."""
    keys, frontier, cursor = {}, 0, 0
    for line in lines:
        what, *words = line.split()
        if what == "log":
            keys |= {key: int(number) for key, number in (word.split("=") for word in words)}
        elif what == "results":
            frontier, cursor = map(int, words)
    return keys, frontier, cursor


def assert_whole(keys):
    """Each commit is there with all its places, but for the first one, which may be cut by trimming."""
    places = Counter(key.split(".")[0] for key in keys)
    counts = {commit: int(count) for commit, _, count in (key.split(".") for key in keys)}
    first = keys[0].split(".")[0] if keys else None
    assert {c: n for c, n in places.items() if c != first} == {c: n for c, n in counts.items() if c != first}
    assert len(set(keys)) == len(keys)


def check_log(log, keys):
    lowest, last = log.lowest, log.last
    items = [item for item in log.documents(0, last, EVERYTHING) if not isinstance(item, Missing)]
    assert [item.number for item in items] == list(range(lowest + 1, last + 1))
    bodies = [item.body for item in items]
    names = [key_in(body) for body in bodies]
    assert bodies == [body_of(name) for name in names]
    assert_whole(names)
    assert log.extent().held_bytes == sum(len(body) + 1 + 64 for body in bodies)
    # A publisher that did not hear the answer asks again.
    again = log.append([document(key) for key in keys])
    assert [(outcome.number, outcome.is_new) for outcome in again] == [(n, False) for n in keys.values()]
    assert log.last == last


def key_in(body):
    """Find the key that a body repeats: its length is the smallest period."""
    period = (body + body).find(body, 1)
    return body[:period].decode()


def check_results(results, frontier, cursor):
    if results.frontier("s") is None:
        assert frontier == 0
        return
    upto, lowest = results.frontier("s").upto, results.lowest("s")
    assert upto >= frontier
    assert (results.cursor("s", "c") or 0) >= cursor
    entries = results.entries("s", 0, 1 << 62, EVERYTHING)
    if lowest:
        assert entries.pop(0) == Entry(lowest, Kind.TRIMMED, after=0)
    # Every number has an entry: none without its frontier, no frontier without them.
    assert [entry.number for entry in entries] == list(range(lowest + 1, upto + 1))
    assert [entry.data for entry in entries] == [body_of(entry.name) for entry in entries]
    assert_whole([entry.name for entry in entries])
    assert results.held_bytes == sum(len(entry.data) + len(entry.name) + 64 for entry in entries)


def check(folder, lines):
    keys, frontier, cursor = acknowledged(lines)
    log, results = open_both(folder)
    with log, results:
        check_log(log, keys)
        check_results(results, frontier, cursor)
        for store in (log, results):
            with store._database.reading() as connection:
                assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return log.last


def test_a_writer_killed_at_any_point_loses_nothing_it_told_and_leaves_nothing_half(tmp_path):
    rng = random.Random(2)
    lasts = []
    for seed in range(KILLS):
        # Killed in its beginning it has a folder of its own, to be killed while making the files.
        folder = tmp_path / ("all" if seed % 9 else f"only{seed}")
        lines = killed_writer(folder, seed, rng)
        lasts.append(check(folder, lines))
    assert max(lasts) > 4 * KILLS

"""How fast commits are, by how many the caller collects; printed, because it is the disk that is measured."""

import sys
import time

import pytest

from peer.storage import Begin, Entry, Frontier, Kind, NewDocument, Results, ResultStore, SourceLog

COMMITS = 30


@pytest.mark.parametrize("group", [1, 10, 100])
def test_a_larger_group_costs_one_wait_for_the_disk(tmp_path, capsys, group):
    body = bytes(2000)
    with SourceLog.open(tmp_path / "log.db") as log, ResultStore.open(tmp_path / "results.db") as store:
        started = time.perf_counter()
        for i in range(COMMITS):
            log.append([NewDocument("p", f"{i}.{j}", "n", body) for j in range(group)])
        appended = time.perf_counter()
        store.commit([Begin(f"s{j}", "//a", b"", 0, 1) for j in range(group)])
        for i in range(1, COMMITS + 1):
            entry = Entry(i, Kind.BATCH, "n", body[:200])
            store.commit([Results(f"s{j}", [entry], Frontier(1, i)) for j in range(group)])
        committed = time.perf_counter()
        assert (log.last, store.frontier("s0").upto) == (COMMITS * group, COMMITS)
    total = COMMITS * group
    with capsys.disabled():
        sys.stdout.write(
            f"\ngroups of {group}: {total / (appended - started):.0f} documents/s of 2 kB,"
            f" {total / (committed - appended):.0f} results/s of 200 bytes\n"
        )

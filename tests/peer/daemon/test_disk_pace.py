"""Commits go to a thread unless the disk is quicker than that."""

import threading

import pytest

from peer.daemon.committing import Committer
from peer.daemon.own_time import OwnTime


class Disk:
    """Takes as long as it is told, by a clock of its own, and remembers who has written."""

    def __init__(self, monkeypatch):
        self.now, self.takes_s, self.threads = 0.0, 0.001, []
        monkeypatch.setattr(OwnTime, "now", lambda _: self.now)

    def write(self, changes):
        self.now += self.takes_s
        self.threads.append(threading.current_thread() is threading.main_thread())
        return list(changes)


@pytest.fixture
async def committed(monkeypatch, nursery):
    """Commit one change after the other; return which were written in the event loop."""
    disk = Disk(monkeypatch)
    committer = Committer(disk.write, lambda change, outcome: None)
    nursery.start_soon(committer.run)

    async def commit(seconds):
        disk.threads.clear()
        for takes_s in seconds:
            disk.takes_s = takes_s
            assert await committer.commit("x") == "x"
        return list(disk.threads)

    return commit


async def test_a_quick_disk_is_waited_for_in_the_event_loop_once_it_is_known(committed):
    assert await committed([0.001] * 20) == [False] * 15 + [True] * 5


async def test_a_slow_disk_is_written_to_by_a_thread_and_tried_now_and_then(committed):
    assert await committed([0.01] * 33) == [*[False] * 15, True, *[False] * 15, True, False]


async def test_after_a_slow_commit_it_is_threads_for_a_while(committed):
    seconds = [*[0.001] * 16, 0.001, 0.5, *[0.001] * 16, 0.001]
    assert await committed(seconds) == [*[False] * 15, True, True, True, *[False] * 15, True, True]


async def test_a_disk_that_becomes_slower_is_left_to_threads(committed):
    threads = await committed([*[0.001] * 16, *[0.02] * 10])
    assert threads[16:] == [True, True, *[False] * 8]

"""What nobody is waiting for is written together; whatever else comes, or somebody who waits, ends that."""

import trio

from peer.daemon.committing import Committer
from peer.daemon.disk_pace import DiskPace
from peer.hosting.holding import Holding
from peer.storage.errors import DiskFull, StorageError

SIZE = 10


class Store:
    """Takes everything at once, and remembers what was written together, and when."""

    def __init__(self):
        self.begun, self.written, self.told, self.wrong = trio.current_time(), [], [], []
        self.is_awaited = False

    def write(self, changes):
        if self.wrong:
            raise self.wrong.pop()
        self.written.append((round(trio.current_time() - self.begun, 3), [*changes]))
        return list(changes)

    def done(self, change, outcome):
        self.told.append(change)


async def started(nursery, monkeypatch, **settings):
    """A committer whose disk is quick, so that it writes in the event loop."""
    monkeypatch.setattr(DiskPace, "is_direct", True)
    monkeypatch.setattr(DiskPace, "next_is_direct", lambda _: True)
    store = Store()
    committer = Committer(
        store.write, store.done, holding=Holding(1.0, 50), is_awaited=lambda: store.is_awaited, **settings
    )
    nursery.start_soon(committer.run)
    await trio.testing.wait_all_tasks_blocked()
    return store, committer


async def come(committer, store, *times):
    """Let changes come gently, each named for when it does."""
    for at in times:
        await trio.sleep_until(store.begun + at)
        committer.put_gently(at, SIZE)
        committer.look(here=True)


async def test_what_comes_now_and_then_is_written_at_once(nursery, monkeypatch, autojump_clock):
    store, committer = await started(nursery, monkeypatch)
    await come(committer, store, 0, 1.5, 3)
    assert store.written == [(0, [0]), (1.5, [1.5]), (3, [3])]
    assert store.told == [0, 1.5, 3]


async def test_what_comes_often_is_written_two_at_a_time(nursery, monkeypatch, autojump_clock):
    store, committer = await started(nursery, monkeypatch)
    await come(committer, store, 0, 0.8, 1.6, 2.4, 3.2)
    assert store.written == [(0, [0]), (1.6, [0.8, 1.6]), (3.2, [2.4, 3.2])]


async def test_what_comes_very_often_is_written_when_the_first_is_not_young_any_more(
    nursery, monkeypatch, autojump_clock
):
    store, committer = await started(nursery, monkeypatch)
    await come(committer, store, 0, 0.1, 0.2, 0.3, 0.45, 0.55)
    assert store.written == [(0, [0]), (0.55, [0.1, 0.2, 0.3, 0.45, 0.55])]


async def test_the_last_one_waits_for_no_longer_than_allowed(nursery, monkeypatch, autojump_clock):
    store, committer = await started(nursery, monkeypatch)
    await come(committer, store, 0, 0.8)
    await trio.sleep(5)
    assert store.written == [(0, [0]), (1.8, [0.8])]
    await come(committer, store, 6, 6.8, 7.7)
    assert store.written[2:] == [(6, [6]), (7.7, [6.8, 7.7])]


async def test_much_is_not_held(nursery, monkeypatch, autojump_clock):
    store, committer = await started(nursery, monkeypatch)
    await come(committer, store, 0, *[n / 100 for n in range(1, 11)])
    assert [len(changes) for _, changes in store.written] == [1, 5, 5]


async def test_anything_else_takes_along_what_is_held_in_order(nursery, monkeypatch, autojump_clock):
    store, committer = await started(nursery, monkeypatch)
    await come(committer, store, 0, 0.8)
    assert await committer.commit("asked for") == "asked for"
    await come(committer, store, 1)
    committer.put("put")
    await trio.testing.wait_all_tasks_blocked()
    assert store.written == [(0, [0]), (0.8, [0.8, "asked for"]), (1, [1, "put"])]


async def test_nothing_is_held_for_who_waits_or_comes_to_read_or_leaves(nursery, monkeypatch, autojump_clock):
    store, committer = await started(nursery, monkeypatch)
    await come(committer, store, 0, 0.8)
    committer.hurry()
    await trio.testing.wait_all_tasks_blocked()
    store.is_awaited = True
    await come(committer, store, 0.9, 1.0)
    store.is_awaited = False
    await come(committer, store, 1.1)
    await committer.settled()
    assert store.written == [(0, [0]), (0.8, [0.8]), (0.9, [0.9]), (1.0, [1.0]), (1.1, [1.1])]


async def test_what_the_store_refuses_is_tried_by_the_task_and_not_lost(nursery, monkeypatch, autojump_clock):
    store, committer = await started(nursery, monkeypatch)
    store.wrong = [DiskFull("here"), DiskFull("here")]
    await come(committer, store, 0)
    await trio.testing.wait_all_tasks_blocked()
    assert "here" in committer.trouble
    await come(committer, store, 0.2)
    await trio.sleep(1)
    assert (store.written, committer.trouble) == ([(1.0, [0, 0.2])], "")


async def test_one_that_cannot_be_stored_is_dropped_alone(nursery, monkeypatch, autojump_clock):
    failed = []
    store, committer = await started(nursery, monkeypatch, failed=lambda change, exc: failed.append(change))
    write = store.write

    def picky(changes):
        if "bad" in changes:
            raise StorageError("it is bad")
        return write(changes)

    committer.write = picky
    await come(committer, store, 0, 0.8)
    committer.put_gently("bad", SIZE)
    await trio.sleep(0.7)
    committer.put_gently(1.5, SIZE)
    committer.look(here=True)
    await trio.testing.wait_all_tasks_blocked()
    assert failed == ["bad"]
    assert [change for _, changes in store.written for change in changes] == [0, 0.8, 1.5]

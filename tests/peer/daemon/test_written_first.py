"""What is sent after it is written: in order, many at once, and never while the disk refuses."""

import trio

from peer.daemon import written_first
from peer.daemon.written_first import WrittenFirst
from peer.storage.errors import StorageError


async def test_what_follows_waits_until_everything_before_it_is_written(autojump_clock, monkeypatch):
    written, followed, is_refused = [], [], [True]

    def write(items):
        if is_refused:
            raise StorageError("the disk is full")
        written.extend(items)

    monkeypatch.setattr(written_first, "MOST_WAITING", 3)
    first = WrittenFirst(write)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(first.run)
        first.put([1], lambda: followed.append(list(written)))
        await trio.sleep(5)
        assert (written, followed, first.is_full) == ([], [], False)
        for n in (2, 3, 4):
            first.put([n], lambda: followed.append(list(written)))
        assert first.is_full
        is_refused.clear()
        await first.written([5])
        assert written == [1, 2, 3, 4, 5]
        assert followed[0] == [1]
        assert [len(one) for one in followed] == [1, 5, 5, 5], "written together"
        nursery.cancel_scope.cancel()

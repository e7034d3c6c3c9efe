"""Beats: whatever is done now and then is done at one waking."""

import math

import trio
from trio.testing import MockClock

from peer.daemon.beats import Beat


async def test_beats_of_several_tasks_fall_together(autojump_clock):
    seen = {}

    async def keep(name, period, times):
        beat = Beat()
        for _ in range(times):
            await beat.rest(period)
            seen.setdefault(trio.current_time(), []).append(name)

    await trio.sleep(0.37)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep, "quick", 0.5, 4)
        await trio.sleep(0.05)
        nursery.start_soon(keep, "slow", 1.0, 2)
    assert {at: sorted(names) for at, names in seen.items()} == {
        0.5: ["quick"], 1.0: ["quick", "slow"], 1.5: ["quick"], 2.0: ["quick", "slow"],
    }  # fmt: skip


async def test_a_beat_comes_earlier_if_something_happens_and_never_later(autojump_clock):
    beat, woken = Beat(), []

    async def keep():
        for latest in (math.inf, math.inf, 3.25):
            assert await beat.rest(2.0, latest=latest) == 0.0
            woken.append(trio.current_time())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep)
        await trio.sleep(0.5)
        beat.soon(0.25)
        beat.soon(9.0)
    assert woken == [0.75, 2.0, 3.25]


async def test_a_beat_that_was_called_earlier_can_be_called_off(autojump_clock):
    beat, woken = Beat(), []

    async def keep():
        for latest in (math.inf, 2.5):
            await beat.rest(2.0, latest=latest)
            woken.append(trio.current_time())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep)
        await trio.sleep(0.5)
        beat.soon(0.25)
        beat.calm()
        await trio.sleep(1.75)
        beat.calm()  # nothing was called
    assert woken == [2.0, 2.5]


async def test_how_late_it_is_is_told(mock_clock: MockClock):
    beat, late = Beat(), []

    async def keep():
        late.append(await beat.rest(1.0))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep)
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(1.75)
    assert late == [0.75]

"""A machine that is drained feeds nobody, nobody loses anything, and it feeds again when it comes back."""

import trio

from tests.peer.daemon.network import live_network, rows
from xmlmatch import Pattern

TEXT = "//a/b{val}"


async def fed_by(peer, name, wanted):
    """Wait until a subscription is fed so."""
    with trio.fail_after(30):
        while True:
            [one] = [s for s in peer.status()["subscriptions"] if s["subscription"] == name]
            if one["is_live"] and one["fed_by"] == wanted:
                return
            await trio.sleep(0.02)


async def test_a_drained_machine_feeds_nobody_until_it_is_started_anew(tmp_path):
    async with live_network(tmp_path) as network:
        one, two = await network.start_peer("p1"), await network.start_peer("p2")
        for peer in (one, two):
            await peer.connected.wait()
        first = (await one.subscribe(Pattern.parse(TEXT)))["subscription"]
        second = (await two.subscribe(Pattern.parse(TEXT)))["subscription"]
        await fed_by(two, second, [first])
        published = []

        async def publish(count):
            for _ in range(count):
                n = len(published)
                told = await network.source.publish("source", f"d{n}", f"k{n}", f"<a><b>{n}</b></a>".encode())
                published.append(told["number"])

        await publish(5)
        with trio.fail_after(30):
            left = [step["feeds"] async for step in one.drain()]
        assert left[-1] == 0
        assert one.host.feeds_given == 0
        await fed_by(two, second, ["source"])
        await publish(5)

        # It lasts over a restart of the source; and what the drained machine is fed itself goes on.
        await network.stop("source")
        await network.start_source()
        await publish(5)
        assert sorted(await rows(one, first, published[-1])) == published
        assert (await network.source.catalog.overview(()))["aside"] == ["p1"]

        failovers = two.host.subscriptions[second].feeding.failovers
        await network.stop("p1")
        await publish(5)
        assert sorted(await rows(two, second, published[-1])) == published
        assert two.host.subscriptions[second].feeding.failovers == failovers

        one = await network.start_peer("p1")
        await one.connected.wait()
        assert (await network.source.catalog.overview(()))["aside"] == []
        await publish(5)
        assert sorted(await rows(two, second, published[-1])) == published
        assert sorted(await rows(one, first, published[-1])) == published


async def test_a_drain_can_be_undone(tmp_path):
    async with live_network(tmp_path) as network:
        one = await network.start_peer("p1")
        await one.connected.wait()
        async for step in one.drain():
            assert step == {"feeds": 0}
        assert (await network.source.catalog.overview(()))["aside"] == ["p1"]
        await one.end_drain()
        assert (await network.source.catalog.overview(()))["aside"] == []

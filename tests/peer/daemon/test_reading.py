"""Following a subscription to its end."""

import trio

from tests.peer.daemon.network import live_network
from xmlmatch import Pattern


async def test_who_follows_is_done_when_the_subscription_has_ended(tmp_path):
    async with live_network(tmp_path) as network:
        peer = await network.start_peer("p1")
        await peer.connected.wait()
        name = (await peer.subscribe(Pattern.parse("//b{val}")))["subscription"]
        number = (await network.source.publish("source", "d", "k", b"<r><b>1</b></r>"))["number"]
        began, told = trio.Event(), []

        async def follow():
            async for one in peer.reading.entries(name, 0, follow=True):
                told.append(one)
                if one == {"complete": number}:
                    began.set()

        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(follow)
                await began.wait()
                end = (await peer.unsubscribe(name))["end"]
        rows = [one for one in told if "row" in one]
        assert ([one["document"] for one in rows], told[-1]) == ([number], {"complete": end})
        with trio.fail_after(30):
            again = [one async for one in peer.reading.entries(name, number, follow=True)]
        assert again == [{"complete": end}]

"""Connections that nobody needs are hung up, and made again when there is something to say."""

import trio

from peer.daemon import links
from tests.peer.daemon.network import live_network, rows
from xmlmatch import Pattern

BODY = b"<r><a>1</a></r>"


async def until(is_so):
    with trio.fail_after(60):
        while not is_so():
            await trio.sleep(0.05)


async def test_a_connection_lasts_as_long_as_something_is_fed_over_it(tmp_path, monkeypatch):
    monkeypatch.setattr(links, "_UNUSED_S", 1.0)
    async with live_network(tmp_path) as network:
        one, other = [await network.start_peer(name, relay="never") for name in ("p1", "p2")]
        ended = []

        def hang_up(site, reason, original=one.links.hang_up):
            ended.append((site, reason))
            original(site, reason)

        monkeypatch.setattr(one.links, "hang_up", hang_up)

        async def subscribe():
            name = (await other.subscribe(Pattern.parse("//a{val}")))["subscription"]
            await until(lambda: other.status()["subscriptions"][0]["fed_by"] == [first])
            return name

        first = (await one.subscribe(Pattern.parse("//a{val}")))["subscription"]
        name = await subscribe()
        await until(lambda: one.links.sites == ["p2", "source"])
        used = one.links._wires["p2"].used_at
        await until(lambda: one.links._wires["p2"].used_at > used + 2)  # looked at, found to be needed
        assert ended == []
        await other.unsubscribe(name)
        await until(lambda: one.links.sites == ["source"] == other.links.sites)
        name = await subscribe()
        number = (await network.source.publish("source", "d", "d", BODY))["number"]
        assert await rows(other, name, number) == {number: [{"a.val": "1"}]}

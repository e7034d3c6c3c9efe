"""Connections that nobody needs are hung up, and made again when there is something to say; who is too slow to
greet is dialled less and less often."""

from functools import partial

import trio

from overlay.identity import Address
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


async def test_who_is_too_slow_to_greet_rests_longer_each_time_until_it_is_reached(tmp_path, monkeypatch):
    accepted = []

    async def say_nothing(stream):
        accepted.append(stream)
        await trio.sleep_forever()

    async with live_network(tmp_path) as network, trio.open_nursery() as nursery:
        peer = await network.start_peer("p1")
        await peer.connected.wait()
        monkeypatch.setattr(links, "_HANDSHAKE_S", 0.5)
        [listener] = await nursery.start(partial(trio.serve_tcp, say_nothing, 0, host="127.0.0.1"))
        mute = Address("127.0.0.1", listener.socket.getsockname()[1])

        async def find(_):
            return (mute,)

        monkeypatch.setattr(peer.links, "_find", find)
        rests = []
        for _ in range(3):
            peer.links.dial("p2")
            await until(lambda: not peer.links.is_dialling("p2"))
            rest, at = peer.links._resting._until["p2"]
            rests.append(rest)
            assert at > trio.current_time()
            peer.links.dial("p2")
            assert not peer.links.is_dialling("p2")  # it rests
            peer.links._resting._until["p2"] = rest, 0.0
        assert (rests, len(accepted)) == ([2.0, 4.0, 8.0], 3)
        assert peer.links.refused["it takes too long"] == 3
        nursery.cancel_scope.cancel()


async def test_a_daemon_that_has_stopped_dials_nobody(tmp_path):
    async with live_network(tmp_path) as network:
        peer = await network.start_peer("p1")
        await peer.connected.wait()
        await network.stop("p1")
        peer.links.dial("source")  # as what is written last may want
        assert not peer.links.is_dialling("source")


async def test_goodbye_is_said_also_by_who_was_alone_before(tmp_path):
    async with live_network(tmp_path) as network:
        peer = await network.start_peer("p1")
        met = peer.connected
        await met.wait()
        peer.links.hang_up("source", "for once")
        await until(lambda: peer.connected is not met)  # it was alone, if only for a moment
        with trio.fail_after(60):
            await peer.connected.wait()
        await peer.links.leave("it is over")
        assert peer.links.sites == []

"""Machines that feed each other as fast as they can, with windows smaller than what they send."""

from base64 import b64encode
from random import Random

import trio

from tests.peer.daemon.network import live_network, rows
from xmlmatch import Pattern


async def fed_by(peer, name, wanted):
    with trio.fail_after(60):
        while next(o for o in peer.status()["subscriptions"] if o["subscription"] == name)["fed_by"] != [wanted]:
            await trio.sleep(0.05)


async def test_two_machines_that_feed_each_other_never_wait_for_each_other(tmp_path):
    async with live_network(tmp_path) as network:
        one, two = [await network.start_peer(name, window=64 << 10) for name in ("p1", "p2")]
        for peer in (one, two):
            await peer.connected.wait()
        a1 = (await one.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        b1 = (await two.subscribe(Pattern.parse("//b{cont}")))["subscription"]
        a2 = (await two.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        b2 = (await one.subscribe(Pattern.parse("//b{cont}")))["subscription"]
        await fed_by(two, a2, a1)
        await fed_by(one, b2, b1)
        text = "x" * 300_000
        last = 0
        for n in range(25):
            body = f"<r><a>{n}{text}</a><b>{text}{n}</b></r>".encode()
            last = (await network.source.publish("source", f"d{n}", f"k{n}", body))["number"]
        for peer, name in ((one, a1), (two, a2), (two, b1), (one, b2)):
            assert len(await rows(peer, name, last)) == 25


async def test_a_batch_larger_than_a_window_and_than_a_frame_arrives(tmp_path):
    async with live_network(tmp_path) as network:
        one, two = [await network.start_peer(name) for name in ("p1", "p2")]
        for peer in (one, two):
            await peer.connected.wait()
        first = (await one.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        second = (await two.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        await fed_by(two, second, first)
        text = b64encode(Random(1).randbytes(9 << 20))  # which hardly gets smaller on the way
        body = b"<r><a><a>" + text + b"</a></a></r>"  # its result has it twice
        last = (await network.source.publish("source", "d", "k", body))["number"]
        for peer, name in ((one, first), (two, second)):
            [found] = (await rows(peer, name, last)).values()
            assert sum(len(row["a.cont"]) for row in found) > 17 << 20
            assert peer.links.bytes_received > 17 << 20

"""A disk without room, and results that a store refuses: the daemon goes on, says so, and nothing is skipped."""

from contextlib import contextmanager

import pytest
import trio

from peer.daemon.questions import NoAnswer
from peer.storage.errors import DiskFull, RemoteStaleGeneration
from peer.storage.result_values import results_of
from tests.peer.daemon.network import live_network, rows
from tests.peer.daemon.test_live_network import wanted
from xmlmatch import Pattern

BODY = b"<r><a><b>%d</b><c>1</c><d>%s</d></a></r>"


@contextmanager
def full(store):
    """Let SQLite find no room for another page of a store."""
    writer = store._database._writer
    [[pages]] = writer.execute("PRAGMA page_count")
    writer.execute(f"PRAGMA max_page_count = {pages}")
    yield
    writer.execute("PRAGMA max_page_count = 1073741823")


async def publish(network, published, count):
    for _ in range(count):
        n = len(published)
        body = BODY % (n, b"x" * 9000)
        told = await network.source.publish("source", f"d{n}", f"k{n}", body)
        published[told["number"]] = body
    return max(published)


async def until(condition):
    with trio.fail_after(30):
        while not condition():
            await trio.sleep(0.02)


async def test_a_peer_whose_disk_is_full_feeds_on_says_so_and_stores_later(tmp_path):
    async with live_network(tmp_path) as network:
        one, two = await network.start_peer("p1"), await network.start_peer("p2")
        for peer in (one, two):
            await peer.connected.wait()
        one._committer.retry_s = 0.1
        first = (await one.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        second = (await two.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        published = {}
        await rows(two, second, await publish(network, published, 3))
        await until(lambda: two.status()["subscriptions"][0]["fed_by"] == [first])
        with full(one.store_file):
            last = await publish(network, published, 20)
            assert await rows(two, second, last) == wanted("//a{cont}", published)
            await until(lambda: "disk is full" in one.status()["storage"])
            assert two.status()["subscriptions"][0]["fed_by"] == [first]
            with pytest.raises(NoAnswer, match="no new subscriptions"):
                await one.subscribe(Pattern.parse("//b{val}"))
        assert await rows(one, first, last) == wanted("//a{cont}", published)
        await until(lambda: one.status()["storage"] == "")
        assert (await one.subscribe(Pattern.parse("//b{val}")))["first_document"] > last


async def test_a_source_whose_disk_is_full_refuses_and_goes_on(tmp_path):
    async with live_network(tmp_path) as network:
        one = await network.start_peer("p1")
        await one.connected.wait()
        network.source._committer.retry_s = 0.1
        name = (await one.subscribe(Pattern.parse("//b{val}")))["subscription"]
        published = {}
        await publish(network, published, 3)
        with full(network.source.log):
            with pytest.raises(DiskFull):
                await network.source.publish("source", "large", "large", BODY % (1, b"y" * 500_000))
            assert "disk is full" in network.source.status()["storage"]
            await network.stop("p1")
            one = await network.start_peer("p1")
            await one.connected.wait()
        last = await publish(network, published, 3)
        assert await rows(one, name, last) == wanted("//b{val}", published)
        assert network.source.status()["storage"] == ""


@pytest.mark.parametrize("relay", ["never", "always"])
async def test_results_that_the_store_refuses_are_fetched_again_and_others_are_stored(tmp_path, relay):
    async with live_network(tmp_path) as network:
        one = await network.start_peer("p1", relay=relay)
        await one.connected.wait()
        names = [(await one.subscribe(Pattern.parse("//b{val}")))["subscription"] for _ in range(2)]
        published = {}
        await one.relaying.look()  # with a relay, results are stored together with its documents
        await rows(one, names[0], await publish(network, published, 2))
        write, refused = one._committer.write, []

        def once(changes):
            """Refuse the results of one document: whatever comes with them, and then alone."""
            if not refused and any(names[0] == one.subscription for c in changes for one in results_of(c)):
                refused.extend(changes if len(changes) == 1 else [])
                raise RemoteStaleGeneration(names[0], 1, 0)
            return write(changes)

        one._committer.write = once
        last = await publish(network, published, 6)
        for name in names:
            assert await rows(one, name, last) == wanted("//b{val}", published)
        assert len(refused) == 1

"""The daemons on real sockets: what arrives is what direct matching gives."""

import random

import trio

from peer.storage.result_values import State
from rewriting.filters import Filter, message_bytes
from tests.peer.daemon.network import live_network, rows
from xmlmatch import Document, Pattern, match

DOCUMENTS = [f"<r><a><b>{n}</b><c>{n % 3}</c></a><a><b>x</b></a></r>".encode() for n in range(12)]
TEXTS = ["//a{cont}", "//a[c]/b{val}", "//b{val}", "//a[c='1']{cont}", "//a{cont}", "//a[b{val}][c{val}]"]


def wanted(text, documents):
    """Return the rows of a pattern by the number of the document."""
    pattern = Pattern.parse(text)
    found = {}
    for number, body in documents.items():
        got = [dict(zip(pattern.columns, row, strict=True)) for row in match(pattern, Document.parse(body)).rows()]
        if got:
            found[number] = got
    return found


async def test_subscribers_feed_each_other_exactly(tmp_path):
    async with live_network(tmp_path) as network:
        peers = [await network.start_peer(f"p{i}") for i in range(3)]
        for peer in peers:
            await peer.connected.wait()
        names = []
        for i, text in enumerate(TEXTS):
            names.append((await peers[i % 3].subscribe(Pattern.parse(text)))["subscription"])
        published = {}
        for n, body in enumerate(DOCUMENTS):
            told = await network.source.publish("source", f"d{n}", f"k{n}", body)
            published[told["number"]] = body
        last = max(published)
        for i, text in enumerate(TEXTS):
            assert await rows(peers[i % 3], names[i], last) == wanted(text, published)
        fed = [one["fed_by"] for peer in peers for one in peer.status()["subscriptions"]]
        assert any(by != ["source"] for by in fed)


async def test_content_that_is_published_again_crosses_a_link_once(tmp_path):
    bodies = [f"<r><a><b>{n}</b><c>{'long ' * 400}</c></a></r>".encode() for n in range(2)]
    async with live_network(tmp_path) as network:
        one, two = await network.start_peer("p1"), await network.start_peer("p2")
        for peer in (one, two):
            await peer.connected.wait()
        texts = {one: "//a{cont}", two: "//a{cont}"}
        names = {peer: (await peer.subscribe(Pattern.parse(text)))["subscription"] for peer, text in texts.items()}
        published = {}
        for n in range(20):
            told = await network.source.publish("source", f"d{n}", f"k{n}", bodies[n % 2])
            published[told["number"]] = bodies[n % 2]
        for peer, text in texts.items():
            assert await rows(peer, names[peer], max(published)) == wanted(text, published)
        saved = [daemon.status()["bytes_saved"] for daemon in (network.source, one)]
        assert min(saved) > 10 * 2_000  # from the source to p1, and from p1 to p2


async def test_filters_feed_each_other_exactly(tmp_path):
    texts = ["topic = 'sport'", "price < 50", "topic = 'sport' and price < 50", "topic = 'sport' and stock >= 2"]
    filters = [Filter.parse(text, whole=True) for text in texts]
    async with live_network(tmp_path) as network:
        peers = [await network.start_peer(f"p{i}") for i in range(3)]
        for peer in peers:
            await peer.connected.wait()
        names = [(await peers[i % 3].subscribe(one.pattern()))["subscription"] for i, one in enumerate(filters)]
        rng, published = random.Random(5), {}
        for n in range(15):
            message = {
                "topic": rng.choice(("sport", "art")),
                "price": rng.randint(10, 90),
                "stock": rng.randint(0, 4),
            }
            told = await network.source.publish("source", "message", f"k{n}", message_bytes(message))
            published[told["number"]] = message
        for i, one in enumerate(filters):
            found = await rows(peers[i % 3], names[i], max(published))
            assert found.keys() == {number for number, message in published.items() if one.matches(message)}
            for number, (row,) in found.items():
                assert row["message.cont"].encode() == message_bytes(published[number])
        fed = [one["fed_by"] for peer in peers for one in peer.status()["subscriptions"]]
        assert any(by != ["source"] for by in fed)


async def test_a_peer_that_stops_and_returns_gets_what_it_missed(tmp_path):
    async with live_network(tmp_path) as network:
        one, two = await network.start_peer("p1"), await network.start_peer("p2")
        for peer in (one, two):
            await peer.connected.wait()
        first = (await one.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        second = (await two.subscribe(Pattern.parse("//a[c]/b{val}")))["subscription"]
        published = {}
        for n, body in enumerate(DOCUMENTS):
            if n == 4:
                await network.stop("p1")
            if n == 8:
                one = await network.start_peer("p1")
            told = await network.source.publish("source", f"d{n}", f"k{n}", body)
            published[told["number"]] = body
            await trio.sleep(0.05)
        last = max(published)
        assert await rows(one, first, last) == wanted("//a{cont}", published)
        assert await rows(two, second, last) == wanted("//a[c]/b{val}", published)


async def test_the_source_goes_on_where_it_stopped(tmp_path):
    async with live_network(tmp_path) as network:
        one = await network.start_peer("p1")
        await one.connected.wait()
        name = (await one.subscribe(Pattern.parse("//b{val}")))["subscription"]
        published = {}
        for n, body in enumerate(DOCUMENTS[:6]):
            if n == 3:
                await network.stop("source")
                await network.start_source()
            told = await network.source.publish("source", f"d{n}", f"k{n}", body)
            published[told["number"]] = body
        again = await network.source.publish("source", "d0", "k0", DOCUMENTS[0])
        assert again == {"number": min(published), "is_new": False}
        assert await rows(one, name, max(published)) == wanted("//b{val}", published)


async def test_a_withdrawn_subscription_feeds_others_until_they_have_moved(tmp_path):
    async with live_network(tmp_path) as network:
        one, two = await network.start_peer("p1"), await network.start_peer("p2")
        for peer in (one, two):
            await peer.connected.wait()
        first = (await one.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        second = (await two.subscribe(Pattern.parse("//a[c]/b{val}")))["subscription"]
        published = {}
        for n, body in enumerate(DOCUMENTS):
            if n == 5:
                await one.unsubscribe(first)
            told = await network.source.publish("source", f"d{n}", f"k{n}", body)
            published[told["number"]] = body
            await trio.sleep(0.02)
        assert await rows(two, second, max(published)) == wanted("//a[c]/b{val}", published)
        with trio.fail_after(20):
            while one.status()["subscriptions"]:
                await trio.sleep(0.05)
        assert first not in one.host.subscriptions
        one.storing.end_drained()
        with trio.fail_after(20):
            while one.store_file.hosted(first).state is not State.ENDED:
                await trio.sleep(0.02)
        assert two.store_file.hosted(second).state is State.LIVE

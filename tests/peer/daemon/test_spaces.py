"""The content-driven network over real links, with TLS and SQLite: filters get what they match, once."""

import random

import msgspec
import trio

from peer.daemon.source_spaces import SpacePublish
from peer.storage.space_store import SpaceStore
from rewriting.filters import Dimension, Disjunction, Filter, Kind, Space, message_bytes
from tests.peer.daemon.network import live_network, rows

MARKET = Space("market", (Dimension("price", low=0, high=100), Dimension("topic", Kind.HASHED)))
TEXTS = ["price < 50", "topic = 'sport'", "topic = 'sport' and price < 50", "price > 20 and stock >= 2"]


def a_message(rng):
    message = {"topic": rng.choice(("sport", "art")), "price": str(rng.randint(0, 100)), "photo": "x" * 2000}
    return message | ({"stock": str(rng.randint(0, 4))} if rng.random() < 0.8 else {})


async def publish(network, message, key):
    asked = SpacePublish("market", key, message, ["photo"])
    return (await network.source.spaces.publish("source", asked))["number"]


async def received(peer, name, upto):
    """Return all messages of a subscription, once they are complete up to a number."""
    with trio.fail_after(60):
        while True:
            found = [one async for one in peer.spaces.messages(name, 0)]
            if found[-1]["complete"] >= upto:
                return {one["message"]: one["attributes"] for one in found[:-1]}
            await trio.sleep(0.05)


async def until(condition):
    with trio.fail_after(60):
        while not condition():
            await trio.sleep(0.05)


async def started(network, count):
    """Start peers, and wait until each has a zone or knows that there is none for it."""
    network.source.spaces.create(MARKET)
    peers = [await network.start_peer(f"p{i}") for i in range(count)]
    for peer in peers:
        await peer.connected.wait()
    await until(lambda: all(len(peer.spaces.nodes) == 1 for peer in peers))
    origin = network.source.spaces.origins["market"]
    await until(lambda: len(origin.machines) == count)
    return peers


async def test_messages_reach_exactly_those_who_want_them_also_when_a_machine_stops(tmp_path):
    rng = random.Random(2)
    async with live_network(tmp_path) as network:
        peers = await started(network, 3)
        wanted = {}
        for i, text in enumerate([*TEXTS, *TEXTS, "price < 10 or topic prefix 'ar'"]):
            told = await peers[i % 3].spaces.subscribe("market", text)
            wanted[told["subscription"]] = i % 3, Disjunction.parse(text), told["start"]
        origin = network.source.spaces.origins["market"]
        network.source.spaces.rebalance()
        await until(lambda: len(origin.catalog.history.now.owners()) > 1)
        sent = {}
        for n in range(24):
            message = a_message(rng)
            sent[await publish(network, message, f"k{n}")] = message
            if n == 8:
                await network.stop("p1")
            if n == 16:
                peers[1] = await network.start_peer("p1")
        assert await publish(network, a_message(rng), "k0") == min(sent), "the same key is the same message"
        for name, (i, filtered, start) in wanted.items():
            found = await received(peers[i], name, max(sent))
            assert found == {n: one for n, one in sent.items() if n > start and filtered.matches(one)}
        assert sum(peer.links.bytes_sent for peer in peers) > 10_000


async def test_a_source_that_starts_again_goes_on_with_its_spaces(tmp_path):
    rng = random.Random(3)
    async with live_network(tmp_path) as network:
        peers = await started(network, 2)
        names = [(await peer.spaces.subscribe("market", "price < 50"))["subscription"] for peer in peers]
        sent = {}
        for n in range(12):
            message = a_message(rng)
            sent[await publish(network, message, f"k{n}")] = message
            if n == 6:
                await network.stop("source")
                await network.start_source()
        for peer, name in zip(peers, names, strict=True):
            found = await received(peer, name, max(sent))
            assert found == {n: one for n, one in sent.items() if Filter.parse("price < 50").matches(one)}
        await peers[0].spaces.unsubscribe(names[0])
        late = await publish(network, {"price": "1"}, "late")
        before = await received(peers[0], names[0], late)
        assert before == found
        assert await received(peers[1], names[1], late) == found | {late: {"price": "1"}}
        assert network.source.spaces.listed()[0]["subscriptions"] == 1


async def test_a_space_that_the_source_has_lost_and_makes_again_is_another_one(tmp_path):
    async with live_network(tmp_path) as network:
        (peer,) = await started(network, 1)
        old = (await peer.spaces.subscribe("market", "price < 50"))["subscription"]
        for n in range(4):
            last = await publish(network, {"price": str(n)}, f"k{n}")
        assert len(await received(peer, old, last)) == 4
        await network.stop("source")
        for path in (tmp_path / "source").glob("spaces.sqlite*"):
            path.unlink()
        await network.start_source()
        network.source.spaces.create(MARKET)
        new = None
        with trio.fail_after(60):
            while new is None:  # until it has heard of the new one
                await peer.connected.wait()
                told = await peer.spaces.subscribe("market", "price < 50")
                if all(told["space"] == key for key in peer.spaces.nodes):
                    new = told["subscription"]
                await trio.sleep(0.1)
        last = await publish(network, {"price": "7"}, "again")
        assert await received(peer, new, last) == {last: {"price": "7"}}
        assert {one["is_lost"] for one in peer.spaces.standing() if one["subscription"] == old} == {True}
        assert len([one async for one in peer.spaces.messages(old, 0)]) == 5, "what has come stays"


async def test_planned_feeds_and_the_space_deliver_the_same(tmp_path):
    rng = random.Random(4)
    filters = [Filter.parse(text, whole=True) for text in TEXTS]
    async with live_network(tmp_path) as network:
        peers = await started(network, 2)
        pairs = []
        for i, one in enumerate(filters):
            peer = peers[i % 2]
            fed = await peer.subscribe(one.pattern())
            here = await peer.spaces.subscribe("market", str(one))
            pairs.append((peer, fed["subscription"], here["subscription"]))
        both = {}
        for n in range(10):
            message = a_message(rng)
            told = await network.source.publish("source", "message", f"k{n}", message_bytes(message))
            both[await publish(network, message, f"k{n}")] = told["number"]
        for peer, fed, here in pairs:
            by_feeds = await rows(peer, fed, max(both.values()))
            by_space = await received(peer, here, max(both))
            assert {both[n]: message_bytes(one).decode() for n, one in by_space.items()} == {
                number: found[0]["message.cont"] for number, found in by_feeds.items()
            }


def test_a_store_keeps_a_message_once_and_the_newest_ones(tmp_path):
    store = SpaceStore(tmp_path / "spaces.sqlite")
    store.receive([("s", n, msgspec.msgpack.encode({"n": str(n)})) for n in (1, 2, 3, 4)], [("market", 4, 0)])
    store.receive([("s", 3, msgspec.msgpack.encode({"n": "again"}))], [("market", 2, 1)])
    assert store.complete("market") == (4, 1)
    assert store.messages("s", 1, 3, 10) == [(2, {"n": "2"}), (3, {"n": "3"})]
    store.trim("s", 2)
    store.trim("s", 5)
    assert [n for n, _ in store.messages("s", 0, 9, 10)] == [3, 4]
    store.append([("market", b"a"), ("other", b"b")], [("market", "p", "k", 7)])
    assert store.records("market") == [b"a"]
    assert store.published("market", "p", "k") == 7
    store.replace("market", [b"c", b"d"], oldest_key=8)
    assert (store.records("market"), store.records("other")) == ([b"c", b"d"], [b"b"])
    assert store.published("market", "p", "k") is None
    store.close()

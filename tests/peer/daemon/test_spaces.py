"""The content-driven network over real links, with TLS and SQLite: filters get what they match, once."""

import random
import sqlite3
from contextlib import closing

import msgspec
import pytest
import trio

from overlay.content.journal import Published, Subscribed, Unsubscribed, encode_record
from overlay.content.origin import Origin
from peer.daemon import source_spaces
from peer.daemon.declared import decode_declared
from peer.daemon.questions import NoAnswer
from peer.daemon.source_spaces import SpacePublish, _record
from peer.storage.database import Database
from peer.storage.log_values import NewDocument, SpaceEntry
from peer.storage.source_log import SourceLog
from peer.storage.space_records import Snapshot
from peer.storage.space_store import EARLIER, SpaceStore, SpaceSubscription
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


async def read(peer, name, after=0):
    """Return what a subscription has received after a number, with gaps and up to where it is complete."""
    return [one async for one in peer.spaces.reading.entries(name, after, follow=False)]


async def received(peer, name, upto):
    """Return all messages of a subscription, once they are complete up to a number."""
    with trio.fail_after(60):
        while True:
            found = await read(peer, name)
            if found[-1]["complete"] >= upto:
                return {one["message"]: one["attributes"] for one in found[:-1] if "message" in one}
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
        assert await publish(network, sent[min(sent)], "k0") == min(sent), "the same key is the same message"
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
        end = (await peers[0].spaces.unsubscribe(names[0]))["end"]
        late = await publish(network, {"price": "1"}, "late")
        before = await received(peers[0], names[0], end)
        assert before == found
        assert await received(peers[1], names[1], late) == found | {late: {"price": "1"}}
        assert network.source.spaces.listed()[0]["subscriptions"] == 1


async def test_subscriptions_of_a_space_that_the_source_has_lost_are_announced_when_it_is_made_again(tmp_path):
    async with live_network(tmp_path) as network:
        (peer,) = await started(network, 1)
        name = (await peer.spaces.subscribe("market", "price < 50"))["subscription"]
        for n in range(4):
            last = await publish(network, {"price": str(n)}, f"k{n}")
        assert len(await received(peer, name, last)) == 4
        await network.stop("source")
        with closing(sqlite3.connect(tmp_path / "source" / "source.sqlite")) as log:
            log.executescript("DELETE FROM spaces; DELETE FROM space_records")
        await network.start_source()
        await until(lambda: not peer.spaces.nodes)
        assert [one["is_lost"] for one in peer.spaces.standing()] == [True]
        with pytest.raises(NoAnswer, match="does not have the space"):
            await peer.spaces.unsubscribe(name)
        assert len(await read(peer, name)) == 5, "what has come stays"
        network.source.spaces.create(MARKET)
        await until(lambda: not peer.spaces.standing()[0]["is_lost"])
        new = await publish(network, {"price": "7"}, "again")
        with trio.fail_after(60):
            while (found := await read(peer, name))[-1] != {"complete": new}:
                await trio.sleep(0.05)
        assert [one["message"] for one in found if "message" in one] == [last - 3, last - 2, last - 1, last, new]
        (gap,) = [one["gap"] for one in found if "gap" in one]
        assert gap[0] == last < gap[1] < new


async def test_what_is_published_in_a_space_comes_by_planned_feeds_too_with_the_same_numbers(tmp_path):
    rng = random.Random(4)
    filters = [Filter.parse(text, whole=True) for text in TEXTS]
    async with live_network(tmp_path) as network:
        peers = await started(network, 2)
        pairs = []
        for i, one in enumerate(filters):
            peer = peers[i % 2]
            fed = await peer.subscribe(one.pattern())
            here = await peer.spaces.subscribe("market", str(one))
            pairs.append((peer, one, fed["subscription"], here["subscription"]))
        sent = {}
        for n in range(12):
            message = a_message(rng)
            sent[await publish(network, message, f"k{n}")] = message
            if n % 4 == 0:  # what is no message of the space takes numbers too
                await network.source.publish("source", "message", f"other{n}", message_bytes({"price": "1000"}))
                await peers[0].spaces.subscribe("market", "price < 0")
        assert await publish(network, sent[min(sent)], "k0") == min(sent)
        for peer, one, fed, here in pairs:
            by_feeds = await rows(peer, fed, max(sent))
            by_space = await received(peer, here, max(sent))
            assert by_space == {n: message for n, message in sent.items() if one.matches(message)}
            assert {n: message_bytes(message).decode() for n, message in by_space.items()} == {
                number: found[0]["message.cont"] for number, found in by_feeds.items() if number in sent
            }


async def test_a_key_stands_for_one_message_of_one_space(tmp_path):
    async with live_network(tmp_path) as network:
        network.source.spaces.create(MARKET)
        network.source.spaces.create(Space("other", MARKET.dimensions))
        number = await publish(network, {"price": "7"}, "k")
        with pytest.raises(NoAnswer, match="stands for another"):
            await network.source.spaces.publish("source", SpacePublish("other", "k", {"price": "7"}))
        with pytest.raises(NoAnswer, match="stands for another"):
            await network.source.publish("source", "message", "k", message_bytes({"price": "7"}))
        with pytest.raises(NoAnswer, match="stands for another"):
            await publish(network, {"price": "8"}, "k")
        await network.stop("source")
        await network.start_source()
        assert await publish(network, {"price": "7"}, "k") == number


async def test_what_the_log_has_when_the_source_dies_reaches_the_space_when_it_is_back(tmp_path):
    async with live_network(tmp_path) as network:
        (peer,) = await started(network, 1)
        told = await peer.spaces.subscribe("market", "price < 50")
        early = await publish(network, {"price": "1"}, "early")
        await received(peer, told["subscription"], early)
        await network.stop("source")
        with SourceLog.open(tmp_path / "source" / "source.sqlite") as log:
            # As if it had died right after the commit: nothing of this was entered in the space.
            entries = [
                Published(0, {"price": "2"}),
                Subscribed(0, "c-late", "p0", "price < 50"),
                Published(0, {"price": "3"}),
                Unsubscribed(0, told["subscription"]),
                Published(0, {"price": "4"}),
            ]
            numbers = [one.number for one in log.append([logged(told["space"], entry) for entry in entries])]
        peer.spaces.subscriptions["c-late"] = SpaceSubscription(
            "c-late", told["space"], "price < 50", numbers[1], None
        )
        peer.spaces._names.add("c-late")
        await network.start_source()
        found = await received(peer, told["subscription"], numbers[2])
        assert found == {early: {"price": "1"}, numbers[0]: {"price": "2"}, numbers[2]: {"price": "3"}}
        found = await received(peer, "c-late", numbers[-1])
        assert found == {numbers[2]: {"price": "3"}, numbers[4]: {"price": "4"}}
        again = await publish(network, {"price": "2"}, "key 2")
        assert again == numbers[0], "the log knows its key"


def logged(space, entry):
    """Return an entry of a space as the source writes it to its log."""
    there = SpaceEntry(space, encode_record(entry))
    if not isinstance(entry, Published):
        return there
    body = message_bytes(entry.attributes)
    return NewDocument("source", f"key {entry.attributes['price']}", "message", body, there)


async def test_spaces_that_a_source_kept_beside_its_log_are_taken_over(tmp_path):
    async with live_network(tmp_path) as network:
        (peer,) = await started(network, 1)
        told = await peer.spaces.subscribe("market", "price < 50")
        last = await publish(network, {"price": "1"}, "k")
        before = await received(peer, told["subscription"], last)
        await network.stop("source")
        put_beside_the_log(tmp_path / "source", counted_to=last + 1000)
        await network.start_source()
        assert not (tmp_path / "source" / "spaces.sqlite").exists()
        new = await publish(network, {"price": "2"}, "k2")
        assert new > last + 1000, "what a machine has taken for complete is not used again"
        assert await received(peer, told["subscription"], new) == before | {new: {"price": "2"}}


def put_beside_the_log(home, counted_to):
    """Make a source's home as it was when each space counted for itself; a space has come to a number."""
    earlier = Database(home / "spaces.sqlite", EARLIER)
    with SourceLog.open(home / "source.sqlite") as log, earlier.transaction() as writer:
        for name, body in log.spaces.spaces().items():
            writer.execute("INSERT INTO spaces VALUES (?, ?)", (name, body))
            origin = Origin("source", decode_declared(body).space)
            kept = log.spaces.records(decode_declared(body).key)
            origin.restore(map(_record, kept), 0.0)
            origin.number = origin.frontier = counted_to
            rows = [(decode_declared(body).key, encode_record(one)) for one in origin.snapshot()]
            writer.executemany("INSERT INTO records (space, body) VALUES (?, ?)", rows)
    earlier.close()
    with closing(sqlite3.connect(home / "source.sqlite")) as log:
        log.executescript("DROP TABLE spaces; DROP TABLE space_records; PRAGMA user_version = 1")


def test_a_store_keeps_a_message_once_and_the_newest_ones(tmp_path):
    store = SpaceStore(tmp_path / "spaces.sqlite")
    store.receive([("s", n, msgspec.msgpack.encode({"n": str(n)})) for n in (1, 2, 3, 4)], [("market", 4, 0)])
    store.receive([("s", 3, msgspec.msgpack.encode({"n": "again"}))], [("market", 2, 1)])
    assert store.complete("market") == (4, 1)
    assert store.messages("s", 1, 3, 10) == [(2, {"n": "2"}), (3, {"n": "3"})]
    store.trim("s", 2, 9)
    store.trim("s", 5, 9)
    assert [n for n, _ in store.messages("s", 0, 9, 10)] == [3, 4]
    store.close()


def test_what_was_complete_in_a_generation_of_a_space_is_so_in_the_next(tmp_path):
    store = SpaceStore(tmp_path / "spaces.sqlite")
    store.receive([], [("market@1", 7, 2)])
    store.put_space("market", b"", "market@2", ["market@1"])
    assert store.complete("market@2") == (7, 2)
    store.receive([], [("market@2", 9, 2)])
    store.put_space("market", b"", "market@2", ["market@1"])
    assert store.complete("market@2") == (9, 2)
    store.put_subscriptions([], [("s", 9, 12), ("s", 20, 30), ("t", 0, 9)])
    assert store.gaps("s", 9, 20) == [(9, 12)]
    assert store.gaps("s", 12, 30) == [(20, 30)]
    store.close()


async def test_a_change_that_is_asked_for_twice_is_made_once_also_after_a_restart(tmp_path):
    async with live_network(tmp_path) as network:
        peers = await started(network, 2)
        told = await peers[0].spaces.subscribe("market", "price < 50")
        about = {"space": told["space"], "subscription": told["subscription"]}
        asked = about | {"space": "market", "filter": "price < 50"}
        again = await peers[0].ask_source("space_subscribe", asked)
        assert again["start"] == told["start"]
        with pytest.raises(NoAnswer, match="not a subscription of p1"):
            await peers[1].ask_source("space_unsubscribe", about)
        ended = await peers[0].ask_source("space_unsubscribe", about)
        await until(lambda: network.source.spaces.origins["market"].frontier >= ended["end"])
        last = network.source.log.last
        for _ in range(2):
            assert await peers[0].ask_source("space_unsubscribe", about) == ended
            with pytest.raises(NoAnswer, match="has ended"):
                await peers[0].ask_source("space_subscribe", asked)
            await network.stop("source")
            await network.start_source()
        assert network.source.log.last == last


async def test_records_of_a_space_stay_few_and_say_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(source_spaces, "SNAPSHOT_AFTER", 20)
    monkeypatch.setattr(source_spaces, "SNAPSHOT_SHARE", 0)
    async with live_network(tmp_path) as network:
        peers = await started(network, 2)
        told = [await peer.spaces.subscribe("market", "price < 50") for peer in peers]
        sent = {}
        for n in range(80):
            sent[await publish(network, {"price": str(n)}, f"k{n}")] = {"price": str(n)}
        end = (await peers[1].spaces.unsubscribe(told[1]["subscription"]))["end"]
        wanted = dict(list(sent.items())[:50])
        assert await received(peers[0], told[0]["subscription"], max(sent)) == wanted
        log = network.source.log.spaces
        await until(lambda: len(log.records(told[0]["space"])) < 60)
        await network.stop("source")
        await network.start_source()
        assert list(network.source.spaces.origins["market"].catalog.live) == [told[0]["subscription"]]
        late = await publish(network, {"price": "7"}, "late")
        assert await received(peers[0], told[0]["subscription"], late) == wanted | {late: {"price": "7"}}
        assert await received(peers[1], told[1]["subscription"], end) == wanted


def test_a_snapshot_takes_the_place_of_what_it_says_and_later_entries_follow_it(tmp_path):
    with SourceLog.open(tmp_path / "source.sqlite") as log:
        log.spaces.append([("market@1", b"a"), ("other@1", b"b")])
        one, two = (
            done.number for done in log.append([SpaceEntry("market@1", b"1"), SpaceEntry("market@1", b"2")])
        )
        log.spaces.append([("market@1", b"c")])
        assert log.spaces.records("market@1") == [(None, b"a"), (None, b"c"), (one, b"1"), (two, b"2")]
        log.spaces.append([("market@1", b"d"), Snapshot("market@1", [b"all"], one), ("market@1", b"e")])
        assert log.spaces.records("market@1") == [(None, b"all"), (None, b"e"), (two, b"2")]
        assert log.spaces.records("other@1") == [(None, b"b")]
        log.spaces.count_from(10)
        log.spaces.count_from(5)
        assert (log.last, log.documents(0, 20, 1000)) == (10, [])

"""A machine with many subscriptions takes whole documents instead, and goes back when that is more."""

import math

import msgspec
import pytest
import trio

from peer.daemon.questions import NoAnswer, Unreachable
from peer.daemon.relaying import Weighing
from peer.daemon.requests import Subscribe
from peer.hosting import relay
from peer.hosting.rows import write_columns
from tests.peer.daemon.network import live_network, rows
from tests.peer.daemon.test_live_network import DOCUMENTS, TEXTS, wanted
from xmlmatch import Pattern


async def publish(network, bodies, published):
    for body in bodies:
        key = f"k{len(published)}"
        told = await network.source.publish("source", key, key, body)
        published[told["number"]] = body
    return max(published)


def relay_of(peer):
    return [one for one in peer.status()["subscriptions"] if one["subscription"].startswith("documents-")]


def is_relayed(peer):
    """Say whether everything on a machine is fed by its relay."""
    own = {one["subscription"] for one in relay_of(peer)}
    return all(
        set(one["fed_by"]) == own for one in peer.status()["subscriptions"] if one["subscription"] not in own
    )


async def test_relays_feed_each_other_and_all_that_is_on_their_machines(tmp_path):
    async with live_network(tmp_path) as network:
        peers = [await network.start_peer(f"p{i}", relay="always") for i in range(3)]
        names, published = [], {}
        for i, text in enumerate(TEXTS * 2):
            names.append((await peers[i % 3].subscribe(Pattern.parse(text), limit=1))["subscription"])
        await publish(network, DOCUMENTS[:3], published)
        for peer in peers:
            await peer.relaying.look()
            await peer.relaying.look()  # there is one already
        with trio.fail_after(60):
            while not all(is_relayed(peer) for peer in peers):
                await publish(network, DOCUMENTS[3:4], published)
                await trio.sleep(0.2)
        last = await publish(network, DOCUMENTS[3:], published)
        for i, text in enumerate(TEXTS * 2):
            assert await rows(peers[i % 3], names[i], last) == wanted(text, published)
        relays = [relay_of(peer) for peer in peers]
        assert [len(one) for one in relays] == [1, 1, 1]
        assert sum(one["fed_by"] == ["source"] for [one] in relays) == 1
        seen = await network.source.catalog.overview(())
        assert (seen["matched"], seen["pending"]) == (len(names), 0)
        assert "pending" not in seen["should_replan"]
        assert [one["matched"] for one in seen["machines"]] == [4, 4, 4]
        assert sum(one["from_source"] for one in seen["machines"]) == 1
        assert sum(seen["levels"].values()) == len(names) + 3
        traced = await peers[0].trace(last, names[0])
        assert [step["subscription"] for step in traced["path"]][:2] == [names[0], relays[0][0]["subscription"]]


async def test_machines_are_told_what_matches_and_hold_what_nobody_waits_for(tmp_path, monkeypatch):
    matched = []
    read = relay.document_of
    monkeypatch.setattr(relay, "document_of", lambda item: matched.append(item.number) or read(item))
    async with live_network(tmp_path) as network:
        peers = [await network.start_peer(f"p{i}", relay="always") for i in range(2)]
        names, published = [], {}
        for i, text in enumerate(TEXTS * 2):
            names.append((await peers[i % 2].subscribe(Pattern.parse(text), limit=1))["subscription"])
        await publish(network, DOCUMENTS[:3], published)
        for peer in peers:
            await peer.relaying.look()
        with trio.fail_after(60):
            while not all(is_relayed(peer) for peer in peers):
                await publish(network, DOCUMENTS[3:4], published)
                await trio.sleep(0.2)
            while any(peer.host.unnumbered() for peer in peers):
                await trio.sleep(0.2)
            while network.source.views.held_until == math.inf:  # once nobody waits for anything any more
                await publish(network, [f"<r><a>{len(published)}</a></r>".encode()], published)
        last = await publish(network, DOCUMENTS[4:], published)
        for i, text in enumerate(TEXTS * 2):
            assert await rows(peers[i % 2], names[i], last) == wanted(text, published)
        told = last - max(one for one in matched if one % 64)
        assert told > len(DOCUMENTS[4:])
        assert not any(peer.host.unnumbered() for peer in peers)


async def test_a_machine_decides_by_what_comes_over_the_network(tmp_path):
    async with live_network(tmp_path) as network:
        peer = await network.start_peer("p1")
        published = {}
        small = (await peer.subscribe(Pattern.parse("//c{val}")))["subscription"]
        await peer.relaying.look()
        last = await publish(network, DOCUMENTS[:6], published)
        assert await rows(peer, small, last) == wanted("//c{val}", published)
        await peer.relaying.look()
        assert relay_of(peer) == []
        texts = ["//a{cont}", "//a[b]{cont}", "//r{cont}", "/r{cont}", "//a[c]{cont}", "//r[a]{cont}"]
        names = [(await peer.subscribe(Pattern.parse(text)))["subscription"] for text in texts]
        last = await publish(network, DOCUMENTS[6:], published)
        for name in names:
            await rows(peer, name, last)
        await peer.relaying.look()
        assert [one["pattern"] for one in relay_of(peer)] == ["/*{cont}"]
        for name in names:
            await peer.unsubscribe(name)
        big = b"<r>" + b"<d>much that nobody asks for</d>" * 100 + b"<c>1</c></r>"
        last = await publish(network, [big] * 6, published)
        await rows(peer, small, last)
        await peer.relaying.look()
        last = await publish(network, [big], published)
        assert await rows(peer, small, last) == wanted("//c{val}", published)
        assert [one for one in peer.status()["subscriptions"] if one["fed_by"] != ["source"]] == []


async def test_who_wants_no_relay_ends_the_one_there_was(tmp_path):
    async with live_network(tmp_path) as network:
        peer = await network.start_peer("p1", relay="always")
        name = (await peer.subscribe(Pattern.parse("//b{val}")))["subscription"]
        await peer.relaying.look()
        assert len(relay_of(peer)) == 1
        await network.stop("p1")
        peer = await network.start_peer("p1", relay="never")
        await peer.connected.wait()
        await peer.relaying.look()
        published = {}
        last = await publish(network, DOCUMENTS, published)
        assert await rows(peer, name, last) == wanted("//b{val}", published)
        assert list(network.source.catalog.owners) == [name]


async def test_a_relay_whose_answer_was_lost_is_asked_for_again_by_its_name(tmp_path):
    async with live_network(tmp_path) as network:
        peer = await network.start_peer("p1", relay="always")
        await peer.subscribe(Pattern.parse("//b{val}"))
        asked, subscribe = [], peer.relaying.subscribe

        async def lose(name, limit):
            asked.append(name)
            if len(asked) == 2:
                await network.source.catalog.subscribe("p1", _relay(name))  # heard, and the answer is lost
            raise Unreachable("the source did not answer")

        peer.relaying.subscribe = lose
        for _ in range(2):
            with pytest.raises(Unreachable):
                await peer.relaying.look()
        peer.relaying.subscribe = subscribe
        with trio.fail_after(30):
            while not relay_of(peer):
                await peer.relaying.look()
                await trio.sleep(0.05)
        assert asked[0] == asked[1]
        assert [one["subscription"] for one in relay_of(peer)] == asked[:1]
        assert sum(name.startswith("documents-") for name in network.source.catalog.owners) == 1


async def test_a_relay_that_was_heard_and_refused_does_not_stay_at_the_source(tmp_path):
    async with live_network(tmp_path) as network:
        peer = await network.start_peer("p1", relay="always")
        await peer.subscribe(Pattern.parse("//b{val}"))
        subscribe = peer.relaying.subscribe

        async def refuse(name, limit):
            await network.source.catalog.subscribe("p1", _relay(name))
            raise NoAnswer("it is there, and says something else")

        peer.relaying.subscribe = refuse
        with pytest.raises(NoAnswer):
            await peer.relaying.look()
        assert not any(name.startswith("documents-") for name in network.source.catalog.owners)
        peer.relaying.subscribe = subscribe
        with trio.fail_after(30):
            while not [one for one in relay_of(peer) if one["is_live"]]:
                await peer.relaying.look()
                await trio.sleep(0.05)
        assert sum(name.startswith("documents-") for name in network.source.catalog.owners) == 1


def _relay(name):
    pattern = Pattern.parse("/*{cont}")
    asked = {
        "subscription": name, "pattern": pattern.text, "columns": write_columns(pattern), "start": "now",
        "limit": None,
    }  # fmt: skip
    return msgspec.convert(asked, Subscribe)


async def test_of_several_relays_one_is_kept(tmp_path):
    async with live_network(tmp_path) as network:
        peer = await network.start_peer("p1", relay="always")
        name = (await peer.subscribe(Pattern.parse("//b{val}")))["subscription"]
        for i in range(3):
            await peer.subscribe(Pattern.parse("/*{cont}"), name=f"documents-{i}")
        await peer.relaying.look()
        published = {}
        last = await publish(network, DOCUMENTS, published)
        assert await rows(peer, name, last) == wanted("//b{val}", published)
        assert sum(one.startswith("documents-") for one in network.source.catalog.owners) == 1


def test_a_source_that_started_anew_is_weighed_anew():
    weighing = Weighing()
    assert weighing.volume(50, 5_000) is None
    weighing.stored("p", "s", 10_000)
    assert weighing.volume(3, 300) is None  # its counts begin again
    weighing.stored("p", "s", 1_000)
    assert weighing.volume(8, 800) == 2.0

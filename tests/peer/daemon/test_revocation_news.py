"""A revocation reaches everybody who reaches anybody, over links and in the DHT; with real daemons."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
import trio

from overlay.identity import NotPermitted, StaleList
from overlay.identity.dht_keys import fresh_dht_key
from peer.daemon import directory
from peer.daemon.questions import NoAnswer
from tests.peer.daemon.directory_members import ADDRESSES
from tests.peer.daemon.network import live_network
from tests.peer.daemon.test_security import in_place_of
from xmlmatch import Pattern

WITHIN_S = 10


async def started(network, count):
    """Start some peers that know each other's nodes."""
    peers = [await network.start_peer(f"p{i + 1}") for i in range(count)]
    for peer in peers:
        await peer.connected.wait()
        await peer.directory.joined.wait()
    return peers


async def until(condition, within_s=WITHIN_S):
    with trio.fail_after(within_s):
        while not condition():
            await trio.sleep(0.05)


async def met(network, one, *others):
    """Have the others subscribe to what the first has, so that there are links between them."""
    for peer in (one, *others):
        await peer.subscribe(Pattern.parse("//a{cont}"))
    await network.source.publish("source", "d", "k", b"<r><a/></r>")
    await until(lambda: {peer.site for peer in others} <= set(one.links.sites))


def cut_off_from_source(peer):
    """Let a peer not reach the source any more."""
    find = peer.links._find

    async def elsewhere(site):
        return () if site == "source" else await find(site)

    peer.links._find = elsewhere
    peer.links._wires["source"].scope.cancel()


def key_number(daemon):
    return daemon.credential.settings.dht_keys.current.number


async def test_who_cannot_reach_the_source_learns_of_a_revocation_from_a_neighbour(tmp_path):
    async with live_network(tmp_path) as network:
        one, two, three = await started(network, 3)
        await met(network, one, two, three)
        cut_off_from_source(one)
        await until(lambda: "source" not in one.links.sites)
        await network.source.revoke("p2")
        await until(lambda: "p2" not in one.links.sites and key_number(one) == 2)
        assert one.links.revocations.number == 1
        assert three.links.revocations.number == 1
        assert key_number(two) == 1


async def test_a_neighbour_that_only_hears_the_number_asks_for_the_list_and_the_key(tmp_path, monkeypatch):
    async with live_network(tmp_path) as network:
        one, two, three = await started(network, 3)
        await met(network, one, two, three)
        cut_off_from_source(one)
        await until(lambda: "source" not in one.links.sites)
        monkeypatch.setattr(three.membership.news, "_tell_neighbours", lambda: None)
        await network.source.revoke("p2")
        await until(lambda: "p2" not in one.links.sites and key_number(one) == 2)
        assert one.links.revocations.number == 1


async def test_the_key_is_asked_for_again_until_it_is_here(tmp_path, monkeypatch):
    async with live_network(tmp_path) as network:
        (one,) = await started(network, 1)
        monkeypatch.setattr(network.source, "tell", lambda site, what, body: None)
        told = network.source.members.dht_key

        def not_yet():
            raise NoAnswer("ask later")

        await network.source.revoke("p9")
        monkeypatch.setattr(network.source.members, "dht_key", not_yet)
        await until(lambda: one.links.revocations.number == 1)
        assert key_number(one) == 1
        monkeypatch.setattr(network.source.members, "dht_key", told)
        await until(lambda: key_number(one) == 2)


async def test_a_revoked_peer_is_out_of_the_dht_within_ten_seconds(tmp_path):
    async with live_network(tmp_path) as network:
        one, two, three = await started(network, 3)
        stay = [network.source, one, three]
        await until(lambda: all(knows(daemon, two) for daemon in stay))
        with trio.fail_after(WITHIN_S):
            await network.source.revoke("p2")
            while any(knows(daemon, two) for daemon in stay):
                await trio.sleep(0.05)
        # What it holds it holds; of what comes it learns nothing.
        name = (await one.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        assert await three.directory.announce(ADDRESSES) == 2
        assert await one.directory.find_site("p3") == ADDRESSES
        assert await two.directory.find_site("p3") in ((), three.own_addresses())
        assert await two.directory.find_configuration(name) is None
        assert await two.directory.announce(two.own_addresses()) == 0
        assert all(not knows(daemon, two) for daemon in stay)
        # Those who stay have lost nobody.
        assert all(knows(daemon, other) for daemon in stay for other in stay if other is not daemon)


def knows(daemon, other):
    """Whether a daemon has the node of another in its routing table."""
    return other.directory.port in [address.port for address in daemon.directory.nodes]


@pytest.fixture
def short_grace(monkeypatch):
    """Let the previous key be accepted for a second only."""
    monkeypatch.setattr(directory, "_SETTINGS", replace(directory._SETTINGS, grace_s=1.0))


@pytest.mark.usefixtures("short_grace")
async def test_who_gets_the_new_key_late_is_found_again(tmp_path):
    async with live_network(tmp_path) as network:
        one, two = await started(network, 2)
        cut_off = two.links._find
        cut_off_from_source(two)
        await until(lambda: "p2" not in network.source.links.sites)
        await network.source.revoke("p9")
        await until(lambda: not knows(network.source, two) and not knows(one, two))
        two.links._find = cut_off
        await until(lambda: key_number(two) == 2, 30)
        await until(lambda: knows(network.source, two) and knows(one, two), 30)
        assert two.links.revocations.number == 1


@pytest.mark.usefixtures("short_grace")
async def test_a_node_whose_key_another_has_replaced_hears_nobody_for_long(tmp_path):
    async with live_network(tmp_path) as network:
        (one,) = await started(network, 1)
        news = network.source.links.revocations.extended(
            network.source.authority.intermediate, datetime.now(UTC), dht_key=2, sites=["p9"]
        )
        one.membership.news.take_list(news.encoded)
        await until(lambda: one.directory.nodes == [])
        assert await one.directory.announce(ADDRESSES) == 0
        one.identity.take_dht_key(2, fresh_dht_key(2).secret)
        assert one.directory._node.dht._node.seal.keys.accepted(0) != []


async def test_a_key_is_given_only_beside_the_list_that_names_it(tmp_path):
    async with live_network(tmp_path) as network:
        one, two = await started(network, 2)
        news, member = one.membership.news, two.credential.member
        assert news.told(member, "your_dht_key", None)["number"] == 1
        one.identity.take_dht_key(2, fresh_dht_key(2).secret)
        with pytest.raises(NotPermitted, match="list 0 does not let it have the DHT key 2"):
            news.told(member, "your_dht_key", None)
        revoked = network.source.links.revocations.extended(
            network.source.authority.intermediate, datetime.now(UTC), dht_key=2, sites=["p2"]
        )
        news.take_list(revoked.encoded)
        with pytest.raises(NotPermitted, match="list 1"):
            news.told(member, "your_dht_key", None)


async def test_a_neighbour_cannot_give_a_key_or_an_old_list(tmp_path):
    async with live_network(tmp_path) as network, trio.open_nursery() as nursery:
        one, two = await started(network, 2)
        old = network.source.links.revocations.encoded
        await network.source.revoke("p9")
        await until(lambda: key_number(one) == key_number(two) == 2)
        await network.stop("p2")
        ear, _ = await in_place_of(nursery, two, one)
        with pytest.raises(NoAnswer, match="source"):
            await ear.questions.ask("p1", "dht_key", {"number": 9, "secret": bytes(32)})
        with pytest.raises(NoAnswer):
            await ear.questions.ask("p1", "revocations", b"rubbish")
        assert await ear.questions.ask("p1", "revocations", old) is True  # it is behind, and will be told
        assert (key_number(one), one.links.revocations.number) == (2, 1)
        with pytest.raises(StaleList):
            one.membership.news.take_list(old)
        with pytest.raises(NotPermitted, match="another DHT key than 2"):
            one.membership.news._take_key_of("p2", {"number": 7, "secret": bytes(32)})
        nursery.cancel_scope.cancel()


async def test_the_key_of_the_source_replaces_what_a_neighbour_said(tmp_path):
    async with live_network(tmp_path) as network:
        (one,) = await started(network, 1)
        right = one.credential.settings.dht_keys.current
        wrong = replace(right, secret=bytes(32))
        one.identity.replaced_by(
            one.credential.with_settings(
                replace(one.credential.settings, dht_keys=replace(one.credential.settings.dht_keys, current=wrong))
            )
        )
        one.identity.take_dht_key(right.number, right.secret)
        assert one.credential.settings.dht_keys.current == right

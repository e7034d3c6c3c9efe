"""Peers while the source is away: they find each other through the DHT, and go on feeding what they have."""

import pytest
import trio

from overlay.identity import Address
from peer.daemon import alone
from peer.daemon.remembered import Remembered
from tests.peer.daemon.network import live_network, rows
from tests.peer.daemon.test_live_network import wanted
from xmlmatch import Pattern


async def until(condition):
    with trio.fail_after(60):
        while not condition():
            await trio.sleep(0.02)


async def until_found(look):
    with trio.fail_after(60):
        while not (found := await look()):
            await trio.sleep(0.1)
    return found


async def three_peers(network):
    """Start three peers, of which the first feeds the second; return them and their subscriptions."""
    peers = [await network.start_peer(f"p{i}") for i in (1, 2, 3)]
    for peer in peers:
        await peer.connected.wait()
        await peer.directory.joined.wait()
    first = (await peers[0].subscribe(Pattern.parse("//a{cont}")))["subscription"]
    second = (await peers[1].subscribe(Pattern.parse("//a{cont}")))["subscription"]
    return peers, first, second


async def test_peers_that_restart_without_the_source_find_each_other_and_feed_each_other(tmp_path):
    async with live_network(tmp_path) as network:
        (one, two, three), first, second = await three_peers(network)
        published = {}
        for n in range(4):
            if n == 2:
                await rows(two, second, max(published))
                await network.stop("p2")
            body = f"<r><a>{n}</a></r>".encode()
            published[(await network.source.publish("source", "d", f"k{n}", body))["number"]] = body
        last = max(published)
        await rows(one, first, last)
        old = one.port
        await network.stop("p1")
        await network.stop("source")
        # The first comes back elsewhere: only the DHT, by way of the third, can tell where.
        one = await network.start_peer("p1")
        assert one.port != old
        assert Address("127.0.0.1", three.port) in one._whereabouts.bootstrap
        two = await network.start_peer("p2")
        assert await rows(two, second, last) == wanted("//a{cont}", published)
        assert "p1" in two.links.sites
        assert not two.connected.is_set()


async def test_a_peer_finds_its_newest_configuration_in_the_dht(tmp_path, monkeypatch):
    monkeypatch.setattr(alone, "_FIRST_S", 0.2)
    async with live_network(tmp_path) as network:
        (_, two, three), _, second = await three_peers(network)
        before = two.host.subscriptions[second].configuration.version
        await network.stop("p2")
        await network.source._renew()  # signs everything anew, as newer versions
        newest = network.source.catalog._signed[second]

        async def is_pushed():
            return await three.directory.find_configuration(second) == newest

        await until_found(is_pushed)
        await network.stop("source")
        two = await network.start_peer("p2")
        await until(lambda: two.host.subscriptions[second].configuration.version > before)
        await until(lambda: two.store_file.hosted(second).configuration == newest)
        assert two.hosted.configure(newest) == ""


async def test_where_the_source_is_now_is_found_in_the_dht(tmp_path, monkeypatch):
    monkeypatch.setattr(alone, "_FIRST_S", 0.2)
    monkeypatch.setattr(alone, "_AGAIN_S", 0.5)
    async with live_network(tmp_path) as network:
        (one, _, _), _, _ = await three_peers(network)
        await network.stop("source")
        old = network._source_ports
        network._source_ports = (0, 0)
        await network.start_source()
        assert network._source_ports != old
        await until(lambda: one.connected.is_set() and "source" in one.links.sites)
        assert one.credential.settings.source == (Address("127.0.0.1", network.source.port),)


@pytest.fixture
def remembered(tmp_path):
    return Remembered(tmp_path, None)


def test_the_machines_met_last_are_remembered(tmp_path, remembered):
    for i in range(100):
        remembered.keep_machines({f"p{i}": (Address("host.example", 1000 + i),)})
    remembered.keep_machines({"p40": (Address("host.example", 7),)})
    found = Remembered(tmp_path, None).machines()
    assert len(found) == 64
    assert list(found)[-2:] == ["p99", "p40"]
    assert found["p40"] == (Address("host.example", 7),)


def test_nodes_are_remembered_and_not_forgotten_by_who_is_alone(tmp_path, remembered):
    some = (Address("192.0.2.1", 5), Address("::1", 6))
    remembered.keep_nodes(some)
    remembered.keep_machines({"p1": some[:1]})
    remembered.keep_nodes([])
    again = Remembered(tmp_path, None)
    assert (again.nodes(), again.machines()) == (some, {"p1": some[:1]})


@pytest.mark.parametrize(
    "data", [b"", b"[]", b'{"machines": {"p1": ["nonsense"]}}', b'{"nodes": 5}', b"[" * 100_000]
)
def test_what_cannot_be_read_is_not_remembered(tmp_path, data):
    (tmp_path / "known.json").write_bytes(data)
    (tmp_path / "known.json").chmod(0o600)
    assert Remembered(tmp_path, None).machines() == {}

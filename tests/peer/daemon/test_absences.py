"""Machines that stay away are planned around, also by a source that restarts, and used again when they return."""

from contextlib import asynccontextmanager

import trio

from peer.daemon.source_state import SourceSettings
from tests.peer.daemon import network as networks
from tests.peer.daemon.network import live_network, rows
from tests.peer.daemon.test_live_network import wanted
from xmlmatch import Pattern

TEXT = "//a{cont}"


@asynccontextmanager
async def impatient(tmp_path, monkeypatch, away_s=1.0):
    """Run a network whose source soon plans around those who are away."""
    monkeypatch.setattr(networks, "SourceSettings", lambda *where: SourceSettings(*where, away_s=away_s))
    async with live_network(tmp_path) as network:
        for name in ("p1", "p2", "p3"):
            peer = await network.start_peer(name)
            await peer.connected.wait()
        yield network


def named(network, subscription):
    """Return the machines that a subscription's configuration names."""
    choices = network.source.catalog.steering.configuration(subscription).choices
    return {one.site for choice in choices for one in choice}


async def until(condition):
    with trio.fail_after(60):
        while not condition():
            await trio.sleep(0.05)


async def test_who_stays_away_is_planned_around_and_used_again(tmp_path, monkeypatch):
    async with impatient(tmp_path, monkeypatch) as network:
        names = [
            (await network.peers[p].subscribe(Pattern.parse(TEXT)))["subscription"] for p in ("p1", "p2", "p3")
        ]
        assert "p1" in named(network, names[1])
        await network.stop("p1")
        await until(lambda: network.source.status()["away"] == ["p1"])
        await until(lambda: "p1" not in named(network, names[1]) | named(network, names[2]))
        await network.stop("source")
        await network.start_source()
        assert network.source.status()["away"] == ["p1"]
        assert "p1" not in named(network, names[1]) | named(network, names[2])
        published = {}
        for n in range(3):
            body = f"<r><a>{n}</a></r>".encode()
            published[(await network.source.publish("source", f"d{n}", f"k{n}", body))["number"]] = body
        await network.start_peer("p1")
        await until(lambda: network.source.status()["away"] == [])
        for name, peer in zip(names, ("p1", "p2", "p3"), strict=True):
            assert await rows(network.peers[peer], name, max(published)) == wanted(TEXT, published)

        assert not network.source.catalog.is_aside("p1")


async def test_a_broken_connection_is_no_death(tmp_path, monkeypatch):
    async with impatient(tmp_path, monkeypatch) as network:
        one = network.peers["p1"]
        before = one.connected
        one._shuns_until = float("inf")  # it does not dial the source
        network.source.links.hang_up("p1", "test")
        await until(lambda: "p1" not in network.source.links.sites)
        await until(lambda: "p1" in network.source.links.sites)  # so the source has dialled it
        await until(lambda: one.connected.is_set() and one.connected is not before)
        assert network.source.status()["away"] == []

"""Spaces when something goes wrong: answers that are lost, and disks that are full."""

import sqlite3
from contextlib import closing

import pytest

from peer.daemon import peer_spaces
from peer.daemon.questions import Unreachable
from peer.storage.errors import DiskFull
from tests.peer.daemon.network import live_network
from tests.peer.daemon.test_spaces import MARKET, publish, received, started, until


async def test_an_end_that_is_asked_for_again_because_the_answer_was_lost_is_where_it_was(tmp_path):
    async with live_network(tmp_path) as network:
        (peer,) = await started(network, 1)
        told = await peer.spaces.subscribe("market", "price < 50")
        name, key = told["subscription"], told["space"]
        end = (await peer.ask_source("space_unsubscribe", {"space": key, "subscription": name}))["end"]
        await publish(network, {"price": "1"}, "late")
        assert (await peer.spaces.unsubscribe(name))["end"] == end
        assert await received(peer, name, end) == {}
        assert peer.spaces.standing() == []
        await network.stop("source")
        await network.start_source()
        again = await peer.ask_source("space_unsubscribe", {"space": key, "subscription": name})
        assert again["end"] == end
        assert (await peer.spaces.unsubscribe(name))["end"] == end, "the machine knows"


async def test_nothing_is_kept_for_a_subscription_whose_name_nobody_was_told(tmp_path, monkeypatch):
    async with live_network(tmp_path) as network:
        (peer,) = await started(network, 1)

        async def unheard(what, body, ask=peer.ask_source):
            await ask(what, body)
            raise Unreachable("the connection to source broke")

        with monkeypatch.context() as patch:
            patch.setattr(peer.spaces, "_ask", unheard)
            with pytest.raises(Unreachable):
                await peer.spaces.subscribe("market", "price < 50")
        name = (await peer.spaces.subscribe("market", "price < 50"))["subscription"]
        number = await publish(network, {"price": "1"}, "k")
        assert await received(peer, name, number) == {number: {"price": "1"}}
        with closing(sqlite3.connect(tmp_path / "p0" / "spaces.sqlite")) as store:
            assert store.execute("SELECT DISTINCT subscription FROM messages").fetchall() == [(name,)]


async def test_a_space_that_found_no_room_on_the_disk_can_be_made_later(tmp_path, monkeypatch):
    async with live_network(tmp_path) as network:
        spaces = network.source.spaces

        def refuse(*_):
            raise DiskFull(tmp_path)

        with monkeypatch.context() as patch:
            patch.setattr(spaces._records, "put_space", refuse)
            with pytest.raises(DiskFull):
                spaces.create(MARKET)
        assert spaces.create(MARKET) == {"space": "market", "is_new": True}
        assert [one["space"] for one in spaces.listed()] == ["market"]


async def test_a_peer_without_room_for_a_space_goes_on_and_takes_part_later(tmp_path, monkeypatch):
    monkeypatch.setattr(peer_spaces, "_LEARN_S", 0.1)
    async with live_network(tmp_path) as network:
        peer = await network.start_peer("p0")
        await peer.connected.wait()
        tries = []

        def refuse(*asked):
            tries.append(asked)
            raise DiskFull(tmp_path)

        with monkeypatch.context() as patch:
            patch.setattr(peer.spaces._store, "put_space", refuse)
            network.source.spaces.create(MARKET)
            await until(lambda: len(tries) > 2)
            assert peer.spaces.nodes == {}
        await until(lambda: len(peer.spaces.nodes) == 1)

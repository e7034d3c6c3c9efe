"""Reading what has come in spaces: as it arrives, with cursors, over HTTP; and what is dropped is a gap."""

import json
from contextlib import aclosing, asynccontextmanager

import msgspec
import pytest
import trio

from peer.cli import main
from peer.client import Client
from peer.daemon import space_messages
from peer.daemon.control import serve_control
from peer.daemon.controls import peer_controls
from peer.daemon.questions import NoAnswer
from peer.daemon.space_messages import SpaceReading
from peer.errors import CommandError
from peer.http.limits import HttpLimits
from peer.http.pages import peer_server
from peer.progress import Progress
from peer.storage.errors import LocalMisuse
from peer.storage.result_values import Cursor, DropCursor
from peer.storage.space_store import SpaceStore, SpaceSubscription
from tests.peer.daemon.network import live_network
from tests.peer.daemon.test_spaces import publish, received, started
from tests.peer.http.client import ask, open_events
from tests.peer.http.daemons import TOKEN


class Setting:
    """A peer with a subscription in a space, whose control socket is served."""

    def __init__(self, network, peer, name):
        self.network, self.peer, self.name = network, peer, name
        self.home, self.sent = network.folder / "p0", []

    async def publish(self, count):
        for _ in range(count):
            n = len(self.sent)
            self.sent.append(await publish(self.network, {"price": str(n)}, f"k{n}"))
        await received(self.peer, self.name, self.sent[-1])

    async def command(self, *words):
        """Run a command as a user does, beside the daemon."""
        return await trio.to_thread.run_sync(main, [*words, "--home", str(self.home)])


@asynccontextmanager
async def setting(folder):
    async with live_network(folder) as network, trio.open_nursery() as nursery:
        (peer,) = await started(network, 1)
        name = (await peer.spaces.subscribe("market", "price < 1000"))["subscription"]
        await nursery.start(serve_control, folder / "p0", peer_controls(peer))
        yield Setting(network, peer, name)
        nursery.cancel_scope.cancel()


def numbers(text):
    return [one["message"] for one in map(json.loads, text.splitlines()) if "message" in one]


async def test_who_follows_gets_messages_as_they_come_until_the_subscription_has_ended(tmp_path):
    async with setting(tmp_path) as found, trio.open_nursery() as nursery:
        await found.publish(2)
        seen = []
        note = seen.append

        async def follow():
            async with aclosing(Client(found.home).read(found.name, since=found.sent[0])) as entries:
                async for one in entries:
                    note(one["message"])

        with trio.fail_after(60):
            nursery.start_soon(follow)
            while len(seen) < 1:
                await trio.sleep(0.02)
            await found.publish(2)
            while len(seen) < 3:
                await trio.sleep(0.02)
            await found.peer.spaces.unsubscribe(found.name)
            while nursery.child_tasks:
                await trio.sleep(0.02)
        assert seen == found.sent[1:]


async def test_messages_go_on_where_the_last_reader_of_the_name_was(tmp_path, capsys):
    async with setting(tmp_path) as found:
        await found.publish(2)
        read = ("messages", found.name, "--cursor", "c")
        assert await found.command(*read) == 0
        assert numbers(capsys.readouterr().out) == found.sent
        await found.command(*read)
        assert numbers(capsys.readouterr().out) == []
        await found.publish(2)
        await found.command("messages", found.name, "--since", str(found.sent[2]))
        assert numbers(capsys.readouterr().out) == found.sent[3:]
        await found.command(*read)
        assert numbers(capsys.readouterr().out) == found.sent[2:]
        await found.command("cursors", "list", "--json")
        (one,) = map(json.loads, capsys.readouterr().out.splitlines())
        assert (one["subscription"], one["cursor"], one["behind"]) == (found.name, "c", 0)
        await found.command("cursors", "remove", found.name, "c")
        capsys.readouterr()
        await found.command(*read)
        assert numbers(capsys.readouterr().out) == found.sent
        with pytest.raises(CommandError, match="no subscription"):
            await Client(found.home).ask("move_cursor", subscription="c-0", cursor="c", upto=1)


async def test_a_cursor_in_a_space_is_where_it_was_after_a_restart(tmp_path):
    async with live_network(tmp_path) as network:
        (peer,) = await started(network, 1)
        name = (await peer.spaces.subscribe("market", "price < 1000"))["subscription"]
        last = await publish(network, {"price": "1"}, "k")
        await received(peer, name, last)
        assert await peer.spaces.cursors.begin(name, "c", 0) < last
        await peer.spaces.cursors.move(name, "c", last)
        with pytest.raises(NoAnswer, match="beyond"):
            await peer.spaces.cursors.move(name, "c", last + 1000)
        await network.stop("p0")
        peer = await network.start_peer("p0")
        assert await peer.spaces.cursors.begin(name, "c", 0) == last


async def test_messages_are_streamed_over_http_and_a_cursor_moves_when_the_client_says_so(tmp_path):
    async with setting(tmp_path) as found, trio.open_nursery() as nursery:
        port = await nursery.start(peer_server(found.peer, found.home, TOKEN, HttpLimits()).serve, 0)
        await found.publish(2)
        base = f"/subscriptions/{found.name}"
        page = await ask(port, f"{base}/results?cursor=c", token=TOKEN)
        assert [one["message"] for one in page.lines[:-1]] == found.sent
        assert (await ask(port, f"{base}/cursors/c?upto={found.sent[0]}", method="PUT", token=TOKEN)).status == 200
        stream, events = await open_events(port, f"{base}/stream?cursor=c", TOKEN)
        first = await events.next()
        assert (first["event"], first["id"]) == ("message", str(found.sent[1]))
        assert json.loads(first["data"]) == {"message": found.sent[1], "attributes": {"price": "1"}}
        await stream.aclose()
        listed = (await ask(port, "/subscriptions", token=TOKEN)).json
        assert [one["subscription"] for one in listed["spaces"]] == [found.name]
        assert (await ask(port, "/subscriptions/c-0/stream", token=TOKEN)).status == 404
        nursery.cancel_scope.cancel()


def test_what_a_cursor_has_yet_to_read_is_kept_and_what_is_dropped_is_a_gap(tmp_path):
    store = SpaceStore(tmp_path / "spaces.sqlite")
    store.put_subscriptions([SpaceSubscription("s", "market@1", "price < 9", 0, None)])
    store.receive([("s", n, msgspec.msgpack.encode({})) for n in range(1, 21)], [("market@1", 20, 0)])
    store.commit([Cursor("s", "c", 5)])

    def kept():
        return [n for n, _ in store.messages("s", 0, 99, 99)]

    store.trim("s", 10, 18)
    assert (kept(), store.gaps("s", 0, 99)) == (list(range(6, 21)), [(0, 5)])
    store.commit([Cursor("s", "c", 3), Cursor("s", "c", 8)])
    store.trim("s", 10, 11)
    assert (kept(), store.gaps("s", 0, 99)) == (list(range(10, 21)), [(0, 9)]), "beyond the hard limit"
    store.commit([DropCursor("s", "c")])
    store.trim("s", 4, 18)
    assert (kept(), store.gaps("s", 0, 99), store.cursors("s")) == ([17, 18, 19, 20], [(0, 16)], {})
    assert store.gaps("s", 16, 99) == [], "nobody who has read it is told of it"
    with pytest.raises(LocalMisuse, match="beyond 20"):
        store.commit([Cursor("s", "c", 21)])
    store.close()


@asynccontextmanager
async def a_reading(folder, *, end=None, given_up=0, arrived=range(1, 21)):
    """Lend a store with messages of one subscription, complete up to 20, and what reads it."""
    store = SpaceStore(folder / "spaces.sqlite")
    one = SpaceSubscription("s", "market@1", "price < 9", 0, end)
    store.put_subscriptions([one])
    store.receive([("s", n, msgspec.msgpack.encode({})) for n in arrived], [("market@1", 20, given_up)])
    yield store, SpaceReading(store, {"s": one}, store.complete)
    store.close()


def short(entry):
    return entry["gap"] if "gap" in entry else entry.get("message")


async def test_a_gap_comes_behind_what_has_arrived_of_it_so_that_nobody_goes_on_behind_both(tmp_path):
    async with a_reading(tmp_path, given_up=10, arrived=(4, 10, 12)) as (_, reading):
        progress, seen = Progress(), []
        async for one in reading.entries("s", 0, follow=False):
            assert one.get("message", 99) > progress.upto, "a reader cut off before it would miss it"
            progress.told(one)
            seen.append(short(one))
    assert seen == [4, 10, [0, 10], 12, None]


async def test_what_was_given_up_is_a_gap_also_where_the_subscription_ended_before(tmp_path):
    async with a_reading(tmp_path, end=7, given_up=15, arrived=(4,)) as (_, reading):
        seen = [short(one) async for one in reading.entries("s", 2, follow=False)]
    assert seen == [4, [2, 7], None]


async def test_what_is_dropped_while_somebody_reads_is_a_gap_for_him_too(tmp_path, monkeypatch):
    monkeypatch.setattr(space_messages, "_PAGE", 4)
    async with a_reading(tmp_path) as (store, reading):
        seen = []
        async for one in reading.entries("s", 0, follow=False):
            if short(one) == 4:
                store.trim("s", 10, 10)
            seen.append(short(one))
    assert seen == [1, 2, 3, 4, [4, 10], *range(11, 21), None]


async def test_a_webhook_for_a_space_is_refused_with_what_to_do_instead(tmp_path, capsys):
    async with setting(tmp_path) as found:
        assert await found.command("webhook", "add", found.name, "http://127.0.0.1:1/") == 2
        told = capsys.readouterr().err
        assert "webhooks do not post messages of spaces" in told
        assert f"distributary messages {found.name} --follow" in told

"""A disk without room, and results that a store refuses: the daemon goes on, says so, and nothing is skipped."""

import time
from contextlib import contextmanager

import pytest
import trio

from overlay.identity import InvitationRefused
from peer.daemon.control import serve_control
from peer.daemon.controls import peer_controls, source_controls
from peer.daemon.enrolling import join
from peer.daemon.questions import NotNow
from peer.http.limits import HttpLimits
from peer.http.pages import peer_server, source_server
from peer.storage.errors import DiskFull, RemoteStaleGeneration
from peer.storage.result_values import results_of
from peer.watched_folder import Settling, WatchedFolder
from peer.watching import Watching
from tests.peer.daemon.network import live_network, rows
from tests.peer.daemon.test_live_network import wanted
from tests.peer.http.client import ask
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
            with pytest.raises(NotNow, match="no new subscriptions"):
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
            with pytest.raises(NotNow, match="the disk is full"):
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


LARGE = BODY % (1, b"y" * 500_000)
TOKEN = "t" * 40


async def publisher_and_source(network):
    one = await network.start_peer("p1", ("subscriber", "publisher"))
    await one.connected.wait()
    network.source._committer.retry_s = 0.05
    return one


class Waits(Exception):
    """A command would wait, and try again."""


@pytest.mark.parametrize("home", ["source", "p1"])
async def test_a_watched_file_waits_while_the_sources_disk_is_full(tmp_path, home):
    async with live_network(tmp_path) as network, trio.open_nursery() as nursery:
        one = await publisher_and_source(network)
        controls = source_controls(network.source) if home == "source" else peer_controls(one)
        await nursery.start(serve_control, tmp_path / home, controls)
        spool, told = tmp_path / "spool", []
        spool.mkdir()
        (spool / "a.xml").write_bytes(LARGE)

        def sleep(_):
            raise Waits

        folder = WatchedFolder(spool, Settling(0.0))
        watching = Watching(tmp_path / home, folder, told.append, sleep=sleep)
        with full(network.source.log), pytest.raises(Waits):
            await trio.to_thread.run_sync(watching.look, time.time() + 10)
        (waiting,) = told
        assert "the disk is full" in waiting["waiting"]
        assert not list(spool.glob(".refused/*"))
        await until(lambda: network.source.status()["storage"] == "" or not network.source.uncommitted)
        folder.close()
        again = WatchedFolder(spool, Settling(0.0))
        with trio.fail_after(30):
            await trio.to_thread.run_sync(Watching(tmp_path / home, again, told.append).look, time.time() + 20)
        assert told[-1]["document"] == "a.xml"
        again.close()
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("home", ["source", "p1"])
async def test_publishing_over_http_is_answered_with_503_while_the_sources_disk_is_full(tmp_path, home):
    async with live_network(tmp_path) as network, trio.open_nursery() as nursery:
        one = await publisher_and_source(network)
        make, daemon = (source_server, network.source) if home == "source" else (peer_server, one)
        port = await nursery.start(make(daemon, tmp_path / home, TOKEN, HttpLimits()).serve, 0)
        with full(network.source.log):
            answer = await ask(port, "/publish?name=x", method="POST", token=TOKEN, body=LARGE)
        assert answer.status == 503
        assert answer.headers["retry-after"] == "5"
        assert "the disk is full" in answer.json["error"]
        answer = await ask(port, "/publish?name=x", method="POST", token=TOKEN, body=LARGE)
        assert answer.status == 201
        nursery.cancel_scope.cancel()


async def test_who_joins_while_the_sources_disk_is_full_is_told_to_come_again_with_the_same_token(tmp_path):
    async with live_network(tmp_path) as network:
        token = network.source.invite("p1", ["subscriber"], 1)["token"]
        put_state = network.source.log.put_state

        def no_room(*_):
            raise DiskFull(tmp_path / "source.sqlite")

        network.source.log.put_state = no_room
        with pytest.raises(InvitationRefused, match="cannot write to its disk; use it again later"):
            await trio.to_thread.run_sync(join, tmp_path / "p1", token)
        network.source.log.put_state = put_state
        await trio.to_thread.run_sync(join, tmp_path / "p1", token)


async def test_a_machine_can_leave_while_the_sources_disk_fills_up(tmp_path):
    async with live_network(tmp_path) as network:
        one = await network.start_peer("p1")
        await one.connected.wait()
        network.source.members.let_go("p1")

        def no_room(*_):
            raise DiskFull(tmp_path / "source.sqlite")

        network.source.log.put_state = no_room
        with trio.fail_after(10):
            await network.source.members.farewell("p1")
            while "p1" in network.source.links.sites:
                await trio.sleep(0.02)
        assert "p1" not in network.source.links.sites


async def test_a_certificate_that_cannot_be_kept_now_is_asked_for_again(tmp_path):
    async with live_network(tmp_path) as network:
        one = await network.start_peer("p1")
        await one.connected.wait()

        def no_room(*_):
            raise DiskFull(tmp_path / "source.sqlite")

        network.source.log.put_state = no_room
        with pytest.raises(NotNow, match="the disk is full"):
            await one.identity.renew_by(one.ask_source)

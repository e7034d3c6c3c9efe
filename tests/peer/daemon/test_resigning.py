"""A machine that leaves for good: others take over, and it is a member no more."""

import json

import pytest
import trio

from overlay.identity import BadCredential
from peer.cli import main
from peer.daemon.control import serve_control
from peer.daemon.controls import peer_controls, source_controls
from peer.daemon.peer_daemon import PeerDaemon, PeerSettings
from peer.daemon.questions import NoAnswer
from peer.daemon.resigning import resign
from tests.peer.daemon.network import live_network, rows
from xmlmatch import Pattern


async def all_of(steps):
    return [step async for step in steps]


async def test_a_machine_leaves_and_those_it_fed_miss_nothing(tmp_path, capsys):
    async with live_network(tmp_path) as network, trio.open_nursery() as nursery:
        one, two = await network.start_peer("p1"), await network.start_peer("p2")
        for peer in (one, two):
            await peer.connected.wait()
        first = (await one.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        second = (await two.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        numbers = [(await network.source.publish("source", "d", "k1", b"<r><a>1</a></r>"))["number"]]
        await rows(two, second, numbers[0])
        await nursery.start(serve_control, tmp_path / "p1", peer_controls(one))
        words = ["network", "leave", "--home", str(tmp_path / "p1"), "--json"]
        with trio.fail_after(60):
            assert await trio.to_thread.run_sync(main, words) == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["network"], told["site"], told["is_source_told"]) == ("test", "p1", True)
        assert one.finished.is_set()
        assert len(one.store_file.entries(first, 0, numbers[0], 1 << 20)) == 1
        await network.stop("p1")
        numbers.append((await network.source.publish("source", "d", "k2", b"<r><a>2</a></r>"))["number"])
        assert list(await rows(two, second, numbers[1])) == numbers
        with trio.fail_after(30):
            while "p1" in network.source.links.sites or two.links.revocations.number < 1:
                await trio.sleep(0.05)
        assert network.source.links.revocations.sites["p1"].number == 1
        assert two.credential.settings.dht_keys.current.number == 2
        assert set(network.source.catalog.owners) == {second}
        with pytest.raises(BadCredential, match=r"left the network test; .*network invite p1"):
            PeerDaemon(tmp_path / "p1", PeerSettings())
        assert not (tmp_path / "p1" / "identity" / "key.pem").exists()

        (tmp_path / "p1" / "control.sock").unlink()  # as of a daemon that has ended

        async def said(status, *words):
            assert await trio.to_thread.run_sync(main, [*words, "--home", str(tmp_path / "p1")]) == status
            return capsys.readouterr()

        lines = [json.loads(line) for line in (await said(0, "results", first)).out.splitlines()]
        assert [one["document"] for one in lines if "row" in one] == numbers[:1]
        assert f"there are: {first}" in (await said(2, "results", "s-other")).err
        for words in (["tail", first], ["results", first, "--cursor", "c"], ["network", "leave"], ["status"]):
            assert "has left the network test" in (await said(2, *words)).err
        machines = (await source_controls(network.source)["status"]({}))["machines"]
        assert [(one["site"], one["departed"]) for one in machines] == [("p1", "left"), ("p2", "")]

        await network.join("p1")  # and comes back
        one = await network.start_peer("p1")
        with trio.fail_after(30):
            await one.connected.wait()
        assert (await one.subscribe(Pattern.parse("//a{cont}")))["subscription"] != first
        assert network.source.members.departed.how("p1") == ""
        nursery.cancel_scope.cancel()


async def test_without_the_source_it_takes_force(tmp_path):
    async with live_network(tmp_path) as network:
        one = await network.start_peer("p1")
        await one.connected.wait()
        await one.subscribe(Pattern.parse("//a{cont}"))
        await network.stop("source")
        one.connected = trio.Event()

        async def ask_source(what, body):
            raise NoAnswer("source is not connected")

        one.ask_source = ask_source  # it would wait for half a minute
        with pytest.raises(NoAnswer, match="--force"):
            await all_of(resign(one, wait_s=5, is_forced=False))
        assert not one.finished.is_set()
        told = (await all_of(resign(one, wait_s=5, is_forced=True)))[-1]
        assert told["is_source_told"] is False
        assert one.finished.is_set()


def test_a_machine_whose_daemon_does_not_run_leaves_by_force_only(run, tmp_path):
    home = tmp_path / "source"
    assert run("network", "init", "news", "--home", home).status == 0
    done = run("network", "leave", "--home", home)
    assert (done.status, len(done.err.splitlines())) == (2, 1)
    assert "--force" in done.err
    assert "is the source's" in run("network", "leave", "--home", home, "--force").err
    assert (home / "identity" / "key.pem").exists()


async def test_a_stopped_machine_is_marked_and_says_what_to_do_at_the_source(tmp_path, run):
    async with live_network(tmp_path) as network:
        await network.start_peer("p1")
        await network.stop("p1")
        done = run("network", "leave", "--force", "--home", tmp_path / "p1")
        assert done.status == 0
        assert "network revoke p1" in done.out
        assert "left" in run("network", "leave", "--force", "--home", tmp_path / "p1").err
        assert run("peer", "run", "--home", tmp_path / "p1").err.startswith("distributary: ")

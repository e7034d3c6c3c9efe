"""A machine with more configurations than one frame can carry; frames are made small here instead."""

import pytest
import trio

from overlay.wire import frames
from peer.daemon.in_parts import in_parts
from peer.daemon.questions import NoAnswer
from tests.peer.daemon.network import live_network
from xmlmatch import Pattern

COUNT = 40


async def with_many(network, name):
    """Start a peer with many subscriptions."""
    peer = await network.start_peer(name)
    await peer.connected.wait()
    for i in range(COUNT):
        await peer.subscribe(Pattern.parse(f"//a[@k='{i}']/b{{cont}}"))
    return peer


def make_frames_small(monkeypatch, peer):
    """Let frames carry about a third of the peer's configurations."""
    total = sum(len(one.configuration) for one in peer.store_file.subscriptions())
    monkeypatch.setattr(frames, "MAX_FRAME", total // 3)


def versions(peer):
    return {name: hosted.configuration.version for name, hosted in peer.host.subscriptions.items()}


async def until(condition):
    with trio.fail_after(10):
        while not condition():
            await trio.sleep(0.02)


async def test_a_peer_gets_all_its_configurations_when_it_connects_again(tmp_path, monkeypatch):
    async with live_network(tmp_path) as network:
        peer = await with_many(network, "p1")
        make_frames_small(monkeypatch, peer)
        await network.stop("p1")
        await network.source._renew()  # signs all of them anew
        peer = await network.start_peer("p1")
        with trio.fail_after(10):
            await peer.connected.wait()
        assert peer.membership.trouble == ""
        assert len(versions(peer)) == COUNT
        signed = network.source.catalog._signed
        assert all(hosted.feeding.permit == signed[name] for name, hosted in peer.host.subscriptions.items())


async def test_a_new_plan_reaches_a_peer_with_many_subscriptions(tmp_path, monkeypatch):
    async with live_network(tmp_path) as network:
        peer = await with_many(network, "p1")
        make_frames_small(monkeypatch, peer)
        assert (await network.source.adopt(0, []))["epoch"] == 1
        await until(lambda: {version.epoch for version in versions(peer).values()} == {1})


async def test_a_part_that_is_not_answered_does_not_keep_the_next_from_being_told(tmp_path, monkeypatch):
    async with live_network(tmp_path) as network:
        peer = await with_many(network, "p1")
        make_frames_small(monkeypatch, peer)
        ask, asked = network.source.questions.ask, []

        async def first_fails(site, what, body):
            asked.append(len(body))
            if len(asked) == 1:
                raise NoAnswer("it takes too long")
            return await ask(site, what, body)

        monkeypatch.setattr(network.source.questions, "ask", first_fails)
        await network.source.adopt(0, [])
        await until(lambda: sum(asked) == COUNT)
        await until(lambda: sum(one.epoch for one in versions(peer).values()) == COUNT - asked[0])
        assert len(asked) > 1


async def test_who_does_not_ask_for_parts_is_told_all_at_once(tmp_path):
    async with live_network(tmp_path) as network:
        peer = await with_many(network, "p1")
        told = await peer.questions.ask("source", "greet", {"addresses": []})
        assert len(told["configurations"]) == COUNT
        assert "more" not in told


async def test_a_subscription_withdrawn_here_is_withdrawn_again_from_whatever_part_it_comes_in(
    tmp_path, monkeypatch
):
    async with live_network(tmp_path) as network:
        peer = await with_many(network, "p1")
        make_frames_small(monkeypatch, peer)
        last = max(peer.host.subscriptions)
        peer.hosted._ended.add(last)  # the source was restored, and does not know
        assert await peer.membership.greet() is True
        assert last not in network.source.catalog.owners


@pytest.mark.parametrize(
    ("sizes", "parts"), [([], []), ([9], [[9]]), ([3, 3, 2, 1, 9, 9, 1], [[3, 3, 2], [1], [9], [9], [1]])]
)
def test_parts_are_bounded_by_bytes_and_hold_at_least_one(monkeypatch, sizes, parts):
    monkeypatch.setattr(frames, "MAX_FRAME", 64)
    assert [[len(body) for body in part] for part in in_parts(map(bytes, sizes))] == parts

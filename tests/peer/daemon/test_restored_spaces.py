"""Spaces of a source restored from an older backup, over real links: nothing double, nothing silently missing."""

import random

import trio

from peer.daemon.declared import decode_declared
from peer.daemon.source_backup import restore_home
from rewriting.filters import Filter
from tests.peer.daemon.network import live_network
from tests.peer.daemon.test_spaces import a_message, publish, read, received, started, until


class Story:
    """What was published in the space, and which subscriptions there are: where, their filter, from where on."""

    def __init__(self, network):
        self.network, self.sent, self.wanted, self._rng = network, {}, {}, random.Random(5)
        self.ends = {}

    async def publish(self, count):
        for _ in range(count):
            message = a_message(self._rng)
            self.sent[await publish(self.network, message, f"k{len(self.sent)}")] = message
        return max(self.sent)

    async def subscribe(self, peer, text):
        told = await peer.spaces.subscribe("market", text)
        self.wanted[told["subscription"]] = Filter.parse(text), told["start"]
        return told["subscription"]

    async def restore(self):
        await self.network.stop("source")
        told = restore_home(self.network.folder / "backup", self.network.folder / "restored")
        self.network.source_home = "restored"
        await self.network.start_source()
        return told

    async def is_exact(self, peer, name, upto):
        """Check that a subscription has every message once, or says that it is in a gap; return its gaps."""
        with trio.fail_after(60):
            while (found := await read(peer, name))[-1]["complete"] < min(upto, self.ends.get(name, upto)):
                await trio.sleep(0.05)
        gaps = [one["gap"] for one in found if "gap" in one]
        numbers = [one["message"] for one in found if "message" in one]
        assert numbers == sorted(set(numbers))
        wanted, start = self.wanted[name]
        end = self.ends.get(name, upto)
        truth = {n: one for n, one in self.sent.items() if start < n <= end and wanted.matches(one)}
        assert {one["message"]: one["attributes"] for one in found if "message" in one}.items() <= truth.items()
        for number in truth.keys() - set(numbers):
            assert any(after < number <= end for after, end in gaps), (number, gaps)
        return gaps


def is_settled(network, peers):
    """Whether every machine knows the map of the space as the source has it, and has all its zones."""
    (body,) = network.source.log.spaces.spaces().values()
    key, history = decode_declared(body).key, network.source.spaces.origins["market"].catalog.history
    nodes = [peer.spaces.nodes.get(key) for peer in peers]
    return all(
        node is not None and len(peer.spaces.nodes) == 1 and node.known.version == history.now.version
        and set(node.keeper.tables) == set(history.now.owned_by(node.me)) and node.keeper.has(node.keeper.tables)
        for node, peer in zip(nodes, peers, strict=True)
    )  # fmt: skip


async def test_spaces_come_back_with_what_machines_announce_and_the_rest_is_a_gap(tmp_path):
    async with live_network(tmp_path) as network:
        story, peers = Story(network), await started(network, 3)
        kept = await story.subscribe(peers[0], "price < 50")
        gone = await story.subscribe(peers[1], "price > 20")
        await story.is_exact(peers[0], kept, await story.publish(4))
        told = await network.source.backup(tmp_path / "backup")
        for i in range(6):  # grants and versions of the map that the backup does not have
            await story.subscribe(peers[i % 3], f"price > {10 * i}")
        network.source.spaces.rebalance()
        story.ends[gone] = (await peers[1].spaces.unsubscribe(gone))["end"]
        last = await story.publish(4)
        for name in story.wanted:
            peer = next(one for one in peers if name in one.spaces.subscriptions)
            assert await story.is_exact(peer, name, last) == []
        version = network.source.spaces.origins["market"].catalog.version

        restored = await story.restore()
        assert restored["kept"] == told["last"] < last < restored["base"]
        assert network.source.spaces.origins["market"].catalog.version < version
        await until(lambda: not any(one["is_lost"] for peer in peers for one in peer.spaces.standing()))
        await until(lambda: is_settled(network, peers))
        new = await story.publish(6)
        assert set(network.source.spaces.origins["market"].catalog.live) == story.wanted.keys() - {gone}
        for name in story.wanted.keys() - {gone}:
            peer = next(one for one in peers if name in one.spaces.subscriptions)
            ((after, upto),) = await story.is_exact(peer, name, new)
            # Everybody had everything up to the last message, so only what nobody can know of is in the gap.
            assert after >= last
            assert upto == restored["base"] if name == kept else restored["base"] < upto < new
        assert await story.is_exact(peers[1], gone, new) == []


async def test_a_machine_that_was_away_is_handed_what_the_backup_has_for_it_and_the_rest_is_a_gap(tmp_path):
    async with live_network(tmp_path) as network:
        story, peers = Story(network), await started(network, 2)
        name = await story.subscribe(peers[1], "price < 101")
        had = await story.publish(2)
        await received(peers[1], name, had)
        await network.stop("p1")
        owed = await story.publish(3)
        origin = network.source.spaces.origins["market"]
        await until(lambda: origin.frontier >= owed)  # everybody but those who are behind
        await network.source.backup(tmp_path / "backup")
        lost = await story.publish(2)
        restored = await story.restore()
        peers[1] = await network.start_peer("p1")
        await until(lambda: not peers[1].spaces.standing()[0]["is_lost"])
        new = await story.publish(2)
        assert await story.is_exact(peers[1], name, new) == [[had, restored["base"]]]
        found = await received(peers[1], name, new)
        assert [n for n in sorted(story.sent) if n not in found] == [lost - 1, lost]

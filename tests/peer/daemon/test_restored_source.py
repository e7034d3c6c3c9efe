"""A source restored from an older backup, with real daemons: nothing comes twice, nothing is missing silently."""

import stat
from datetime import UTC, datetime, timedelta

import pytest
import trio

from overlay.identity import BadCredential, InvitationRefused
from peer.daemon import alone
from peer.daemon.enrolling import join
from peer.daemon.questions import NoAnswer
from peer.daemon.source_backup import MOST_PER_S, restore_home
from peer.storage.errors import BrokenStore
from peer.storage.source_log import SourceLog
from tests.peer.daemon.network import live_network, rows
from tests.peer.daemon.test_live_network import wanted
from xmlmatch import Pattern


def body(n):
    return f"<r><a><b>{n}</b><c>{n % 3}</c></a><a><b>x</b></a></r>".encode()


class Story:
    """A network that publishes, is backed up and restored; remembers what was published under which number."""

    def __init__(self, network):
        self.network, self.published, self._count, self.is_stopped = network, {}, 0, False

    async def publish(self, count):
        for _ in range(count):
            n, self._count = self._count, self._count + 1
            told = await self.network.source.publish("source", f"d{n}", f"k{n}", body(n))
            self.published[told["number"]] = body(n)
        return max(self.published)

    async def subscribe(self, peer, text):
        return (await peer.subscribe(Pattern.parse(text)))["subscription"]

    async def backup(self):
        return await self.network.source.backup(self.network.folder / "backup")

    async def restore(self, home="restored", **options):
        """Put the source of the backup in place of the one that runs; return what the restore says."""
        if not self.is_stopped:
            await self.network.stop("source")
        told = restore_home(self.network.folder / "backup", self.network.folder / home, **options)
        self.network.source_home = home
        await self.network.start_source()
        return told

    async def is_exact(self, peer, name, text, upto, *, since=0):
        """Check that a subscription has every document, or says that it is in a gap, and nothing else."""
        found = await rows(peer, name, upto)
        truth = wanted(text, {n: data for n, data in self.published.items() if n > since})
        gaps = [one["gap"] for one in found.values() if isinstance(one, dict)]
        results = {number: one for number, one in found.items() if isinstance(one, list)}
        for number, expected in truth.items():
            is_lost = any(after < number <= end for after, end in gaps)
            assert results.get(number) == (None if is_lost else expected), (number, gaps)
        assert results.keys() <= truth.keys()
        return gaps


async def connected(*peers):
    for peer in peers:
        with trio.fail_after(30):
            await peer.connected.wait()


async def test_what_came_after_the_backup_is_kept_announced_again_or_a_gap(tmp_path):
    async with live_network(tmp_path) as network:
        story = Story(network)
        one, two, three = [await network.start_peer(f"p{i}") for i in (1, 2, 3)]
        await connected(one, two, three)
        first = await story.subscribe(one, "//a{cont}")
        second = await story.subscribe(two, "//a[c]/b{val}")
        gone = await story.subscribe(two, "//c{val}")
        kept = await story.publish(3)
        told = await story.backup()
        assert told["last"] == kept
        await story.publish(3)
        late = await story.subscribe(three, "//b{val}")
        begin = max(story.published)
        await two.unsubscribe(gone)
        last = await story.publish(2)
        for peer, name, text in [(one, first, "//a{cont}"), (two, second, "//a[c]/b{val}")]:
            assert await story.is_exact(peer, name, text, last) == []

        told = await story.restore()
        assert told["kept"] == kept < last < told["base"]
        await connected(one, two, three)
        new = await story.publish(3)
        assert new > told["base"]
        for peer, name, text, since in [
            (one, first, "//a{cont}", 0), (two, second, "//a[c]/b{val}", 0), (three, late, "//b{val}", begin),
        ]:  # fmt: skip
            gaps = await story.is_exact(peer, name, text, new, since=since)
            # Everybody had everything, so only what nobody can know of is in the gap.
            assert [end for _, end in gaps] == [told["base"]]
            assert gaps[0][0] >= last
        assert set(network.source.catalog.owners) == {first, second, late}
        assert one.membership.generation == network.source.log.generation == told["generation"]


async def test_who_was_away_gets_what_others_have_or_a_gap(tmp_path):
    async with live_network(tmp_path) as network:
        story = Story(network)
        one, two = await network.start_peer("p1"), await network.start_peer("p2")
        await connected(one, two)
        first = await story.subscribe(one, "//a{cont}")
        second = await story.subscribe(two, "//a[c]/b{val}")
        early = await story.publish(2)
        await story.is_exact(two, second, "//a[c]/b{val}", early)
        await story.backup()
        await network.stop("p2")
        last = await story.publish(3)
        await story.is_exact(one, first, "//a{cont}", last)
        told = await story.restore()
        await connected(one)
        two = await network.start_peer("p2")
        new = await story.publish(2)
        await story.is_exact(one, first, "//a{cont}", new)
        gaps = await story.is_exact(two, second, "//a[c]/b{val}", new)
        assert gaps[-1][1] == told["base"]


async def test_whom_the_lost_source_revoked_stays_out(tmp_path):
    async with live_network(tmp_path) as network:
        story = Story(network)
        one, two = await network.start_peer("p1"), await network.start_peer("p2")
        await connected(one, two)
        name = await story.subscribe(two, "//a{cont}")
        await story.backup()
        await network.source.revoke("p2")
        with trio.fail_after(30):
            while one.links.revocations.number < 1:
                await trio.sleep(0.05)
        await network.stop("p2")
        before = one.credential.settings.dht_keys.current
        told = await story.restore()
        await connected(one)
        assert network.source.links.revocations.sites["p2"].number == 1
        assert network.source.links.revocations.number > told["generation"]
        assert name not in network.source.catalog.owners
        with trio.fail_after(30):
            while one.links.revocations.encoded != network.source.links.revocations.encoded:
                await trio.sleep(0.05)
        now = one.credential.settings.dht_keys.current
        assert now.number > told["generation"] > before.number
        two = await network.start_peer("p2")
        with trio.move_on_after(1):
            await two.connected.wait()
        assert not two.connected.is_set()


async def test_a_source_that_is_restored_elsewhere_is_found_in_the_dht(tmp_path, monkeypatch):
    monkeypatch.setattr(alone, "_FIRST_S", 0.2)
    monkeypatch.setattr(alone, "_AGAIN_S", 0.5)
    async with live_network(tmp_path) as network:
        story = Story(network)
        one, two = await network.start_peer("p1"), await network.start_peer("p2")
        await connected(one, two)
        for peer in (one, two):
            await peer.directory.joined.wait()
        name = await story.subscribe(one, "//a{cont}")
        await story.backup()
        await network.stop("source")
        network._source_ports, story.is_stopped = (0, 0), True
        await story.restore()
        new = await story.publish(1)
        await story.is_exact(one, name, "//a{cont}", new)
        assert one.credential.settings.source == network.source.credential.settings.source


async def test_peers_refuse_an_older_generation(tmp_path):
    async with live_network(tmp_path) as network:
        story = Story(network)
        one = await network.start_peer("p1")
        await connected(one)
        name = await story.subscribe(one, "//a{cont}")
        await story.publish(2)
        await story.backup()
        await story.restore()
        await connected(one)
        new = await story.publish(1)
        await story.is_exact(one, name, "//a{cont}", new)
        await network.stop("source")
        network.source_home = "source"
        await network.start_source()
        with trio.fail_after(30):
            while "generation" not in one.status()["trouble"]:
                await trio.sleep(0.05)
        assert not one.connected.is_set()
        await network.stop("source")
        network.source_home = "restored"
        await network.start_source()
        await connected(one)
        new = await story.publish(1)
        assert (await story.is_exact(one, name, "//a{cont}", new))[-1][1] < new


async def test_a_log_that_was_put_back_by_hand_is_noticed(tmp_path):
    async with live_network(tmp_path) as network:
        story = Story(network)
        one = await network.start_peer("p1")
        await connected(one)
        name = await story.subscribe(one, "//a{cont}")
        await story.publish(1)
        network.source.log.backup(tmp_path / "copy")
        last = await story.publish(2)
        await story.is_exact(one, name, "//a{cont}", last)
        await network.stop("source")
        (tmp_path / "copy").replace(tmp_path / "source" / "source.sqlite")
        await network.start_source()
        with trio.fail_after(30):
            while f"--above {last}" not in one.status()["trouble"]:
                await trio.sleep(0.05)
        assert not one.connected.is_set()


async def test_a_restore_into_numbers_that_were_given_is_noticed(tmp_path):
    async with live_network(tmp_path) as network:
        story = Story(network)
        one = await network.start_peer("p1")
        await connected(one)
        name = await story.subscribe(one, "//a{cont}")
        await story.backup()
        last = await story.publish(2)
        await story.is_exact(one, name, "//a{cont}", last)
        greeting = one.membership._greeting()
        told = await story.restore()
        await connected(one)
        await one.questions.ask("source", "greet", greeting)
        with pytest.raises(NoAnswer, match="of before the restore"):
            await one.questions.ask("source", "greet", greeting | {"frontier": told["base"] + 1})


async def test_tokens_from_before_the_restore_are_not_good_any_more(tmp_path):
    async with live_network(tmp_path) as network:
        story = Story(network)
        token = network.source.invite("p1", ["subscriber"], 1)["token"]
        await story.backup()
        assert (await story.restore())["invitations_forgotten"] == 1
        with pytest.raises(InvitationRefused):
            await trio.to_thread.run_sync(join, tmp_path / "p1", token)
        assert network.source.invite("p1", ["subscriber"], 1)["token"] != token


async def test_a_backup_is_for_its_owner_alone_and_nothing_is_overwritten(tmp_path):
    async with live_network(tmp_path) as network:
        story = Story(network)
        told = await story.backup()
        assert told["has_root_key"]
        file = tmp_path / "backup"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert sorted(path.name for path in tmp_path.iterdir()) == ["backup", "source"]
        with pytest.raises(BrokenStore, match="already"):
            await story.backup()
        with pytest.raises(BadCredential, match="something already"):
            restore_home(file, tmp_path / "source")
        restore_home(file, tmp_path / "new")
        for path in (tmp_path / "new").rglob("*"):
            assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path
        with SourceLog.open(tmp_path / "new" / "source.sqlite") as log:
            assert log.states("backup/") == {}
        network.source.log.backup(tmp_path / "log only")
        with pytest.raises(BrokenStore, match="without keys"):
            restore_home(tmp_path / "log only", tmp_path / "other")
        assert not (tmp_path / "other").exists()


async def test_two_restores_of_one_backup_share_no_numbers(tmp_path):
    async with live_network(tmp_path) as network:
        story = Story(network)
        await story.publish(1)
        await story.backup()
        now = datetime.now(UTC)
        one = restore_home(tmp_path / "backup", tmp_path / "one", now=now + timedelta(minutes=1))
        two = restore_home(tmp_path / "backup", tmp_path / "two", now=now + timedelta(minutes=2))
        assert two["generation"] == one["generation"] + 60
        assert two["base"] == one["base"] + 60 * MOST_PER_S
        three = restore_home(tmp_path / "backup", tmp_path / "three", now=now, above=10**10)
        assert three["base"] == 10**10

"""Ordinary mistakes of those who run machines are refused in one line, and break nothing."""

import pytest
import trio

from overlay.identity import BadCredential, Credential
from peer.daemon.controls import source_controls
from peer.daemon.enrolling import join
from peer.daemon.one_daemon import only_one
from peer.daemon.peer_daemon import PeerDaemon, PeerSettings
from peer.daemon.questions import NoAnswer
from peer.errors import CommandError
from tests.peer.daemon.network import live_network


def test_one_daemon_runs_in_a_folder_and_another_when_it_has_ended(tmp_path):
    with (
        only_one(tmp_path, "control.sock"),
        only_one(tmp_path, "planner.sock"),
        pytest.raises(CommandError, match=r"a daemon runs in .* already; stop it first"),
    ):
        only_one(tmp_path, "control.sock").__enter__()
    with only_one(tmp_path, "control.sock"):
        assert sorted(path.name for path in tmp_path.iterdir()) == ["control.sock.lock", "planner.sock.lock"]


def test_a_folder_that_is_not_there_is_left_to_whoever_reads_it(tmp_path):
    with only_one(tmp_path / "nowhere", "control.sock"):
        assert not (tmp_path / "nowhere").exists()


async def test_a_peer_does_not_start_in_the_folder_of_the_source(tmp_path):
    async with live_network(tmp_path):
        with pytest.raises(BadCredential, match="this is the source's folder; run 'distributary source run'"):
            PeerDaemon(tmp_path / "source", PeerSettings())
        assert not (tmp_path / "source" / "results.sqlite").exists()


async def test_a_folder_keeps_its_machine_when_a_token_for_another_is_used_there(tmp_path):
    async with live_network(tmp_path) as network:
        await network.join("paris")

        def token(name):
            return network.source.invite(name, ["subscriber"], 1)["token"]

        async def joined(folder, name):
            return await trio.to_thread.run_sync(join, tmp_path / folder, token(name))

        with pytest.raises(BadCredential, match="the machine paris, and the token was for lyon"):
            await joined("paris", "lyon")
        with pytest.raises(BadCredential, match="this is the source's folder; name another folder"):
            await joined("source", "oslo")
        names = {
            folder: Credential.load(tmp_path / folder / "identity").member.site for folder in ("paris", "source")
        }
        assert names == {"paris": "paris", "source": "source"}
        await network.source.revoke("paris")
        assert (await joined("paris", "paris")).member.site == "paris"  # anew, under its name


async def test_a_name_that_nobody_has_is_not_revoked_by_mistake(tmp_path):
    async with live_network(tmp_path) as network:
        await network.join("paris")
        network.source.invite("lyon", ["subscriber"], 1)

        async def revoke(name, **more):
            return await source_controls(network.source)["revoke"]({"site": name, **more})

        before = network.source.links.revocations.number
        with pytest.raises(NoAnswer, match="there is no machine pariss"):
            await revoke("pariss")
        assert network.source.links.revocations.number == before
        for name, more in (("paris", {}), ("lyon", {}), ("pariss", {"force": True})):
            assert (await revoke(name, **more))["site"] == name

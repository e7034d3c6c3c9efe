"""Ordinary mistakes of those who run machines are refused in one line, and break nothing."""

import shutil

import pytest
import trio

from overlay.identity import BadCredential, Credential, InvitationRefused
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

        with pytest.raises(BadCredential, match="the machine paris, and the token is for lyon"):
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


async def test_a_token_for_another_machine_is_not_used_up_and_one_used_here_says_so(tmp_path):
    async with live_network(tmp_path) as network:
        await network.join("paris")
        token = network.source.invite("lyon", ["subscriber"], 1)["token"]

        async def joined(folder):
            return await trio.to_thread.run_sync(join, tmp_path / folder, token)

        with pytest.raises(BadCredential, match="the token is for lyon; name another folder"):
            await joined("paris")
        assert (await joined("lyon")).member.site == "lyon"
        with pytest.raises(BadCredential, match=r"this is lyon in the network test already, .*peer run"):
            await joined("lyon")
        with pytest.raises(InvitationRefused, match="already used by another machine"):
            await joined("elsewhere")


@pytest.mark.parametrize("hours", [0, -1, float("nan"), float("inf"), 1e9])
async def test_a_token_is_good_for_some_time_but_not_for_ever(tmp_path, hours):
    async with live_network(tmp_path) as network:
        with pytest.raises(NoAnswer, match="expected more than 0"):
            network.source.invite("paris", ["subscriber"], hours)


def test_a_folder_in_which_nothing_is_does_not_get_the_advice_for_a_peer(run, tmp_path):
    told = run("source", "run", "--home", tmp_path / "nowhere")
    assert (told.status, len(told.err.splitlines())) == (2, 1)
    assert "distributary network init NAME" in told.err
    told = run("network", "invite", "paris", "--home", tmp_path / "nowhere")
    assert (told.status, len(told.err.splitlines())) == (2, 1)
    assert "network init NAME" in told.err
    assert "peer run" not in told.err
    (tmp_path / "paris" / "identity").mkdir(parents=True)
    assert "distributary peer run" in run("source", "run", "--home", tmp_path / "paris").err


async def test_two_daemons_of_a_copied_home_are_noticed_and_told_once_a_minute(tmp_path, caplog):
    async with live_network(tmp_path) as network, trio.open_nursery() as nursery:
        paris = await network.start_peer("paris")
        await paris.connected.wait()
        await network.stop("paris")
        await network.start_peer("paris")  # started anew: nothing wrong
        shutil.copytree(tmp_path / "paris", tmp_path / "copy", ignore=shutil.ignore_patterns("*.sock*"))
        assert network.source.status()["doubled"] == []

        async def run_copy():
            async with PeerDaemon(tmp_path / "copy", PeerSettings()).opened():
                await trio.sleep_forever()

        nursery.start_soon(run_copy)
        with trio.fail_after(20):
            while network.source.status()["doubled"] != ["paris"]:
                await trio.sleep(0.05)
            await trio.sleep(1)
        logged = [one for one in caplog.records if one.message.startswith("two machines use one name")]
        assert [one.site for one in logged] == ["paris"]
        nursery.cancel_scope.cancel()

"""``distributary network``: backups and what is made of them, as a user sees it."""

import json
import sqlite3
import stat
from contextlib import closing

import pytest
import trio

from overlay.identity import Authority, Credential
from peer.cli import main
from peer.daemon.control import serve_control
from peer.daemon.controls import source_controls
from peer.storage.source_log import SourceLog
from tests.peer.daemon.network import live_network


@pytest.fixture
def home(run, tmp_path):
    """The home of a source that does not run."""
    assert run("network", "init", "news", "--home", tmp_path / "source").status == 0
    SourceLog.open(tmp_path / "source" / "source.sqlite").close()
    return tmp_path / "source"


@pytest.mark.parametrize(
    "name", ["init", "invite", "join", "revoke", "leave", "backup", "restore", "renew-authority"]
)
def test_every_command_has_examples(run, name):
    assert f"distributary network {name}" in run("network", name, "--help").out


def test_a_backup_is_restored_into_a_folder_of_its_own(run, home, tmp_path):
    done = run("network", "backup", tmp_path / "b", "--home", home)
    assert done.status == 0
    assert "move" in done.out
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o600
    done = run("network", "restore", tmp_path / "b", "--home", tmp_path / "new", "--json")
    told = json.loads(done.out)
    assert (told["network"], told["kept"]) == ("news", 0)
    assert (tmp_path / "new" / "identity" / "key.pem").read_bytes() == (home / "identity" / "key.pem").read_bytes()


def test_options_come_back_with_a_restore(run, home, tmp_path):
    (home / "distributary.toml").write_text("[source]\nport = 7500\n")
    assert run("network", "backup", tmp_path / "b", "--home", home).status == 0
    assert run("network", "restore", tmp_path / "b", "--home", tmp_path / "new").status == 0
    restored = tmp_path / "new" / "distributary.toml"
    assert restored.read_text() == "[source]\nport = 7500\n"
    assert stat.S_IMODE(restored.stat().st_mode) == 0o600


def test_the_authority_is_renewed_with_the_root_key_only(run, home, tmp_path):
    before = Authority.load(home / "authority").intermediate.certificate.serial_number
    done = run("network", "renew-authority", "--home", home)
    assert done.status == 0
    assert "restart the source" in done.out
    assert Authority.load(home / "authority").intermediate.certificate.serial_number != before
    assert Credential.load(home / "identity").member.site == "source"  # what the old one issued stays good
    (home / "authority" / "root.key").unlink()
    done = run("network", "renew-authority", "--home", home)
    assert (done.status, len(done.err.splitlines())) == (2, 1)
    assert "bring root.key back" in done.err


def test_the_root_key_is_not_in_a_backup_once_it_is_offline(run, home, tmp_path):
    (home / "authority" / "root.key").rename(tmp_path / "offline")
    assert "root key" not in run("network", "backup", tmp_path / "b", "--home", home).out
    assert run("network", "restore", tmp_path / "b", "--home", tmp_path / "new").status == 0
    assert not (tmp_path / "new" / "authority" / "root.key").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["backup", "b", "--home", "nowhere"], "not the home of a source"),
        (["backup", "there", "--home", "source"], "already"),
        (["backup", "none/b", "--home", "source"], "no such folder"),
        (["restore", "missing", "--home", "new"], "no such file"),
        (["restore", "there", "--home", "new"], "this is no backup: file is not a database"),
        (["restore", "other.sqlite", "--home", "new"], "this is no backup"),
        (["restore", "missing", "--home", "source"], "something already"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(run, home, tmp_path, monkeypatch, words, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").write_text("not a backup")
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as other:
        other.execute("CREATE TABLE something (what TEXT)")
    done = run("network", *words)
    assert done.status == 2
    assert says in done.err
    assert len(done.err.splitlines()) == 1
    assert not (tmp_path / "none").exists()


async def test_a_running_source_is_backed_up_through_its_daemon(tmp_path, capsys):
    async with live_network(tmp_path) as network, trio.open_nursery() as nursery:
        await network.source.publish("source", "d", "k", b"<a/>")
        await nursery.start(serve_control, tmp_path / "source", source_controls(network.source))
        words = ["network", "backup", str(tmp_path / "b"), "--home", str(tmp_path / "source"), "--json"]
        assert await trio.to_thread.run_sync(main, words) == 0
        assert json.loads(capsys.readouterr().out)["last"] == 1
        nursery.cancel_scope.cancel()

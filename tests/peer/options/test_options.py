"""Which options are in force, where they come from, and what is refused."""

import argparse
import json
import tomllib
from pathlib import Path

import pytest

from overlay.identity import Address
from peer.errors import CommandError
from peer.options.daemons import peer_settings, source_settings
from peer.options.file import NAME, read_file, save
from peer.options.resolving import add_options, resolve
from peer.options.table import DAEMONS, OPTIONS, options_of, page_rows
from tests.processes import ROOT


def settings(daemon, home, *words, environment=None):
    parser = argparse.ArgumentParser()
    add_options(parser, daemon)
    return resolve(daemon, parser.parse_args(["--home", str(home), *words]), environment or {})


def test_a_flag_wins_over_the_environment_over_the_file_over_the_default(tmp_path):
    file = tmp_path / NAME
    file.write_text('port = 1\ncapacity = 2\nkeep-age = "3d"\nhost = "h"\n')
    found = settings(
        "peer", tmp_path, "--port", "10", environment={"DISTRIBUTARY_PORT": "5", "DISTRIBUTARY_CAPACITY": "6"}
    )
    assert found.found["port"] == (10, "flag")
    assert found.found["capacity"] == (6, "environment")
    assert found.found["keep-age"] == (3 * 86_400, str(file))
    assert found.found["timeout"] == (3.0, "default")


def test_several_addresses_come_from_flags_a_variable_or_a_list(tmp_path):
    wanted = (Address("a", 1), Address("::1", 2))
    assert settings("peer", tmp_path, "--address", "a:1", "--address", "[::1]:2")["address"] == wanted
    assert settings("peer", tmp_path, environment={"DISTRIBUTARY_ADDRESS": "a:1, [::1]:2"})["address"] == wanted
    other = tmp_path / "other.toml"
    other.write_text('address = ["a:1", "[::1]:2"]')
    assert settings("peer", tmp_path, "--config", str(other))["address"] == wanted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prot = 1", "prot: no such option; did you mean port?"),
        ("enrolment_port = 1", "enrolment_port: no such option; did you mean enrolment-port?"),
        ("port = 70000", "port: '70000': expected a whole number from 0 to 65,535"),
        ("port = true", "port: expected text or a number, not bool"),
        ("port = [1, 2]", "port: one value, not a list"),
        ('timeout = "soon"', "timeout: 'soon': expected a time from 300ms to 10m"),
        ('keep-bytes = "10 bushels"', "keep-bytes: '10 bushels': expected a size"),
        ('address = ["nowhere"]', "address: 'nowhere': expected host:port"),
        ('log = "loud"', "log: 'loud': expected debug, info, warning or error"),
        ("port = ", "not TOML"),
        ("[peer]\nport = 1", "[peer]: there are no sections; write its options at the top"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_what_is_allowed(tmp_path, text, said):
    file = tmp_path / NAME
    file.write_text(text)
    with pytest.raises(CommandError) as caught:
        settings("peer", tmp_path)
    assert str(caught.value).startswith(f"{file}: ")
    assert said in str(caught.value)


def test_a_wrong_variable_and_a_wrong_flag_are_named(tmp_path):
    with pytest.raises(CommandError, match=r"^\$DISTRIBUTARY_FEEDS: 'x': expected a whole number .* or none$"):
        settings("source", tmp_path, environment={"DISTRIBUTARY_FEEDS": "x"})
    with pytest.raises(CommandError, match=r"^--drift: '0': expected a share above 0"):
        settings("planner", tmp_path, "--drift", "0")


def test_a_variable_that_is_nearly_an_option_is_warned_of(tmp_path, capsys):
    settings("peer", tmp_path, environment={"DISTRIBUTARY_PROT": "1", "DISTRIBUTARY_HOME": "x"})
    assert capsys.readouterr().err.splitlines() == [
        "distributary: warning: $DISTRIBUTARY_PROT is no option; did you mean DISTRIBUTARY_PORT?"
    ]


def test_a_file_that_is_named_must_be_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        settings("peer", tmp_path, "--config", str(tmp_path / "none.toml"))
    (tmp_path / "large.toml").write_text("#" * ((1 << 20) + 1))
    with pytest.raises(CommandError, match="larger than"):
        settings("peer", tmp_path, "--config", str(tmp_path / "large.toml"))


def test_options_reach_the_daemons(tmp_path):
    source = source_settings(
        settings("source", tmp_path, "--timeout", "6s", "--keep-age", "60d", "--feeds", "none", "--address", "s:9")
    )
    assert (source.patience.alive_s, source.patience.dead_s) == (2.0, 6.0)
    assert source.retention.document_age_s == source.retention.key_age_s == 60 * 86_400
    assert source.reached_at(5) == (Address("s", 9),)
    assert source.joined_at(5) == Address("s", 5)
    peer = peer_settings(settings("peer", tmp_path, "--window", "2MiB", "--keep-bytes", "9GiB"))
    assert peer.window == 2 << 20
    assert peer.limits.hard_bytes >= peer.limits.kept_bytes == 9 << 30


def test_listening_everywhere_needs_an_address_to_be_dialled_at(tmp_path):
    with pytest.raises(CommandError, match="--address"):
        peer_settings(settings("peer", tmp_path, "--host", "0.0.0.0"))
    assert peer_settings(settings("peer", tmp_path, "--host", "0.0.0.0", "--address", "p:1")).host == "0.0.0.0"


@pytest.mark.parametrize("daemon", DAEMONS)
def test_every_default_is_a_value_that_could_be_given(daemon, tmp_path):
    shown = [(name, value) for name, value, _ in settings(daemon, tmp_path).shown() if name != "address"]
    words = [word for name, value in shown for word in (f"--{name}", value)]
    again = settings(daemon, tmp_path, *words)
    assert {name: found.value for name, found in again.found.items() if name != "address"} == {
        option.name: option.defaults[daemon] for option in options_of(daemon) if option.name != "address"
    }


def test_the_page_lists_every_option_as_it_is():
    page = (ROOT / "docs" / "configuration.md").read_text().splitlines()
    assert [row for row in page_rows() if row not in page] == []
    assert len({option.name for option in OPTIONS}) == len(OPTIONS)


def test_the_command_shows_what_is_in_force(run, tmp_path, monkeypatch):
    monkeypatch.setenv("DISTRIBUTARY_PORT", "7500")
    done = run("config", "show", "peer", "--home", tmp_path, "--json")
    assert done.status == 0
    assert json.loads(done.out)["options"]["port"] == {"value": "7500", "from": "environment"}
    done = run("config", "show", "source", "--home", tmp_path, "--port", "1")
    assert "flag" in next(line for line in done.lines if line.startswith("port"))
    done = run("config", "show", "peer", "--config", tmp_path / "none")
    assert (done.status, done.err.count("\n")) == (2, 1)


def test_saving_one_option_leaves_the_rest_of_the_file_alone(tmp_path):
    file = tmp_path / NAME
    save(file, "capacity", "3")
    assert file.read_text() == "capacity = 3\n"
    file.write_text('# mine\nport = 1\ncapacity = 3 # old\nhost = "h"\n')
    save(file, "capacity", "40")
    assert file.read_text() == '# mine\nport = 1\ncapacity = 40\nhost = "h"\n'
    save(file, "master", 'a "b" \\c')
    assert tomllib.loads(file.read_text())["master"] == 'a "b" \\c'
    assert read_file(file)["capacity"] == ["40"]
    assert [path.name for path in Path(tmp_path).iterdir()] == [NAME]

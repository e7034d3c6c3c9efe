"""Completion in a real shell, from the script that is printed."""

import os
import shutil
import subprocess

import pytest

from peer.cli import whole_parser
from peer.completion import script, spots


@pytest.fixture(scope="module")
def parser():
    return whole_parser()


@pytest.fixture(scope="module")
def complete(parser, tmp_path_factory):
    """A function that says what bash offers for the last word."""
    folder = tmp_path_factory.mktemp("completion")
    (folder / "script").write_text(script("bash", parser))
    (folder / "distributary").write_text('#!/bin/sh\necho s-one s-two\necho "$@" > asked\n')
    (folder / "distributary").chmod(0o755)
    (folder / "some.toml").write_text("")
    (folder / "folder").mkdir()

    def complete(*words):
        code = (
            'source ./script; COMP_WORDS=(distributary "$@"); COMP_CWORD=$#; _distributary; '
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        path = f"{folder}:{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", code, "bash", *words], cwd=folder, env={"PATH": path}, capture_output=True, text=True,
            check=True, timeout=60,
        )  # fmt: skip
        assert done.stderr == ""
        return done.stdout.split()

    complete.folder = folder
    return complete


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["subs"], ["subscribe", "subscriptions"]),
        (["network", "inv"], ["invite"]),
        (["network", "invite", "--ro"], ["--role"]),
        (["network", "invite", "paris", "--role", "pl"], ["planner"]),
        (["service", "--print", "s"], ["source"]),
        (["peer", "run", "--ca"], ["--capacity"]),
        (["peer", "run", "--log", "w"], ["warning"]),
        (["peer", "run", "--home", "peer", "--ca"], ["--capacity"]),
        (["config", "show", "pl"], ["planner"]),
        (["peer", "run", "--config", "so"], ["some.toml"]),
        (["status", "--home", "fo"], ["folder"]),
        (["peer", "run", "--port", ""], []),
        (["publish", "so"], ["some.toml"]),
        (["completion", "b"], ["bash"]),
        (["completion", "--home", "bash", "fi"], ["fish"]),
        (["nonsense", "--x"], []),
    ],
)
def test_bash_completes_commands_options_and_values(complete, words, wanted):
    assert sorted(complete(*words)) == wanted


def test_bash_asks_the_daemon_of_the_home_for_subscriptions(complete):
    assert complete("tail", "--home", "folder", "s-t") == ["s-two"]
    assert (complete.folder / "asked").read_text() == "completion names --home folder\n"


def test_every_command_and_option_is_known(parser):
    found = {spot.path: spot for spot in spots(parser)}
    assert {"network", "publish", "plan", "tail"} <= found[()].commands.keys()
    assert {"--host", "--port", "--help"} <= found["peer", "run"].options.keys()
    assert found["tail",].wants_subscription
    assert found["peer", "run"].takes["--log"] == ("debug", "info", "warning", "error")


def test_the_scripts_for_zsh_and_fish_hold_the_same(parser):
    zsh, fish = script("zsh", parser), script("fish", parser)
    assert zsh.startswith("#compdef distributary\n")
    assert zsh.endswith(script("bash", parser))
    for spot in spots(parser):
        for option in spot.options:
            assert f" -l {option[2:]} " in fish or f" -s {option[1:]} " in fish, (spot.path, option)


def test_a_shell_that_is_there_reads_its_script(parser, tmp_path):
    read = []
    for shell in filter(shutil.which, ("zsh", "fish", "bash")):
        (tmp_path / shell).write_text(script(shell, parser))
        checked = subprocess.run([shell, "-n", tmp_path / shell], capture_output=True, timeout=60, check=False)
        assert (checked.returncode, checked.stderr) == (0, b"")
        read.append(shell)
    assert "bash" in read


def test_names_are_none_without_a_daemon_and_the_command_prints_scripts(run, tmp_path):
    done = run("completion", "names", "--home", tmp_path)
    assert (done.status, done.out, done.err) == (0, "", "")
    assert "complete -F _distributary distributary" in run("completion", "bash").out
    assert run("completion", "csh").status == 2

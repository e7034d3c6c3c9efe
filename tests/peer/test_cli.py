"""The command line as a whole: help, errors, what it loads."""

import argparse
import subprocess
import sys

import pytest

from peer import cli
from peer.errors import CommandError

COMMANDS = ["demo", "explain", "generate", "match"]


def test_help_lists_every_command_with_an_example(run):
    result = run("--help")
    assert result.status == 0
    assert all(f"\n    {name} " in result.out for name in COMMANDS)
    assert "examples:" in result.out


@pytest.mark.parametrize(
    "words", [["demo"], ["explain"], ["explain", "pattern"], ["generate"], ["generate", "documents"], ["match"]]
)
def test_every_command_has_examples_in_its_help(run, words):
    result = run(*words, "--help")
    assert result.status == 0
    assert "examples:\n  distributary" in result.out


def test_help_loads_neither_numba_nor_spark_nor_a_solver():
    program = (
        "import sys\nfrom peer.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'numba', 'numpy', 'pyspark', 'ortools', 'lxml', 'rich', 'trio'} & set(sys.modules)\n"
        "print('loaded', sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded []"


@pytest.mark.parametrize("words", [[], ["nonsense"], ["match", "--nonsense", "x", "y"], ["match"], ["explain"]])
def test_a_wrong_call_is_one_line_with_a_hint_and_status_2(run, words):
    result = run(*words)
    assert result.status == 2
    assert result.out == ""
    assert result.err.count("\n") == 1
    assert "--help" in result.err


def test_the_installed_command_prints_its_version():
    done = subprocess.run(
        [sys.executable, "-m", "peer.cli", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("distributary 0.")


def test_a_reader_that_goes_away_early_is_no_error(news):
    program = f"{sys.executable} -m peer.cli match //item {news} {news} | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)


def numpy_says():
    """What an import makes of a Ctrl-C."""
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt as exc:
        raise ImportError("initialization failed") from exc


def fail_with(monkeypatch, exc):
    def run(_):
        if exc is numpy_says:
            numpy_says()
        raise exc

    monkeypatch.setattr(cli, "_parse", lambda words: argparse.Namespace(run=run))


@pytest.mark.parametrize(
    "exc",
    [
        KeyboardInterrupt(),
        BaseExceptionGroup("nursery", [BaseExceptionGroup("inner", [KeyboardInterrupt()])]),
        BaseExceptionGroup("nursery", [ValueError(), KeyboardInterrupt()]),
        numpy_says,
    ],
)
def test_an_interrupted_command_ends_with_130_and_says_nothing(run, monkeypatch, exc):
    fail_with(monkeypatch, exc)
    result = run("replan")
    assert (result.status, result.out, result.err) == (130, "", "")


def test_an_error_out_of_a_nursery_is_one_line_too(run, monkeypatch):
    fail_with(monkeypatch, ExceptionGroup("nursery", [CommandError("no such thing")]))
    result = run("replan")
    assert (result.status, result.err) == (2, "distributary: no such thing\n")


def test_a_bug_is_shown_whole(run, monkeypatch):
    fail_with(monkeypatch, ExceptionGroup("nursery", [ZeroDivisionError()]))
    with pytest.raises(ExceptionGroup):
        run("replan")


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["match", "//a", "x.xml", "--nonsense"], "match"),
        (["results", "s-1", "--nonsense"], "results"),
        (["network", "invite", "paris", "--nonsense"], "network invite"),
    ],
)
def test_what_is_not_known_names_the_help_of_its_command(run, words, command):
    result = run(*words)
    assert result.status == 2
    assert result.err == (
        f"distributary {command}: unrecognized arguments: --nonsense; see 'distributary {command} --help'\n"
    )


@pytest.mark.parametrize("words", [["results", "s-1"], ["tail", "s-1"], ["messages", "c-1"]])
def test_commands_that_print_json_lines_anyway_may_be_asked_for_json(run, tmp_path, words):
    assert "no daemon runs" in run(*words, "--json", "--home", tmp_path).err


def test_matching_may_be_asked_for_json(run, news):
    assert run("match", "//item", news, "--json").lines == run("match", "//item", news).lines


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["trace", "-1", "s-1"], "document -1: a document's number is 1 or more"),
        (["trace", "99999999999999999999", "s-1"], "document 99999999999999999999: a document's number is"),
        (["results", "s-1", "--since", "-5"], "--since -5: a document's number is 0 or more"),
        (["webhook", "add", "s-1", "http://h/", "--since", "-5"], "--since -5: a document's number is 0 or more"),
        (["completion"], "name your shell, one of bash, zsh, fish"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_words_of_the_command(run, words, said):
    result = run(*words)
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert said in result.err

"""The command line as a whole: help, errors, what it loads."""

import subprocess
import sys

import pytest

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

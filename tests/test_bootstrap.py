"""The parts of bootstrap.py that decide something; no network, no installing."""

import importlib.util
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def load_bootstrap():
    spec = importlib.util.spec_from_file_location("bootstrap", ROOT / "bootstrap.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


bootstrap = load_bootstrap()


@pytest.fixture
def project(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "constraints.txt").write_text("numpy==2.4.6\n")
    return tmp_path


@pytest.fixture
def venv(tmp_path):
    """A folder that looks like a finished virtual environment of Python 3.12."""
    folder = tmp_path / ".venv"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").touch()
    (folder / "pyvenv.cfg").write_text(f"version = 3.12.4\ncommand = /usr/bin/python3 -m venv {folder}\n")
    return folder


# -- which Python


@pytest.mark.parametrize("version", [(3, 11), (3, 12), (3, 13), (3, 14)])
def test_a_supported_python_goes_on_itself(version):
    assert bootstrap.choose_interpreter(version, find=pytest.fail) is None


@pytest.mark.parametrize("version", [(3, 9), (3, 15)])
def test_an_unsupported_python_hands_over_to_the_newest_that_is_found(version):
    there = {"python3.11": "/opt/python3.11", "python3.13": "/opt/python3.13"}
    assert bootstrap.choose_interpreter(version, there.get) == "/opt/python3.13"


def test_without_any_supported_python_the_error_says_in_one_line_what_to_install():
    with pytest.raises(bootstrap.SetupError, match=r"this is 3\.9; install one .*apt-get install") as caught:
        bootstrap.choose_interpreter((3, 9), lambda name: None)
    assert "\n" not in str(caught.value)


def test_the_supported_versions_are_those_of_pyproject():
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert wanted == ">={}.{},<{}.{}".format(*bootstrap.OLDEST, *bootstrap.CAP)
    minors = range(bootstrap.OLDEST[1], bootstrap.CAP[1])
    assert sorted(bootstrap.INTERPRETERS) == [f"python3.{minor}" for minor in minors]


def test_a_python_that_does_not_start_is_not_found(tmp_path, monkeypatch):
    stub = tmp_path / "python3.13"
    stub.write_text("#!/bin/sh\necho 'not installed in this version manager' >&2\nexit 127\n")
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert bootstrap.find_working("python3.13") is None


def test_a_python_that_starts_is_found_by_its_version(tmp_path, monkeypatch):
    name = "python{}.{}".format(*sys.version_info[:2])
    (tmp_path / name).symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert bootstrap.find_working(name) == str(tmp_path / name)


# -- the stamp


def test_a_stamp_that_matches_means_nothing_to_do(project, venv):
    wanted = bootstrap.wanted_stamp(project, venv, (3, 12))
    (venv / "bootstrap.stamp").write_text(wanted)
    assert bootstrap.is_complete(venv / "bootstrap.stamp", wanted)


@pytest.mark.parametrize("file", ["pyproject.toml", "constraints.txt"])
def test_a_changed_file_asks_for_another_stamp(project, venv, file):
    before = bootstrap.wanted_stamp(project, venv, (3, 12))
    (project / file).write_text("changed\n")
    assert bootstrap.wanted_stamp(project, venv, (3, 12)) != before


def test_another_python_or_another_place_asks_for_another_stamp(project, venv):
    stamps = {
        bootstrap.wanted_stamp(project, venv, (3, 12)),
        bootstrap.wanted_stamp(project, venv, (3, 13)),
        bootstrap.wanted_stamp(project, venv.with_name("moved"), (3, 12)),
    }
    assert len(stamps) == 3


def test_a_stamp_without_its_python_is_not_complete(project, venv):
    wanted = bootstrap.wanted_stamp(project, venv, (3, 12))
    (venv / "bootstrap.stamp").write_text(wanted)
    (venv / "bin" / "python").unlink()
    assert not bootstrap.is_complete(venv / "bootstrap.stamp", wanted)


def test_a_venv_with_old_content_is_brought_up_to_date(venv):
    (venv / "bootstrap.stamp").write_text("the hash of older files")
    assert bootstrap.is_reusable(venv, (3, 12))


def test_an_interrupted_venv_is_made_anew(venv):
    (venv / "bootstrap.stamp").write_text(bootstrap.UNFINISHED)
    assert not bootstrap.is_reusable(venv, (3, 12))


def test_a_venv_of_another_python_or_moved_or_missing_is_made_anew(venv):
    assert not bootstrap.is_reusable(venv, (3, 13))
    moved = venv.rename(venv.with_name("moved"))
    assert not bootstrap.is_reusable(moved, (3, 12))
    assert not bootstrap.is_reusable(venv, (3, 12))


def test_emptying_leaves_only_a_stamp_that_says_unfinished(venv):
    (venv / "lib64").symlink_to("bin")
    bootstrap.empty(venv)
    assert [path.name for path in venv.iterdir()] == ["bootstrap.stamp"]
    assert bootstrap.read_stamp(venv / "bootstrap.stamp") == bootstrap.UNFINISHED


# -- Java's wrapper


@pytest.fixture
def wrapped(tmp_path):
    """Return a function that gives arguments to the wrapper and returns those that reach the wrapped java."""
    java = tmp_path / "site packages" / "runtime" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text('#!/bin/sh\nfor argument do echo "$argument"; done\n')
    java.chmod(0o755)
    home = tmp_path / "it's a $HOME" / "java"
    bootstrap.write_java_wrapper(home, java.parent.parent)

    def call(*arguments):
        done = subprocess.run([home / "bin" / "java", *arguments], stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout.splitlines()

    return call


@pytest.mark.parametrize(
    "option", [["--add-modules=jdk.incubator.vector"], ["--add-modules", "jdk.incubator.vector"]]
)
def test_the_wrapper_drops_the_vector_module_in_either_spelling(wrapped, option):
    assert wrapped("-Xmx1g", *option, "Main") == ["-Xmx1g", "Main"]


def test_the_wrapper_keeps_every_other_argument_as_it_is(wrapped):
    arguments = ["--add-modules", "java.sql", "--add-modules=java.xml", "-Da=b c", "", "*", "$HOME", "Main"]
    assert wrapped(*arguments) == arguments


def test_the_wrapper_passes_on_no_arguments_as_none(wrapped):
    assert wrapped() == []


# -- the command line


@pytest.fixture
def checkout(tmp_path):
    """A copy of what bootstrap.py reads, in a folder of its own."""
    for name in ("bootstrap.py", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def run_script(folder, *arguments):
    command = [sys.executable, folder / "bootstrap.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_help_shows_examples(checkout):
    done = run_script(checkout, "--help")
    assert done.returncode == 0
    assert "python3 bootstrap.py --java" in done.stdout


def test_a_complete_venv_is_left_alone_in_silence(checkout):
    (checkout / ".venv" / "bin").mkdir(parents=True)
    (checkout / ".venv" / "bin" / "python").touch()
    stamp = bootstrap.wanted_stamp(checkout, checkout / ".venv", sys.version_info[:2])
    (checkout / ".venv" / "bootstrap.stamp").write_text(stamp)
    done = run_script(checkout)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_cannot_be_read_is_told_in_one_line(checkout):
    (checkout / "constraints.txt").unlink()
    done = run_script(checkout)
    assert done.returncode == 1
    assert done.stderr.startswith("bootstrap: ")
    assert "constraints.txt" in done.stderr
    assert done.stderr.count("\n") == 1

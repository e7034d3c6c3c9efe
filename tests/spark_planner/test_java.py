"""Finding Java by starting it; small scripts stand in for it, but for one test with the real one."""

from pathlib import Path

import pytest

from spark_planner import java
from spark_planner.errors import JavaMissing, PySparkMissing
from spark_planner.java import JAVA_MISSING, JavaHome, find_java, parse_settings

NOWHERE = Path("/nonexistent")


@pytest.fixture(autouse=True)
def _no_java_but_the_tests_own(request, monkeypatch):
    if "real" not in request.node.name:
        monkeypatch.setattr(java, "_macos_homes", lambda: iter(()))


def make_java(home, version, *, exit_code=0):
    """Make a folder for JAVA_HOME whose java says that it is this version."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    settings = f"    java.home = {home}\\n    java.specification.version = {version}\\n"
    executable.write_text(f"#!/bin/sh\nprintf '{settings}' >&2\nexit {exit_code}\n")
    executable.chmod(0o755)
    return home


def test_java_home_wins_over_the_path(tmp_path):
    named, on_path = make_java(tmp_path / "a", "21"), make_java(tmp_path / "b", "17")
    environ = {"JAVA_HOME": str(named), "PATH": f"{on_path}/bin"}
    assert find_java(environ, venv=NOWHERE) == JavaHome(named, 21)


def test_a_java_on_the_path_tells_its_home_itself(tmp_path):
    home = make_java(tmp_path / "jre", "17")
    links = tmp_path / "links"
    links.mkdir()
    (links / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(links)}, venv=NOWHERE) == JavaHome(home, 17)


@pytest.mark.parametrize("version", ["1.8", "11"])
def test_an_old_java_is_passed_over(tmp_path, version):
    old, new = make_java(tmp_path / "old", version), make_java(tmp_path / "new", "17")
    environ = {"JAVA_HOME": str(old), "PATH": f"{new}/bin"}
    assert find_java(environ, venv=NOWHERE) == JavaHome(new, 17)


def test_a_java_that_does_not_start_is_passed_over(tmp_path):
    broken, works = make_java(tmp_path / "broken", "17", exit_code=1), make_java(tmp_path / "works", "17")
    environ = {"JAVA_HOME": str(broken), "PATH": f"{works}/bin"}
    assert find_java(environ, venv=NOWHERE) == JavaHome(works, 17)


def test_a_java_home_that_is_gone_is_passed_over(tmp_path):
    works = make_java(tmp_path / "works", "17")
    assert find_java({"JAVA_HOME": "/nonexistent", "PATH": f"{works}/bin"}, venv=NOWHERE) == JavaHome(works, 17)


def test_the_wrapper_in_the_virtual_environment_is_used_last_and_keeps_its_own_home(tmp_path):
    wrapper = make_java(tmp_path / "venv" / "java", "25")
    assert find_java({"PATH": ""}, venv=tmp_path / "venv") == JavaHome(wrapper, 25)
    system = make_java(tmp_path / "system", "17")
    assert find_java({"PATH": f"{system}/bin"}, venv=tmp_path / "venv") == JavaHome(system, 17)


def test_no_java_at_all_is_none():
    assert find_java({"PATH": ""}, venv=NOWHERE) is None


def test_what_says_nothing_of_a_version_is_no_java():
    assert parse_settings("java: command not understood", NOWHERE) is None
    assert parse_settings("    java.specification.version = 17\n") is None


def test_the_real_java_of_this_machine_is_found():
    found = find_java()
    assert found is not None
    assert found.major >= 17
    assert (found.path / "bin" / "java").exists()


def test_errors_are_one_line_that_says_what_to_do():
    assert str(JavaMissing()) == JAVA_MISSING
    assert "openjdk-17" in JAVA_MISSING
    assert "pip install 'distributary[planner]'" in str(PySparkMissing())
    assert "\n" not in JAVA_MISSING + str(PySparkMissing())

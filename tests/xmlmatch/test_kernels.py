"""Compiled code never outlives the sources it came from."""

import os
import shutil

import numba
import pytest

from tests.processes import printed_by
from xmlmatch.kernels import cache_folder, forget_stale, settle_cache


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with compiled code of its present sources."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "b.py").write_text("y = 1\n")
    assert forget_stale(tmp_path)
    (tmp_path / "__pycache__" / "a.f-1.py311.nbi").write_bytes(b"")
    (tmp_path / "__pycache__" / "a.f-1.py311.1.nbc").write_bytes(b"")
    return tmp_path


def compiled(package):
    return len(list((package / "__pycache__").glob("*.nb?")))


def test_compiled_code_stays_while_nothing_changes(package):
    assert not forget_stale(package)
    assert compiled(package) == 2


def test_a_change_in_any_file_drops_all_compiled_code(package):
    os.utime(package / "b.py", ns=(1, 1))
    assert forget_stale(package)
    assert compiled(package) == 0
    assert not forget_stale(package)


def test_a_new_or_a_removed_file_drops_all_compiled_code(package):
    (package / "c.py").write_text("")
    assert forget_stale(package)
    (package / "a.py").unlink()
    assert forget_stale(package)


def test_a_folder_that_cannot_be_written_is_left_alone(package):
    cache = package / "__pycache__"
    os.utime(package / "b.py", ns=(1, 1))
    moved = package / "elsewhere"
    cache.rename(moved)
    cache.write_text("a file where the folder should be")
    assert not forget_stale(package)
    assert len(list(moved.glob("*.nb?"))) == 2


@pytest.fixture
def elsewhere(package, tmp_path_factory, monkeypatch):
    """A folder for compiled code, as NUMBA_CACHE_DIR would name it."""
    folder = tmp_path_factory.mktemp("kernels")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(folder))
    return folder


def test_a_folder_of_its_own_begins_with_what_was_compiled_beside_the_sources(package, elsewhere):
    assert forget_stale(package)
    assert cache_folder(package).parent == elsewhere
    assert sorted(path.suffix for path in cache_folder(package).glob("*.nb?")) == [".nbc", ".nbi"]
    assert not forget_stale(package)


def test_a_folder_of_its_own_takes_nothing_that_is_stale_and_drops_what_becomes_so(package, elsewhere):
    os.utime(package / "b.py", ns=(1, 1))
    assert forget_stale(package)
    assert list(cache_folder(package).glob("*.nb?")) == []
    (cache_folder(package) / "a.f-1.py311.nbi").write_bytes(b"")
    os.utime(package / "b.py", ns=(2, 2))
    assert forget_stale(package)
    assert list(cache_folder(package).glob("*.nb?")) == []


def test_sources_that_cannot_be_written_have_their_code_in_the_users_cache(package, tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    settle_cache(package)
    assert numba.config.CACHE_DIR == ""
    shutil.rmtree(package / "__pycache__")
    (package / "__pycache__").write_text("a file where the folder should be")
    settle_cache(package)
    assert cache_folder(package).is_relative_to(tmp_path / "user")
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(package / "a.py"))
    with pytest.raises(OSError, match="set NUMBA_CACHE_DIR"):
        settle_cache(package)


def test_numba_keeps_and_finds_the_code_where_the_folder_is_named(tmp_path):
    code = (
        f"import numba; numba.config.CACHE_DIR = {str(tmp_path)!r}\n"
        "import xmlmatch.numerals as module\n"
        "from pathlib import Path; from xmlmatch.kernels import cache_folder\n"
        "kernels = [one for one in vars(module).values() if hasattr(one, 'nopython_signatures')]\n"
        "print({Path(one.stats.cache_path) for one in kernels} == {cache_folder(Path(module.__file__).parent)})"
    )
    assert printed_by(code) == "True"

"""Compiled code never outlives the sources it came from."""

import os

import pytest

from xmlmatch.kernels import forget_stale


@pytest.fixture
def package(tmp_path):
    """A package with compiled code of its present sources."""
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

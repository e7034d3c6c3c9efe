"""The commands' way to the daemon: what a user is told while it waits."""

import json
import socket
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from peer import home as homes
from peer.home import Conversation


@contextmanager
def daemon_that_answers(home):
    """A daemon that answers one request, in a thread."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(home / "control.sock"))
    listening.listen()

    def serve():
        connection, _ = listening.accept()
        with connection, connection.makefile("rb") as asked:
            asked.readline()
            connection.sendall(b'{"number": 1}\n' + json.dumps({"done": True}).encode() + b"\n")

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        thread.join()
        listening.close()


@pytest.fixture
def silent(monkeypatch):
    """Nothing comes from the daemon in time."""
    asked = []

    def select(reading, writing, failing, timeout_s):
        asked.append(timeout_s)
        return [], [], []

    monkeypatch.setattr(homes, "select", SimpleNamespace(select=select))
    return asked


def test_a_command_says_within_two_seconds_that_it_waits_for_the_source(tmp_path, silent, capsys):
    with daemon_that_answers(tmp_path), Conversation(tmp_path) as daemon:
        assert daemon.one("subscribe", pattern="//a") == {"number": 1}
    assert capsys.readouterr().err == "distributary: waiting for the source, up to 30 s\n"
    assert max(silent) < 2


@pytest.mark.parametrize(
    ("do", "is_quiet", "is_source"),
    [("entries", False, False), ("publish", True, False), ("publish", False, True)],
)
def test_who_does_not_wait_for_the_source_does_not_say_so(tmp_path, silent, capsys, do, is_quiet, is_source):
    if is_source:
        (tmp_path / "authority").mkdir()
    with daemon_that_answers(tmp_path), Conversation(tmp_path, is_quiet=is_quiet) as daemon:
        assert daemon.one(do) == {"number": 1}
    assert capsys.readouterr().err == ""

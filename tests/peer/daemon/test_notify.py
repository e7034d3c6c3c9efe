"""What the service manager is told, over a real socket."""

import os
import socket

import pytest
import trio

from peer.daemon.notify import Notifier


@pytest.fixture(params=["file", "abstract"])
def manager(request, tmp_path):
    """A socket as systemd has it, and its name."""
    name = str(tmp_path / "notify") if request.param == "file" else f"@distributary-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(name.replace("@", "\0") if name.startswith("@") else name)
        listening.settimeout(10)
        yield listening, name


def test_the_manager_hears_what_is_said(manager):
    listening, name = manager
    assert Notifier({"NOTIFY_SOCKET": name}).say("READY=1", "STATUS=here")
    assert listening.recv(1000) == b"READY=1\nSTATUS=here"


async def test_the_watchdog_is_fed_while_the_event_loop_turns(manager):
    listening, name = manager
    notifier = Notifier({"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "20000", "WATCHDOG_PID": str(os.getpid())})
    assert notifier.watchdog_s == 0.02
    async with trio.open_nursery() as nursery:
        nursery.start_soon(notifier.keep_alive)
        for _ in range(3):
            assert await trio.to_thread.run_sync(listening.recv, 1000) == b"WATCHDOG=1"
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    "environment",
    [{}, {"WATCHDOG_USEC": "0"}, {"WATCHDOG_USEC": "x"}, {"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}],
)
async def test_nobody_is_told_who_did_not_ask(environment):
    notifier = Notifier(environment)
    assert notifier.watchdog_s is None
    assert not notifier.say("READY=1")
    await notifier.keep_alive()
    assert Notifier(environment | {"NOTIFY_SOCKET": "x"}).watchdog_s is None


def test_a_manager_that_is_gone_does_no_harm(tmp_path, caplog):
    assert not Notifier({"NOTIFY_SOCKET": str(tmp_path / "nowhere")}).say("READY=1")
    assert [record.getMessage() for record in caplog.records] == ["service manager"]

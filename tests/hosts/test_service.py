"""Daemons as services: what systemd hears, what is logged, and stopping in order."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from scenarios.processes import SOURCE, running


def until(condition, seconds=60):
    """Wait for something to be so, and return it."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, condition
        time.sleep(0.05)
    return found


def events(network, name):
    """Return what a daemon has logged."""
    text = (network.folder / f"{name}.log").read_text()
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """A source and two peers that log everything; p2 is fed by p1."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISTRIBUTARY_LOG", "info")
        patch.setenv("DISTRIBUTARY_TIMEOUT", "10m")  # a silent death would not be noticed
        with running(tmp_path_factory.mktemp("service")) as network:
            network.start_source()
            for name in ("p1", "p2"):
                network.join(name)
                network.start_peer(name)
            network.first = network.one("p1", "subscribe", pattern="//a{cont}")["subscription"]
            network.second = network.one("p2", "subscribe", pattern="//a{cont}")["subscription"]
            network.publish("d0", b"<r><a><b/></a></r>")
            until(lambda: complete(network, 1))
            yield network


def complete(network, documents):
    """Say whether p2 has so many documents."""
    entries = network.many("p2", "entries", subscription=network.second)
    return len({one["document"] for one in entries if "row" in one}) == documents


def fed_by(network):
    """Return who feeds p2."""
    (one,) = network.one("p2", "status")["subscriptions"]
    return one["fed_by"]


def test_neighbours_of_a_machine_that_is_stopped_fail_over_at_once(network):
    until(lambda: [one for one in events(network, "p2") if one.get("by") == [f"{network.first}@p1"]])
    assert fed_by(network) == [network.first]
    network.stop("p1")
    last = network.publish("d1", b"<r><a><b>1</b></a></r>")
    until(lambda: complete(network, 2))
    assert fed_by(network) == [SOURCE]
    told = until(lambda: [one for one in events(network, "p2") if one["event"] == "failover"])
    assert told[0]["subscription"] == network.second
    assert told[0]["by"] == [SOURCE]
    goodbyes = [one for one in events(network, SOURCE) if one["event"] == "goodbye"]
    assert [(one["site"], one["reason"]) for one in goodbyes] == [("p1", "it is being stopped")]
    assert [one["event"] for one in events(network, "p1")][-2:] == ["lost", "stopped"]
    numbers = [one["number"] for one in events(network, SOURCE) if one["event"] == "published"]
    assert numbers[-1] == last


def test_the_log_tells_who_came_and_what_was_decided(network):
    seen = {one["event"] for one in events(network, SOURCE)}
    assert {"ready", "connected", "subscribed", "published"} <= seen
    seen = {one["event"] for one in events(network, "p2")}
    assert {"ready", "connected", "configuration", "fed"} <= seen
    assert all({"at", "level", "logger", "event"} <= one.keys() for one in events(network, "p2"))


def test_the_service_manager_hears_of_the_beginning_and_the_end(tmp_path, network):
    name = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(name)
        manager.settimeout(60)
        network.join("p3")
        told = os.environ | {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "60000000", "DISTRIBUTARY_LOG": "warning"}
        command = [sys.executable, "-m", "peer", "peer", "run", "--home", str(network.home("p3")), "--json"]
        with subprocess.Popen(command, env=told, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                assert manager.recv(1000).startswith(b"READY=1")
                assert manager.recv(1000) == b"WATCHDOG=1"
                process.send_signal(signal.SIGTERM)
                assert manager.recv(1000) == b"STOPPING=1"
                _, err = process.communicate(timeout=60)
                assert (process.returncode, b"Traceback" in err) == (0, False), err
            finally:
                process.kill()


def test_a_second_signal_ends_at_once(tmp_path):
    code = (
        "import sys, trio\n"
        "from pathlib import Path\n"
        "from contextlib import asynccontextmanager\n"
        "from peer.daemon.running import run_daemon\n"
        "class Slow:\n"
        "    def __init__(self):\n"
        "        self.finished = trio.Event()\n"
        "    @asynccontextmanager\n"
        "    async def opened(self):\n"
        "        yield self\n"
        "    async def leave(self):\n"
        "        print('leaving', flush=True)\n"
        "        await trio.sleep_forever()\n"
        "trio.run(run_daemon, Path(sys.argv[1]), Slow(), lambda _: {}, lambda _: print('ready', flush=True))\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"ready\n"
            process.send_signal(signal.SIGTERM)
            assert process.stdout.readline() == b"leaving\n"
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 128 + signal.SIGINT
        finally:
            process.kill()


def test_a_port_that_is_taken_is_said_in_one_line(network, tmp_path):
    port = str(network.one(SOURCE, "status")["port"])
    network.join("p4")
    command = [sys.executable, "-m", "peer", "peer", "run", "--home", str(network.home("p4")), "--port", port]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert [line for line in done.stderr.splitlines() if not line.startswith("{")] == [
        done.stderr.splitlines()[-1]
    ]
    assert "in use" in done.stderr

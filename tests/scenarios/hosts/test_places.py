"""Hosts with networks of their own, where this user may make them; where not, it is said."""

import subprocess
import sys
from contextlib import ExitStack

import pytest

from scenarios.hosts.links import Link
from scenarios.hosts.places import Loopback, NoLinks, namespaces
from scenarios.hosts.tunnels import NoNamespaces, address_of

PING = """
import socket, sys, time
kind, where = sys.argv[1:]
if kind == "serve":
    with socket.create_server((where, 4000)) as server:
        print("ready", flush=True)
        with server.accept()[0] as stream:
            while data := stream.recv(100):
                stream.sendall(data)
else:
    with socket.create_connection((where, 4000), 20) as stream:
        begun = time.monotonic()
        stream.sendall(b"x")
        stream.recv(1)
        print(time.monotonic() - begun)
"""


def ping(places):
    """Send something from b to a and back; return how long it took."""
    command = [sys.executable, "-c", PING]
    where = places.address("a")
    serving = places.spawn("a", [*command, "serve", where], stdout=subprocess.PIPE)
    try:
        assert serving.stdout.readline() == b"ready\n"
        asking = places.spawn("b", [*command, "ask", where], stdout=subprocess.PIPE)
        told, _ = asking.communicate(timeout=60)
        return float(told)
    finally:
        serving.kill()
        serving.communicate()


def test_loopback_has_no_links_to_change():
    places = Loopback()
    assert 0 < ping(places) < 30
    with pytest.raises(NoLinks, match="namespaces"):
        places.change("count")


def test_namespaces_reach_each_other_over_their_links_only_or_cannot_be_made():
    with ExitStack() as stack:
        try:
            places = stack.enter_context(namespaces(["a", "b"], Link(rtt_ms=1), {("a", "b"): Link(rtt_ms=100)}, 1))
        except NoNamespaces as exc:
            places, why = None, str(exc)
        if places is None:
            assert "--hosts loopback" in why
            return
        assert places.address("a") == address_of(0)
        assert ping(places) >= 0.1
        assert places.change("count")["passed"] >= 4
        places.change("shape", link={}, pairs=[], cuts=[[["a"], ["b"]]])
        asking = places.spawn("b", [sys.executable, "-c", PING, "ask", address_of(0)])
        with pytest.raises(subprocess.TimeoutExpired):
            asking.wait(1.5)
        asking.kill()
        asking.wait()
        assert places.change("shape", link={}, pairs=[], cuts=[])["cut"] >= 1


def test_there_are_only_so_many_addresses():
    assert address_of(249) == "10.213.0.250"
    with pytest.raises(NoNamespaces):
        address_of(1_000_000)

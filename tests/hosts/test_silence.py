"""A process that is stopped and says nothing: who hangs on it moves by itself, and nobody else does."""

import signal
import time

from scenarios.kills.load import patiently
from scenarios.processes import SOURCE, running

TEXT = "//a{cont}"
PEERS = ("p0", "p1", "p2")


def standing(network, name):
    (found,) = network.many(name, "subscriptions")
    return found


def until(condition, seconds=90):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.05)


def chained(network, names):
    """Let the first be fed by the source, and each other one by the one before it."""
    known = network.one(SOURCE, "snapshot", documents=1)
    rows = []
    for i, peer in enumerate(PEERS):
        inputs = [{"subscription": names[i - 1], "site": PEERS[i - 1]}] if i else []
        rows.append({
            "subscription": names[i], "site": peer, "pattern": TEXT, "how": "copy" if i else "source",
            "inputs": inputs, "alternatives": [],
        })  # fmt: skip
    network.one(SOURCE, "adopt", base_epoch=known["epoch"], rows=rows)
    for i in (1, 2):
        until(lambda i=i: standing(network, PEERS[i])["fed_by"] == [names[i - 1]])


def test_a_machine_that_stops_answering_costs_its_direct_downstream_a_timeout_and_nobody_else_anything(tmp_path):
    with running(tmp_path, is_warm=True) as network:
        network.start_source()
        for name in PEERS:
            network.join(name)
            network.start_peer(name)
        names = [
            patiently(name, lambda name=name: network.one(name, "subscribe", pattern=TEXT, limit=2))[
                "subscription"
            ]
            for name in PEERS
        ]
        chained(network, names)
        before = {name: standing(network, name)["failovers"] for name in PEERS[1:]}
        last = network.publish("d0", b"<r><a>0</a></r>")
        until(lambda: standing(network, "p2")["committed"] >= last)
        network.signal("p0", signal.SIGSTOP)
        try:
            last = network.publish("d1", b"<r><a>1</a></r>")
            until(lambda: standing(network, "p2")["committed"] >= last)
            moved = {name: standing(network, name)["failovers"] - before[name] for name in PEERS[1:]}
            assert moved == {"p1": 1, "p2": 0}
            assert standing(network, "p2")["fed_by"] == [names[1]]
        finally:
            network.signal("p0", signal.SIGCONT)
        until(lambda: standing(network, "p0")["committed"] >= last)

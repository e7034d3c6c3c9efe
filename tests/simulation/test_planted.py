"""Bugs planted one at a time into what is simulated: each is caught within the seeds that CI runs."""

import inspect
import textwrap

import pytest

from overlay.feeds.serving import Serving
from peer.hosting.feeding import Feeding
from peer.hosting.history import History
from peer.hosting.host import Host
from peer.hosting.outlet import Outlet
from peer.steering.steering import Steering
from peer.storage import database
from scenarios.simulation.drawn import simulate
from scenarios.simulation.peers import PeerMachine
from tests.simulation.test_seeds import SEEDS

SERVED_LOW = (Outlet, "pump", "serving.cursor < self.history.lowest", "False")
PLANTED = {
    "an ACK before the commit": [(
        Host, "_advance", "hosted.outlet.history.add(items, ready.upto)",
        "hosted.outlet.history.add(items, ready.upto); hosted.committed = ready.upto",
    )],
    "a frontier that skips": [(
        Serving, "serve", "Frontier(self.feed, self.cursor, upto)",
        "Frontier(self.feed, self.cursor, upto := upto + 1)",
    )],
    "FRONTIER over a gap": [SERVED_LOW],
    "OPEN served below the start": [
        SERVED_LOW, (Outlet, "open", "max(asked.after, self.history.lowest)", "asked.after"),
    ],
    "a replay that starts one late": [(History, "read", "if item.number > after:", "if item.number > after + 1:")],
    "a failover that forgets its frontier": [(
        Feeding, "_failed", "self.failovers += 1", "self.failovers += 1; self.frontier = self.configuration.start",
    )],
    "a stale proposal accepted": [(Steering, "adopt", "proposal.base_epoch != self.epoch", "False")],
    "equal versions accepted twice": [(
        Host, "install", "configuration.version <= known.configuration.version",
        "configuration.version < known.configuration.version",
    )],
    "credits shared between feeds": [(
        Outlet, "handle", "feed.serving.grant(frame.total, frame.acknowledged)",
        "[one.serving.grant(frame.total, frame.acknowledged) for one in self.feeds.values()]",
    )],
    "commits that are not forced to disk": [(database, "_prepare", "synchronous = FULL", "synchronous = NORMAL")],
    "results that are there twice": [(
        PeerMachine, "_items", "for one in self.results.entries(subscription, after, upto, most_bytes)",
        "for one in self.results.entries(subscription, after, upto, most_bytes) for _ in range(2)",
    )],
    "results out of order": [(
        PeerMachine, "_items", "self.results.entries(subscription, after, upto, most_bytes)",
        "reversed(self.results.entries(subscription, after, upto, most_bytes))",
    )],
    "a moving feed counted twice": [(Outlet, "open", "len(others) >= self.most", "len(self.feeds) >= self.most")],
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_it_is_caught(name, monkeypatch):
    for owner, method, right, wrong in PLANTED[name]:
        source = textwrap.dedent(inspect.getsource(getattr(owner, method)))
        assert source.count(right) == 1
        space = dict(inspect.getmodule(owner).__dict__)
        exec("from __future__ import annotations\n" + source.replace(right, wrong), space)
        monkeypatch.setattr(owner, method, space[method])
    caught = next((found for seed in range(SEEDS) if (found := simulate(seed)).wrong), None)
    assert caught is not None

"""Bugs planted one at a time into what is simulated: each is caught within the seeds that CI runs."""

from dataclasses import dataclass

import pytest

from overlay.feeds.serving import Serving
from peer.hosting.company import Company
from peer.hosting.feeding import Feeding
from peer.hosting.history import History
from peer.hosting.host import Host
from peer.hosting.marks import Marked, Marking, Numbers
from peer.hosting.outlet import Outlet
from peer.steering.steering import Steering
from peer.storage import ResultStore, database
from scenarios.simulation.drawn import simulate
from scenarios.simulation.verdicts import Check
from tests.simulation.planting import Swap
from tests.simulation.test_seeds import SEEDS


@dataclass(frozen=True)
class Bug:
    """What is wrong in the code, and by which checks it must be noticed: no other counts."""

    noticed_by: set[Check]
    swaps: tuple[Swap, ...]


LOW = Swap(Outlet, "pump", "serving.cursor < self.history.lowest", "False")
PLANTED = {
    "an ACK before the commit": Bug({Check.ACKNOWLEDGED}, (Swap(
        Host, "_advance", "hosted.outlet.history.add(items, ready.upto)",
        "hosted.outlet.history.add(items, ready.upto); hosted.committed = ready.upto",
    ),)),
    "a frontier that skips": Bug({Check.ROWS}, (Swap(
        Serving, "serve", "Frontier(self.feed, self.cursor, upto)",
        "Frontier(self.feed, self.cursor, upto := upto + 1)",
    ),)),
    # A gap that a sender has itself is told by ``Serving`` alone: nothing behind it could notice.
    "FRONTIER over a gap": Bug({Check.ROWS}, (Swap(
        Serving, "_frame", "return Gap(self.feed, self.cursor, item.number)",
        "return Frontier(self.feed, self.cursor, item.number)",
    ),)),
    # What a sender has dropped is guarded twice: the feed ends, and the store would say what it dropped. Without
    # both, results are missing; without the first alone, there is a gap where others still have them.
    "FRONTIER over what was dropped": Bug({Check.ROWS}, (
        LOW, Swap(ResultStore, "entries", "begin < min(lowest, upto)", "False"),
    )),
    "a gap where others have it": Bug({Check.GAPS}, (LOW,)),
    # ``pump`` would end such a feed before anything is missing; but the promise itself is wrong, and is noticed.
    "OPEN served below the start": Bug({Check.SERVED}, (
        Swap(Outlet, "open", "max(asked.after, self.history.lowest)", "asked.after"),
    )),
    "a replay that starts one late": Bug({Check.ROWS}, (
        Swap(History, "read", "if item.number > after:", "if item.number > after + 1:"),
    )),
    # A history takes nothing twice and fails: that is no verdict. That the frontier went back is noticed before.
    "a failover that forgets its frontier": Bug({Check.FRONTIER}, (Swap(
        Feeding, "_failed", "self.failovers += 1", "self.failovers += 1; self.frontier = self.configuration.start",
    ),)),
    "a stale proposal accepted": Bug({Check.PROPOSAL}, (
        Swap(Steering, "adopt", "proposal.base_epoch != self.epoch", "False"),
    )),
    "equal versions accepted twice": Bug({Check.VERSION}, (Swap(
        Host, "install", "configuration.version <= known.configuration.version",
        "configuration.version < known.configuration.version",
    ),)),
    "credits shared between feeds": Bug({Check.CREDIT}, (Swap(
        Outlet, "handle", "feed.serving.grant(frame.total, frame.acknowledged)",
        "[one.serving.grant(frame.total, frame.acknowledged) for one in self.feeds.values()]",
    ),)),
    "commits that are not forced to disk": Bug({Check.KEPT}, (
        Swap(database, "_prepare", "synchronous = FULL", "synchronous = NORMAL"),
    )),
    "results that are there twice": Bug({Check.ORDER}, (Swap(
        ResultStore, "entries", "_stored(connection, key, (max(begin, lowest), upto), max_bytes)",
        "[one for one in _stored(connection, key, (max(begin, lowest), upto), max_bytes) for _ in range(2)]",
    ),)),
    "results out of order": Bug({Check.ORDER}, (Swap(
        ResultStore, "entries", "_stored(connection, key, (max(begin, lowest), upto), max_bytes)",
        "_stored(connection, key, (max(begin, lowest), upto), max_bytes)[::-1]",
    ),)),
    "marks that miss a pattern": Bug({Check.ROWS}, (
        Swap(Marking, "marks", "flags[keys] = True", "flags[keys[1:]] = True"),
    )),
    "marks of another numbering": Bug({Check.ROWS}, (
        Swap(Numbers, "texts", "not marks.startswith(self._name)", "False"),
        Swap(Marked, "texts", "not marks.startswith(self._name) or count < self._count", "count < self._count"),
    )),
    "a step that forgets who follows": Bug({Check.ROWS}, (
        Swap(Company, "go_on", "bytes(map(one.__contains__, self._patterns))", "bytes(len(self._patterns))"),
    )),
    "a moving feed counted twice": Bug({Check.ROOM}, (
        Swap(Outlet, "open", "len(others) >= self.most", "len(self.feeds) >= self.most"),
    )),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_it_is_caught(name, monkeypatch):
    bug, reached = PLANTED[name], set()
    for swap in bug.swaps:
        swap.plant(monkeypatch, lambda swap=swap: reached.add(swap))
    noticed = (one.check for seed in range(SEEDS) for one in simulate(seed).wrong)
    assert any(check in bug.noticed_by for check in noticed)
    assert reached == set(bug.swaps)

"""The live part of the demo: a source and a dozen peers as processes, and proof that everybody got its own.

Documents are published before and after a full plan, and while a peer is dead; then every subscription's rows are
compared with direct matching.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from peer.errors import CommandError
from scenarios.processes import SOURCE, ProcessNetwork, running

if TYPE_CHECKING:
    from collections.abc import Callable

    from xmlmatch import Pattern

PEERS: Final = 12
SUBSCRIPTIONS: Final = 60
DOCUMENTS: Final = 30
_PATIENCE_S: Final = 60.0


@dataclass(slots=True)
class LiveSummary:
    """What the live demo showed."""

    peers: int
    subscriptions: int
    documents: int
    expected: int = 0
    delivered: int = 0
    wrong: int = 0
    source_feeds_before: int = 0
    source_feeds_after: int = 0
    replanned: bool = False
    source_bytes: int = 0
    alone_bytes: int = 0
    levels: tuple[int, ...] = ()
    failovers: int = 0
    seconds: float = 0.0

    @property
    def is_exact(self) -> bool:
        """Whether everybody got exactly its own."""
        return self.delivered == self.expected and self.wrong == 0

    def __str__(self) -> str:
        saved = 1 - self.source_bytes / max(self.alone_bytes, 1)
        plan = "" if self.replanned else " (no Spark here, so no full plan was made)"
        levels = ", ".join(f"{count} at level {level}" for level, count in enumerate(self.levels) if count)
        return (
            f"{self.peers} peers with {self.subscriptions} subscriptions got {self.delivered:,} of "
            f"{self.expected:,} rows, {self.wrong} wrong, though one was killed ({self.failovers} failovers).\n"
            f"The source fed {self.source_feeds_before} of them before the full plan, {self.source_feeds_after} "
            f"after it{plan}; {levels}.\n"
            f"It sent {self.source_bytes:,} bytes; feeding everybody itself it would have sent "
            f"{self.alone_bytes:,}: {saved:.0%} saved. All this took {self.seconds:.0f} s."
        )


def live_demo(seed: int, told: Callable[[str], None]) -> LiveSummary:
    """Run it; ``told`` hears of each step."""
    from scenarios.auction_documents import auction_documents
    from scenarios.presets import wan

    started = time.monotonic()
    summary = LiveSummary(PEERS, SUBSCRIPTIONS, DOCUMENTS)
    patterns = wan(seed, SUBSCRIPTIONS).subscriptions
    bodies = list(auction_documents(seed, DOCUMENTS))
    with tempfile.TemporaryDirectory(prefix="distributary-demo-") as folder, running(Path(folder)) as network:
        told("starting a source and a dozen peers")
        names = _start(network)
        told("subscribing")
        wanted = _subscribe(network, names, patterns)
        published: dict[int, bytes] = {}
        third = DOCUMENTS // 3

        def publish(part: list[bytes]) -> None:
            for body in part:
                published[network.publish(f"document-{len(published)}", body)] = body

        told("publishing")
        publish(bodies[:third])
        _await(network, wanted, max(published))
        summary.source_feeds_before = int(network.one(SOURCE, "status")["feeds"])
        told("planning anew (Spark)")
        summary.replanned = _replan(network)
        publish(bodies[third : 2 * third])
        _await(network, wanted, max(published))
        summary.source_feeds_after = int(network.one(SOURCE, "status")["feeds"])
        told("killing a peer that feeds others")
        victim = _largest_feeder(network, names)
        network.kill(victim)
        publish(bodies[2 * third :])
        network.start_peer(victim)
        told("waiting for everybody")
        _await(network, wanted, max(published))
        told("comparing with direct matching")
        _compare(network, wanted, published, summary)
    summary.seconds = time.monotonic() - started
    return summary


def _start(network: ProcessNetwork) -> list[str]:
    network.start_source()
    names = [f"peer-{i:02}" for i in range(PEERS)]
    for name in names:
        network.join(name)
        network.begin_peer(name)
    for name in names:
        network.await_ready(name)
    return names


def _subscribe(
    network: ProcessNetwork, names: list[str], patterns: list[Pattern]
) -> dict[str, tuple[str, Pattern]]:
    """Subscribe everybody; return the peer and the pattern by subscription."""
    wanted = {}
    for i, pattern in enumerate(patterns):
        name = names[i % len(names)]
        columns = [[node, what.value] for node, what in pattern.selection]
        told = network.one(name, "subscribe", pattern=pattern.text, columns=columns, limit=6)
        wanted[told["subscription"]] = (name, pattern)
    return wanted


def _replan(network: ProcessNetwork) -> bool:
    """Run ``distributary replan`` at the source; False if this machine has no Spark."""
    command = [sys.executable, "-m", "peer", "replan", "--home", str(network.home(SOURCE)), "--json"]
    done = subprocess.run(command, capture_output=True, check=False)
    return done.returncode == 0


def _standing(network: ProcessNetwork, names: set[str]) -> dict[str, dict[str, Any]]:
    return {one["subscription"]: one for name in sorted(names) for one in network.many(name, "subscriptions")}


def _await(network: ProcessNetwork, wanted: dict[str, tuple[str, Pattern]], upto: int) -> None:
    """Wait until every subscription is complete up to a document."""
    names = {name for name, _ in wanted.values()}
    end = time.monotonic() + _PATIENCE_S
    while True:
        standing = _standing(network, names)
        late = [one for one in wanted if one not in standing or standing[one]["committed"] < upto]
        if not late:
            return
        if time.monotonic() > end:
            raise CommandError(f"{len(late)} subscriptions are not complete after {_PATIENCE_S:.0f} s: {late[:3]}")
        time.sleep(0.2)


def _largest_feeder(network: ProcessNetwork, names: list[str]) -> str:
    feeds = {name: sum(one["feeds"] for one in network.many(name, "subscriptions")) for name in names}
    return max(names, key=lambda name: feeds[name])


def _compare(
    network: ProcessNetwork, wanted: dict[str, tuple[str, Pattern]], published: dict[int, bytes],
    summary: LiveSummary,
) -> None:  # fmt: skip
    """Compare every subscription's rows with direct matching, and count up."""
    from peer.hosting.results import from_document, whole_link
    from xmlmatch import Document, Matcher

    documents = {number: Document.parse(body) for number, body in published.items()}
    standing = _standing(network, {name for name, _ in wanted.values()})
    for subscription, (name, pattern) in wanted.items():
        matcher, link = Matcher([pattern]), whole_link(pattern)
        expected: dict[int, list[dict[str, Any]]] = {}
        for number, document in documents.items():
            matches = matcher.match(document)
            if len(matches):
                rows = matcher.node_sets(matches, 0).rows()
                expected[number] = [dict(zip(pattern.columns, map(_plain, row), strict=True)) for row in rows]
                summary.alone_bytes += len(from_document(link, matches, 0, document))
        got: dict[int, list[dict[str, Any]]] = {}
        for one in network.many(name, "entries", subscription=subscription):
            if "row" in one:
                got.setdefault(one["document"], []).append(one["row"])
        summary.expected += sum(map(len, expected.values()))
        summary.delivered += sum(map(len, got.values()))
        summary.wrong += sum(got.get(number, []) != expected.get(number, []) for number in documents)
        summary.failovers += standing[subscription]["failovers"]
    levels = [standing[one]["level"] for one in wanted]
    summary.levels = tuple(levels.count(level) for level in range(max(levels) + 1))
    summary.source_bytes = int(network.one(SOURCE, "status")["bytes_sent"])


def _plain(value: Any) -> Any:
    return value if isinstance(value, str) else list(value)

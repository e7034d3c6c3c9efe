"""What goes on while daemons are killed: publishing, and a change of who wants what and who feeds whom.

Each is a thread that asks again until it has an answer, for what is asked may be asked twice; only a subscription
whose answer is lost cannot be known here, so it is ended when it is found.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

from peer.errors import CommandError
from scenarios.drawn_plans import proposal
from scenarios.processes import SOURCE
from scenarios.small_documents import PATTERNS, small_document

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from scenarios.kills.ledger import Ledger
    from scenarios.kills.moments import Moments
    from scenarios.processes import ProcessNetwork

Found = TypeVar("Found")
PATIENCE_S: Final = 90.0
_AGAIN_S: Final = 0.05
_LARGE: Final = 150_000
"""How long a text is now and then: more than a fragment and a commit of others."""
_LIMIT: Final = 3


class TooLate(Exception):
    """Something did not happen in time; the message says what."""


def patiently(what: str, function: Callable[[], Found], patience_s: float = PATIENCE_S) -> Found:
    """Ask until there is an answer: a daemon may be dead, or about to be."""
    end = time.monotonic() + patience_s
    while True:
        try:
            return function()
        except (CommandError, OSError) as exc:
            if time.monotonic() > end:
                raise TooLate(f"{what}: {exc}") from exc
            time.sleep(_AGAIN_S)


def publish(
    network: ProcessNetwork, ledger: Ledger, moments: Moments, stop: threading.Event, seed: int, pace_s: float
) -> None:
    """Publish until told to stop; now and then a document a second time."""
    rng, me = random.Random(seed), f"publisher-{seed}"
    n = 0
    sent: list[tuple[str, bytes]] = []
    while not stop.is_set():
        n += 1
        name, body = f"{me}-{n}", small_document(rng)
        if rng.random() < 0.02:
            body = body.replace(b"<r>", b"<r><a><b>" + b"x" * _LARGE + b"</b></a>")
        if sent and rng.random() < 0.05:
            name, body = rng.choice(sent)

        def ask(name: str = name, body: bytes = body) -> int:
            moments.reach("publish")
            return network.publish(name, body)

        ledger.published(me, name, body, patiently(f"publishing {name}", ask))
        moments.reach("serve")
        sent.append((name, body))
        time.sleep(pace_s * rng.random() * 2)
    ledger.done(me)


class Changes:
    """Subscriptions come and go, and plans change, one thing at a time."""

    def __init__(
        self, network: ProcessNetwork, ledger: Ledger, moments: Moments, peers: list[str], rng: random.Random
    ) -> None:
        self._network, self._ledger, self._moments = network, ledger, moments
        self._peers, self._rng = peers, rng
        self.done: dict[str, int] = dict.fromkeys(("subscribe", "unsubscribe", "adopt", "stale", "unknown"), 0)

    def run(self, stop: threading.Event, few: int, many: int) -> None:
        """Change something until told to stop; keep between few and many subscriptions."""
        while not stop.is_set():
            count, chance = len(self._ledger.live()), self._rng.random()
            if chance < 0.25:
                self.adopt()
            elif count <= few or (count < many and chance < 0.65):
                self.subscribe()
            else:
                self.unsubscribe()
            stop.wait(self._rng.random() * 0.4)

    def subscribe(self) -> None:
        """Subscribe somewhere; if the answer is lost, end whatever has come of it."""
        peer, text = self._rng.choice(self._peers), self._rng.choice(PATTERNS)

        def ask() -> dict[str, Any]:
            self._moments.reach("subscribe")
            return self._network.one(peer, "subscribe", pattern=text, limit=_LIMIT)

        try:
            told = ask()
        except (CommandError, OSError):
            self.done["unknown"] += 1
            return
        self._ledger.subscribed(told["subscription"], peer, text, told["start"])
        self.done["subscribe"] += 1

    def unsubscribe(self) -> None:
        """End a subscription: one that feeds others, if any does."""
        owed = self._rng.choice(self._ledger.live())

        def ask() -> int:
            self._moments.reach("unsubscribe")
            return int(self._network.one(owed.peer, "unsubscribe", subscription=owed.name)["end"])

        self._ledger.unsubscribed(owed.name, patiently(f"unsubscribing {owed.name}", ask))
        self.done["unsubscribe"] += 1

    def adopt(self) -> None:
        """Propose other feeds for everybody; the same once more must be refused, for it is stale by then."""

        def snapshot() -> dict[str, Any]:
            return self._network.one(SOURCE, "snapshot", documents=1)

        known = patiently("a snapshot", snapshot)
        rows = proposal(known["subscriptions"], self._rng)
        self._moments.reach("adopt")
        try:
            told = self._network.one(SOURCE, "adopt", base_epoch=known["epoch"], rows=rows)
        except (CommandError, OSError):
            return
        if "stale" in told:
            return
        self.done["adopt"] += 1
        try:
            again = self._network.one(SOURCE, "adopt", base_epoch=known["epoch"], rows=rows)
        except (CommandError, OSError):
            return
        if "stale" in again:
            self.done["stale"] += 1
        else:
            self._ledger.complain(f"a plan made in epoch {known['epoch']} was adopted in {told['epoch']}")

    def sweep(self) -> None:
        """End the subscriptions of which nobody here has heard."""
        for peer in self._peers:
            found = patiently(f"listing {peer}", lambda peer=peer: self._network.many(peer, "subscriptions"))  # type: ignore[misc]  # its default is text
            for one in found:
                name = one["subscription"]
                if name not in self._ledger.subscriptions:
                    patiently(
                        f"ending {name}",
                        lambda peer=peer, name=name: self._network.one(peer, "unsubscribe", subscription=name),  # type: ignore[misc]  # the same
                    )

"""A switch between hosts: a packet in, and when it leaves for whom, if it does.

Sans-IO: time and packets are handed in, chance comes from a seed. Packets of one direction of a link leave in the
order in which they came, one after the other at the link's bandwidth. What waits is bounded per direction; beyond,
packets are dropped, as a router does.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import random

    from scenarios.hosts.links import Links

QUEUE_BYTES: Final = 4 << 20


@dataclass(slots=True)
class _Lane:
    """One direction between two hosts."""

    free_at: float = 0.0
    last_at: float = 0.0
    waiting: int = 0


@dataclass(slots=True)
class Counts:
    """What happened to packets."""

    passed: int = 0
    passed_bytes: int = 0
    lost: int = 0
    cut: int = 0
    overflowed: int = 0


class Switch:
    """See the module's text."""

    def __init__(self, links: Links, rng: random.Random, queue_bytes: int = QUEUE_BYTES) -> None:
        self.links, self._rng, self._queue_bytes = links, rng, queue_bytes
        self.counts = Counts()
        self._lanes: dict[tuple[str, str], _Lane] = {}
        self._due: list[tuple[float, int, str, str, bytes]] = []
        self._number = 0

    def take(self, now: float, sender: str, receiver: str, packet: bytes) -> None:
        """A packet has come."""
        link = self.links.between(sender, receiver)
        if link is None:
            self.counts.cut += 1
            return
        if link.loss and self._rng.random() < link.loss:
            self.counts.lost += 1
            return
        lane = self._lanes.setdefault((sender, receiver), _Lane())
        size = len(packet)
        if lane.waiting + size > self._queue_bytes:
            self.counts.overflowed += 1
            return
        lane.waiting += size
        begins = max(now, lane.free_at)
        lane.free_at = begins if link.mbit is None else begins + size * 8 / (link.mbit * 1e6)
        delay = (link.rtt_ms / 2 + (link.jitter_ms * self._rng.random() if link.jitter_ms else 0.0)) / 1000
        lane.last_at = max(lane.free_at + delay, lane.last_at)
        self._number += 1
        heapq.heappush(self._due, (lane.last_at, self._number, sender, receiver, packet))

    def due(self, now: float) -> list[tuple[str, bytes]]:
        """Return the packets that leave by now, in order, with their receivers; one cut off meanwhile is lost."""
        found = []
        while self._due and self._due[0][0] <= now:
            _, _, sender, receiver, packet = heapq.heappop(self._due)
            self._lanes[sender, receiver].waiting -= len(packet)
            if self.links.between(sender, receiver) is None:
                self.counts.cut += 1
                continue
            self.counts.passed += 1
            self.counts.passed_bytes += len(packet)
            found.append((receiver, packet))
        return found

    @property
    def next_at(self) -> float | None:
        """When the next packet leaves; None if none waits."""
        return self._due[0][0] if self._due else None

"""What can be set about a node of the DHT."""

from __future__ import annotations

from dataclasses import dataclass, field

from overlay.dht.messages import MOST_CONTACTS
from overlay.dht.record_store import StoreLimits


@dataclass(frozen=True, slots=True)
class DhtSettings:
    """How a node of the DHT behaves. All nodes of a network should have the same ``k``."""

    # Nodes per record and per bucket. Higher: records survive more deaths; lower: puts cost fewer datagrams.
    k: int = 8
    # Questions of one lookup under way. Higher: faster past dead nodes; lower: fewer wasted questions.
    alpha: int = 3
    # Wait for an answer, and how often to ask before a contact is dropped. Higher: patience with slow or lossy
    # links; lower: dead contacts hold up less.
    timeout_s: float = 0.5
    tries: int = 2
    # Questions of the whole node under way. Higher: more throughput; lower: fewer datagrams lost in full buffers.
    in_flight: int = 64
    # Nodes that must give a record before the newest is taken. Higher: fresher; lower: faster.
    readers: int = 3
    # Of the nodes that hold a record, how many hand it to a newcomer near it. Higher: fewer replicas missed;
    # lower: fewer stores twice.
    handers: int = 3
    # How often to look up an id in each bucket and to store again what nobody else did. Higher: less traffic;
    # lower: replicas come back sooner after deaths.
    refresh_s: float = 3600.0
    # How often to put own records again, and how long before their expiry to renew them. Same trade-off.
    republish_s: float = 3600.0
    renew_before_s: float = 86400.0
    # How long the previous key is accepted. Higher: slow members keep up; lower: who was revoked is out sooner.
    grace_s: float = 5.0
    # How far clocks may differ. Higher: bad clocks are tolerated; lower: fewer old datagrams can be replayed.
    most_skew_s: float = 300.0
    # Own records that are put again. It bounds memory, at about the size of the records.
    most_own: int = 200_000
    limits: StoreLimits = field(default_factory=StoreLimits)

    def __post_init__(self) -> None:
        if not 1 <= self.k <= MOST_CONTACTS:
            raise ValueError(f"k is {self.k}; it is from 1 to {MOST_CONTACTS}")
        for name in ("alpha", "tries", "in_flight", "readers", "handers", "timeout_s", "refresh_s", "republish_s"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it is above 0")

"""A subscription on this machine: how it is fed, what it has, whom it feeds, and how far it is."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from peer.hosting.results import DOCUMENTS

if TYPE_CHECKING:
    from peer.hosting.attempt import Attempt
    from peer.hosting.configuration import Configuration
    from peer.hosting.feeding import Feeding
    from peer.hosting.outlet import Outlet


@dataclass(slots=True, eq=False)
class Hosted:
    """A subscription on this machine."""

    name: str
    configuration: Configuration
    feeding: Feeding
    outlet: Outlet
    committed: int
    is_draining: bool = False
    end: int = 0
    """Of one that is withdrawn: the last document that it is owed."""
    drained_by: float = 0.0
    unsafe: deque[tuple[int, Attempt, list[int]]] = field(default_factory=deque)
    """What was taken out and is not on disk yet: up to which document, how much of each input."""
    is_relay: bool = field(init=False)
    """Whether it has whole documents."""

    def __post_init__(self) -> None:
        self.is_relay = self.outlet.pattern == DOCUMENTS

    @property
    def frontier(self) -> int:
        """Everything up to there is known."""
        return self.outlet.history.frontier

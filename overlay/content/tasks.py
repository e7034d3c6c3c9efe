"""A message on its way through a machine: what it has been asked for, by whom, and what is still missing.

A task is done when everybody who was asked for a part has said that it is, and every subscriber concerned has
stored the message. Not before: whoever acknowledges answers for all below.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from overlay.content.frames import Deliver, Message
    from overlay.content.routing import Request
    from rewriting.filters.region import Region

AGAIN_S: Final = 2.0
"""After so long somebody is asked again; longer than a message takes through the network, or all is asked
twice."""
SOON_S: Final = 0.2
"""After so long somebody is asked again who refused: it has to learn of a change, or to load a zone."""
BEHIND_AFTER: Final = 4
"""So often a subscriber's machine is given a message; then it is behind, and the source owes it the rest."""


@dataclass(slots=True)
class Asked:
    """A part that another machine was asked for."""

    site: str
    deadline: float


@dataclass(slots=True)
class Delivery:
    """What a subscriber's machine was given."""

    frame: Deliver
    deadline: float
    tries: int = 1


@dataclass(slots=True)
class Task:
    """``requesters``: who is told. ``covered``: prefixes that are done. ``blocked``: zones and requests that wait
    for the payload."""

    request: Request
    message: Message
    region: Region
    requesters: list[str]
    asked: dict[Request, Asked] = field(default_factory=dict)
    deliveries: dict[tuple[str, str], Delivery] = field(default_factory=dict)
    covered: set[str] = field(default_factory=set)
    behind: set[str] = field(default_factory=set)
    blocked_zones: list[str] = field(default_factory=list)
    blocked_requests: list[Request] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        """Whether nothing is missing any more."""
        return not (self.asked or self.deliveries or self.blocked_zones or self.blocked_requests)

"""When the documents of a run are published: at a rate, or as fast as the network takes them.

The source takes a document as soon as it is on its disk, however far behind everybody else is: publishing back to
back would only fill its log, and the network would work through that long after the last document. So at full load
the next document is published as soon as every host lacks fewer than some number of those before it. Nobody is
idle then, and no more than that is under way.

Hosts that are away, frozen or cut off hold nobody up, and neither do they when they are back, until they lack as
few as the others: a fault hits a network that goes on under load. Without any other host nothing is published.
"""

from __future__ import annotations

import sys
import time
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from peer.errors import CommandError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Iterator

    from scenarios.running.daemons import Daemons
    from scenarios.running.link_faults import LinkFaults
    from scenarios.running.story import Story

AHEAD: Final = 100
AT_ONCE: Final = 8
"""How many are handed to the source at once: each waits for its disk, and for its turn on a busy machine."""
_LOOK_S: Final = 0.02
_AGAIN_S: Final = 0.2
"""No host is asked more often: that would be load too."""
_ANSWER_S: Final = 2.0
_ALL: Final = sys.maxsize


def at_rate(
    bodies: Iterable[bytes], per_s: float, begun: float, is_over: threading.Event
) -> Iterator[tuple[float, bytes]]:
    """Yield each document when it is due, with that time."""
    for i, body in enumerate(bodies):
        due = begun + i / per_s
        if is_over.wait(max(0.0, due - time.monotonic())):
            return
        yield due, body


class FullLoad:
    """See the module's text. ``ahead``: so many documents a host may lack, and no more."""

    def __init__(
        self, story: Story, daemons: Daemons, links: LinkFaults, ahead: int | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._story, self._daemons, self._links = story, daemons, links
        self._ahead, self._clock = ahead or AHEAD, clock
        self._upto: dict[str, int] = {}
        """The last document that all of a host's subscriptions have, as it said when it was asked last."""
        self._asked: dict[str, float] = {}
        self._given = 0
        self._behind: set[str] = set()
        """Hosts that a fault has hit, until they lack no more than others."""

    def documents(
        self, bodies: Iterable[bytes], end: float, is_over: threading.Event
    ) -> Iterator[tuple[float, bytes]]:
        """Yield each document when there is room for it, with that time, until ``end``."""
        self._given = len(self._story.documents)
        for body in bodies:
            begun = self._clock()
            while not self.has_room() and self._clock() < end:
                if is_over.wait(_LOOK_S):
                    return
            now = self._clock()
            self._story.held_back_s += now - begun
            if now >= end or is_over.is_set():
                return
            self._given += 1
            yield now, body

    def has_room(self) -> bool:
        """Say whether one more document may be under way."""
        hosts = list(self._daemons.hosts)
        cut_off = self._links.cut_off
        hit = {name for name in hosts if self._daemons.trouble(name) or name in cut_off}
        self._behind |= hit
        for name in hosts:
            if name not in hit and (name in self._behind or self._lacks(name) >= self._ahead):
                self._ask(name)
        self._behind = {name for name in self._behind if name in hit or self._lacks(name) >= self._ahead}
        counted = [name for name in hosts if name not in self._behind]
        return bool(counted) and all(self._lacks(name) < self._ahead for name in counted)

    def _lacks(self, host: str) -> int:
        """Count the documents that a host has not told to have, also those still on their way to the source."""
        had = bisect_right(self._story.documents, self._upto.get(host, 0), key=lambda one: one.number)
        return self._given - had

    def _ask(self, host: str) -> None:
        """Ask a host how far it is, unless that was just asked; one that does not answer is where it was."""
        now = self._clock()
        if now - self._asked.get(host, -_AGAIN_S) < _AGAIN_S:
            return
        self._asked[host] = now
        try:
            told = self._daemons.many(host, "subscriptions", patience_s=_ANSWER_S)
        except (CommandError, OSError):
            return
        owed = {one.name for one in list(self._story.owed.values()) if one.end is None and one.host == host}
        self._upto[host] = min((one["committed"] for one in told if one["subscription"] in owed), default=_ALL)

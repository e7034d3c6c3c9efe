"""Those who keep step with the relay of their machine, moved as one: to touch each takes longer than to match.

Theory of operation. While nothing but documents of the relay comes, everybody in a company is where the relay is,
so nobody's own place is written: the company has it, and what of its documents is not on disk yet. Their feeds
are set aside meanwhile, so that the relay does not see them behind. Whatever else happens to one of them, or
whoever looks at one, has the company *part* first: then each is where it would have come by itself. The next
document of the relay makes a new company.

    none --documents handed out to each--> company        company --documents--> company, further on
    company --anything else--> parted, and none
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overlay.feeds.items import Item
    from overlay.feeds.serving import Serving
    from peer.hosting.hosted import Hosted


class Member(NamedTuple):
    """A subscription that a relay feeds, the feed, and the pattern that is matched for it."""

    hosted: Hosted
    serving: Serving
    pattern: str

    @property
    def may_join(self) -> bool:
        """Whether nothing but documents will happen to it, as far as can be known."""
        hosted = self.hosted
        return not (hosted.outlet.feeds or hosted.unsafe) and hosted.feeding.is_settled


class Company:
    """See the module's text. All members are at ``upto``."""

    def __init__(self, relay: Hosted, members: Sequence[Member], upto: int) -> None:
        self.relay, self.members, self._upto = relay, members, upto
        self._patterns = [member.pattern for member in members]
        self.own = frozenset(member.hosted.name for member in members)
        self._names: tuple[str, ...] = tuple(member.hosted.name for member in members)
        self._beside: list[str] = []
        self._safe = 0
        self._unsafe: deque[tuple[int, Sequence[dict[str, Item]]]] = deque()
        gone = {member.serving.feed for member in members}
        outlet = relay.outlet
        self._aside = {
            (site, feed): one for (site, feed), one in outlet.feeds.items() if feed in gone and site == outlet.site
        }
        outlet.feeds = {key: one for key, one in outlet.feeds.items() if key not in self._aside}

    def __contains__(self, name: object) -> bool:
        return name in self.own

    def is_at(self, relay: Hosted, number: int) -> bool:
        """Say whether it follows a relay, and has come to a document with it."""
        return relay is self.relay and self._upto == number

    def go_on(self, matched: Sequence[dict[str, Item]], upto: int) -> list[bytes]:
        """Take documents: ``matched`` are, for each, the patterns that match it. Return, for each, a byte per
        member: 1 where it has results."""
        self._unsafe.append((upto, matched))
        self._upto = upto
        return [bytes(map(one.__contains__, self._patterns)) for one in matched]

    def names(self, beside: list[str]) -> tuple[str, ...]:
        """Return the members and some others; the very same as the last time if those are."""
        if beside != self._beside:
            self._beside, self._names = beside, (*(member.hosted.name for member in self.members), *beside)
        return self._names

    def committed(self, names: Sequence[str], upto: int) -> Sequence[str]:
        """Everything up to a document is safe for some: if the members are among them all are moved as one.
        Return who is left to be moved."""
        if names is not self._names:
            return names
        self._safe = max(self._safe, upto)
        while self._unsafe and self._unsafe[0][0] <= self._safe:
            self._unsafe.popleft()
        return self._beside

    def part(self) -> None:
        """Let each be where it would have come by itself."""
        for hosted, serving, pattern in self.members:
            history = hosted.outlet.history
            hosted.feeding.handed(self._upto)
            serving.cursor = self._upto
            history.skip_to(self._safe)
            for upto, matched in self._unsafe:
                history.add([one[pattern] for one in matched if pattern in one], upto)
            hosted.committed = max(hosted.committed, self._safe)
        self.relay.outlet.feeds = {**self._aside, **self.relay.outlet.feeds}

"""One way of being fed, tried from a document on: its feeds, and what has come over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from overlay.feeds.items import Item, Kind
from overlay.feeds.receiving import Stage
from peer.hosting.results import Joining, trouble
from rewriting.errors import ColumnsTooLargeError
from xmlmatch import Pattern

if TYPE_CHECKING:
    from overlay.feeds.intake import Intake, Ready
    from overlay.feeds.receiving import Receiving
    from overlay.wire.frames import FromSender
    from peer.hosting.configuration import Input


@dataclass(slots=True, eq=False)
class Attempt:
    """A choice of inputs (none: the source), and the state of the feed from each it needs. ``place``: its place
    among the choices."""

    place: int
    choice: tuple[Input, ...]
    inputs: tuple[Input, ...]
    joining: Joining
    sites: tuple[str, ...]
    feeds: list[Receiving]
    intake: Intake
    begun: float

    @property
    def is_source(self) -> bool:
        """Whether the source feeds it."""
        return not self.inputs

    @property
    def is_live(self) -> bool:
        """Whether every feed is open."""
        for feed in self.feeds:
            if feed.stage is not Stage.LIVE:
                return False
        return True

    @property
    def has_failed(self) -> bool:
        """Whether some feed has ended, cannot give what is owed, or comes from too far."""
        for feed in self.feeds:  # a loop, here and below: it is asked for every frame
            if feed.stage is Stage.ENDED or feed.missing or feed.is_too_deep:
                return True
        return False

    @property
    def is_too_deep(self) -> bool:
        """Whether a sender is further from the source than any plan makes it: something feeds itself."""
        return any(feed.is_too_deep for feed in self.feeds)

    @property
    def missing(self) -> int:
        """Up to where some sender has nothing any more; 0 if all have everything."""
        return max(feed.missing for feed in self.feeds)

    def is_at(self, number: int) -> bool:
        """Whether its one input covers everything up to a document, and nothing waits to be taken out."""
        feed = self.feeds[0]
        is_there = feed.covered == number == self.intake.frontier
        return is_there and len(self.feeds) == 1 and feed.stage is Stage.LIVE

    def skip_to(self, upto: int) -> None:
        """Everything up to a document has come another way."""
        for feed in self.feeds:
            feed.covered = upto
        self.intake.skip_to(upto)

    def handle(self, number: int, frame: FromSender) -> None:
        """Take a frame of one feed in. ``MalformedFrame`` if it does not follow on the last."""
        feed = self.feeds[number]
        items = feed.handle(frame)
        if feed.missing and self.is_source:
            # Nobody has it if the source has not: that is a gap, and the feed goes on after it.
            items = [*items, Item(feed.missing, Kind.GAP, after=feed.covered)]
            feed.skip_missing()
        for item in items:
            self.intake.take(number, item, feed.covered)
        self.intake.take(number, None, feed.covered)

    def joined(self, ready: Ready, site: str) -> list[Item]:
        """Compute results from what its inputs have; ``site``: the machine that it is on."""
        items = list(ready.troubles)
        for number, name, inputs, marks in ready.documents:
            try:
                data = self.joining.join(inputs, own=self.sites == (site,))
            except ColumnsTooLargeError as exc:
                items.append(trouble(number, name, exc))
                continue
            if data:
                marks = marks if self.joining.is_copy else b""
                items.append(Item(number, Kind.RESULTS, data, name=name, marks=marks))
        return sorted(items, key=lambda item: item.number)


def needed(pattern: Pattern, choice: tuple[Input, ...]) -> tuple[tuple[Input, ...], Joining]:
    """Say how results come from a choice, and from which of its inputs. ``BadLink`` if they cannot.

    A plan goes by measured sizes, and may name an input because it is cheaper for a node that another has as well.
    Here assumed sizes decide, and who would be asked for nothing is left out.
    """
    joining = Joining(pattern, tuple(Pattern.parse(one.pattern) for one in choice))
    if joining.rewriting is None or all(link.provisions for link in joining.rewriting.links):
        return choice, joining
    inputs = tuple(one for one, link in zip(choice, joining.rewriting.links, strict=True) if link.provisions)
    return needed(pattern, inputs)

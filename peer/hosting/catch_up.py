"""The catch-up lane: what feeds that are behind get of the source's log, a bounded piece at a time.

Theory of operation. Feeds that are up to date must not wait for those that are not, nor must signs of life. So
work for the latter comes in *turns*: each has a budget, and whoever asks when it is spent gets nothing, and asks
again. A document is parsed and matched once for all patterns that are fed: those that are behind are mostly behind
together, as after a machine was away, and what was matched last is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from overlay.feeds.items import Item, Kind
from peer.hosting.history import Stretch
from peer.hosting.results import made, matched_alone
from xmlmatch import Document
from xmlmatch.errors import XmlMatchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rewriting.execution import Link
    from xmlmatch import Matcher
    from xmlmatch.matcher import Matches

_BUDGET: Final = 512 << 10
"""Of a turn, in bytes parsed and made: some 7 ms. More catches up sooner, and holds everything else up longer."""
_RESULT: Final = 2 << 10
"""What making a result takes besides its bytes."""
_LOOK: Final = 64
"""What finding that there is none takes."""
_MOST_KEPT: Final = 4 << 20
"""Bytes of documents that are kept parsed."""


class Body(NamedTuple):
    """A document of the log."""

    number: int
    name: str
    data: bytes


class Lost(NamedTuple):
    """The documents in (after, number] are not in the log any more."""

    after: int
    number: int


class _Matched(NamedTuple):
    matches: Matches
    places: dict[int, int]
    """Where the results of a key stand."""


class CatchUp:
    """Matches documents of the log for whoever is behind; see the module's text."""

    def __init__(self, matcher: Matcher, budget: int = _BUDGET) -> None:
        self._matcher, self._budget = matcher, budget
        self._left = budget
        self._known: dict[int, _Matched | None] = {}
        self._kept = 0

    def turn(self) -> None:
        """Begin another turn."""
        self._left = self._budget

    @property
    def is_spent(self) -> bool:
        """Whether nothing more is done in this turn."""
        return self._left <= 0

    def forget(self) -> None:
        """The patterns have changed: what was matched does not count any more."""
        self._known.clear()
        self._kept = 0

    def results(self, bodies: Sequence[Body | Lost], key: int, link: Link) -> Stretch | None:
        """Return what a pattern has of documents in order, as far as this turn goes; None if it does not."""
        items, upto = [], None
        for body in bodies:
            if self.is_spent:
                break
            upto = body.number
            if isinstance(body, Lost):
                items.append(Item(body.number, Kind.GAP, after=body.after))
            elif (item := self._of(body, key, link)) is not None:
                items.append(item)
        return None if upto is None else Stretch(items, upto)

    def _of(self, body: Body, key: int, link: Link) -> Item | None:
        if body.number not in self._known:
            self._match(body)
        self._left -= _LOOK
        found = self._known[body.number]
        if found is None:  # too much for all at once, or for anybody
            self._left -= len(body.data)
            item = matched_alone(link.view, body.number, body.name, body.data)
        else:
            place = found.places.get(key)
            item = None if place is None else made(link, found.matches, place, body.number, body.name)
        self._left -= 0 if item is None else len(item.data) + _RESULT
        return item

    def _match(self, body: Body) -> None:
        self._left -= len(body.data)
        if self._kept + len(body.data) > _MOST_KEPT:
            self.forget()
        self._kept += len(body.data)
        try:
            matches = self._matcher.match(Document.parse(body.data))
        except XmlMatchError:
            self._known[body.number] = None
        else:
            places = {found: place for place, found in enumerate(matches.keys.tolist())}
            self._known[body.number] = _Matched(matches, places)

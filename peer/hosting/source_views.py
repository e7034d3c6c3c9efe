"""What the source feeds: the results of patterns on the documents of its log, made when they are wanted.

A document is parsed and matched once for all patterns that are fed. Feeds that begin further back get their
documents from the log (``catch_up``). Nothing is stored: the log is.
"""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from overlay.wire.frames import Cancel, Credit, Ended, Pace
from peer.hosting.catch_up import CatchUp
from peer.hosting.history import History, Stretch
from peer.hosting.holding import Holding
from peer.hosting.marks import NAME_BYTES, Marking
from peer.hosting.outlet import Outlet
from peer.hosting.results import DOCUMENTS, made, trouble, whole_document, whole_link
from xmlmatch import Document, Matcher, Pattern, PatternError
from xmlmatch.errors import XmlMatchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overlay.feeds.items import Item
    from overlay.wire.frames import FromReceiver, FromSender, Open
    from peer.hosting.catch_up import Body, Lost
    from rewriting.execution import Link


class Log(Protocol):
    """What is asked of the source's log."""

    @property
    def generation(self) -> int:
        """The generation of its numbers."""

    @property
    def lowest(self) -> int:
        """Documents up to there are gone."""

    @property
    def last(self) -> int:
        """The highest number."""

    def bodies(self, after: int, upto: int, most_bytes: int) -> Sequence[Body | Lost]:
        """Read documents in order, at least one if there is any, and what is lost among them."""


class SourcePort(Protocol):
    """What the source's views need of the machine."""

    def send(self, site: str, frame: FromSender) -> bool:
        """Send to a machine; False if it is not connected."""

    def forbids(self, site: str, asked: Open) -> str:
        """Say why a machine may not open a feed; empty if it may."""


@dataclass(slots=True, eq=False)
class _View:
    link: Link
    outlet: Outlet
    key: int


class SourceViews:
    """The patterns that the source feeds, and their feeds. ``numbering``: a name that no other source or life of
    it has, for the marks that whole documents get."""

    def __init__(self, site: str, log: Log, port: SourcePort, numbering: bytes = b"") -> None:
        self.site, self._log, self._port = site, log, port
        self.marking = Marking(numbering or secrets.token_bytes(NAME_BYTES))
        self._matcher = Matcher()
        self._lane = CatchUp(self._matcher)
        self._turn = 0
        self._views: dict[str, _View] = {}
        self._by_key: dict[int, _View] = {}
        self._served: dict[tuple[str, int], str] = {}
        self._frontier = log.last
        self._holding, self._is_holding = Holding(), False

    def __len__(self) -> int:
        return len(self._served)

    def feeds(self, site: str) -> bool:
        """Say whether anything on a machine is fed by the source."""
        return any(of == site for of, _ in self._served)

    @property
    def credit_left(self) -> int:
        """How many bytes the receivers let it send now."""
        return sum(view.outlet.credit_left for view in self._views.values())

    def numbers(self, patterns: Sequence[str], now: float) -> dict[str, Any]:
        """Say what numbers patterns have, by which marks of documents are read."""
        numbering, numbers = self.marking.number(patterns, now)
        return {"numbering": numbering, "numbers": numbers}

    def published(
        self, number: int, name: str, body: bytes | None, parsed: Document | None = None, *,
        now: float = -math.inf,
    ) -> None:  # fmt: skip
        """A document is in the log (or an entry that is none): feed it to everybody who is up to date, but to
        those who are not waiting for it perhaps a little later. ``parsed``: the document, if somebody has read it
        already."""
        items = {} if body is None or not self._views else self._match(number, name, body, parsed)
        self._frontier = number
        for view in self._views.values():
            item = items.get(view.key)
            view.outlet.history.add([] if item is None else [item], number)
            view.outlet.history.stored_upto(number)
        if body is not None:
            self._holding.came(now, len(body))
        self.pump(now)

    @property
    def held_until(self) -> float:
        """When to pump at the latest, for what is held."""
        return self._holding.until if self._is_holding else math.inf

    def handle(self, site: str, frame: FromReceiver) -> None:
        """Take a frame of a receiver in."""
        if isinstance(frame, Credit | Cancel | Pace):
            text = self._served.get((site, frame.feed))
            if text is not None:
                self._views[text].outlet.handle(site, frame)
                if isinstance(frame, Cancel):
                    del self._served[site, frame.feed]
                    self._tidy(text)
                else:
                    self._pump(self._views[text])
            return
        reason = self._port.forbids(site, frame)
        if not reason and frame.generation != self._log.generation:
            reason = "another generation of the log"
        try:
            pattern = Pattern.parse(frame.query)
        except PatternError as exc:
            reason = str(exc)
        if reason:
            self._port.send(site, Ended(frame.feed, "forbidden", reason[:500]))
            return
        view = self._views.get(pattern.text) or self._begin(pattern)
        for told in view.outlet.open(site, frame):
            self._port.send(site, told)
        if (site, frame.feed) in view.outlet.feeds:
            self._served[site, frame.feed] = pattern.text
        self._tidy(pattern.text)
        self._pump(view)

    def trimmed(self, lowest: int) -> None:
        """The log has dropped the documents up to one."""
        for view in self._views.values():
            view.outlet.history.lowest = max(view.outlet.history.lowest, lowest)

    def site_lost(self, site: str) -> None:
        """Forget the feeds to a machine."""
        for key in [key for key in self._served if key[0] == site]:
            del self._served[key]
        for text, view in list(self._views.items()):
            view.outlet.site_lost(site)
            self._tidy(text)

    def pump(self, now: float = math.inf) -> None:
        """Send what feeds may get now; those that are behind take turns, who had none first next time."""
        self._lane.turn()
        self._is_holding = self._holding.is_held(now)
        if not self._is_holding:
            self._holding.gone()
        views = list(self._views.values())
        first, self._turn = self._turn % max(len(views), 1), 0
        for place in (*range(first, len(views)), *range(first)):
            self._pump(views[place])
            if self._lane.is_spent and not self._turn:
                self._turn = place

    @property
    def has_work(self) -> bool:
        """Whether feeds that are behind could be sent more."""
        return any(view.outlet.has_work(is_holding=self._is_holding) for view in self._views.values())

    def _pump(self, view: _View) -> None:
        for site, frame in view.outlet.pump(is_holding=self._is_holding):
            self._port.send(site, frame)

    def _begin(self, pattern: Pattern) -> _View:
        def stored(after: int, upto: int, most_bytes: int) -> Stretch:
            return self._behind(pattern.text, after, upto, most_bytes)

        history = History(self._frontier, self._log.lowest, stored)
        view = _View(
            whole_link(pattern),
            Outlet(pattern, history, 1 << 40, self.site, is_last_resort=True),
            self._matcher.add(pattern),
        )
        self._views[pattern.text] = self._by_key[view.key] = view
        self._lane.forget()
        return view

    def _tidy(self, text: str) -> None:
        view = self._views[text]
        if not view.outlet.feeds:
            self._matcher.remove(view.key)
            self._lane.forget()
            del self._views[text], self._by_key[view.key]

    def _match(self, number: int, name: str, body: bytes, parsed: Document | None) -> dict[int, Item]:
        try:
            document = Document.parse(body) if parsed is None else parsed
            items = self._matched(number, name, document)
        except XmlMatchError as exc:
            return dict.fromkeys(self._by_key, trouble(number, name, exc))
        whole = self._views.get(DOCUMENTS.text)
        if whole is not None:
            item = whole_document(document, number, name)
            items[whole.key] = replace(item, marks=self.marking.marks(document))
        return items

    def _matched(self, number: int, name: str, document: Document) -> dict[int, Item]:
        """Make what all views have of a document, but the one of whole documents: often it is the only one."""
        if self._views.keys() == {DOCUMENTS.text}:
            return {}
        matches = self._matcher.match(document)
        return {
            key: made(self._by_key[key].link, matches, place, number, name)
            for place, key in enumerate(matches.keys.tolist())
            if self._by_key[key].outlet.pattern != DOCUMENTS
        }

    def _behind(self, text: str, after: int, upto: int, most_bytes: int) -> Stretch:
        """Read on for a feed that is behind; nothing if this turn is spent."""
        view = self._views[text]
        if self._lane.is_spent or after >= upto:
            return Stretch([], min(after, upto))
        bodies = self._log.bodies(after, upto, most_bytes)
        if not bodies:
            return Stretch([], upto)
        return self._lane.results(bodies, view.key, view.link) or Stretch([], after)

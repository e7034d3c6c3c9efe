"""A subscription's feeds to others: opened, kept within the limit, and served from its history.

A batch is cut once for all feeds that ask for the same of it. A feed that is behind, or out of credit, waits at
its place in the history and costs no memory. Feeds to the own machine do not count against the limit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from overlay.feeds.items import Item, Kind
from overlay.feeds.serving import Serving
from overlay.wire.frames import Cancel, Credit, Ended, Level, Opened, Pace
from peer.hosting.relay import Rematching, asked_by_many
from peer.hosting.results import (
    DOCUMENTS,
    MATCH,
    BadLink,
    cut_at_once,
    cut_columns,
    read_cut_untrusted,
    read_whole,
    trouble,
)
from rewriting.errors import ColumnsTooLargeError, RewritingError
from xmlmatch import Pattern, PatternError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from overlay.wire.frames import FromSender, Open
    from peer.hosting.history import History
    from peer.hosting.marks import Numbers
    from rewriting.columns import Columns
    from rewriting.execution import Link

_AT_ONCE: Final = 256 << 10
"""How much a feed that is behind gets before the others have their turn."""


@dataclass(slots=True)
class _Feed:
    site: str
    downstream: str
    serving: Serving
    link: Link | None
    cut: tuple[bytes, str]
    matched: Pattern | None = None
    """Of a relay's feed: what it wants matched."""
    is_gentle: bool = False
    """Whether what it gets may be held for a moment."""


@dataclass(slots=True)
class Outlet:
    """The feeds of one subscription. ``most``: how many may go to other machines."""

    pattern: Pattern
    history: History
    most: int
    site: str
    level: int = 0
    is_last_resort: bool = False
    resolve: Callable[[Item], Item] = lambda item: item
    """Makes results of references."""
    feeds: dict[tuple[str, int], _Feed] = field(default_factory=dict)
    _rematching: Rematching = field(default_factory=Rematching)

    @property
    def crossing(self) -> set[str]:
        """The subscriptions on other machines that it feeds; one that is moving has two feeds for a while."""
        return {feed.downstream for feed in self.feeds.values() if feed.site != self.site}

    @property
    def credit_left(self) -> int:
        """How many bytes the receivers let it send now."""
        return sum(max(feed.serving.granted - feed.serving.sent, 0) for feed in self.feeds.values())

    def open(self, site: str, asked: Open) -> list[FromSender]:
        """Open a feed, or say why not."""
        others = self.crossing - {asked.downstream}
        if site != self.site and len(others) >= self.most:
            return [Ended(asked.feed, "busy", f"{self.most} feeds are the limit")]
        try:
            query = Pattern.parse(asked.query)
            matched = query if asked.link == MATCH else None
            link = read_cut_untrusted(self.pattern, query, asked.link) if asked.link and not matched else None
        except (BadLink, PatternError) as exc:
            return [Ended(asked.feed, "forbidden", str(exc)[:500])]
        if matched and self.pattern != DOCUMENTS:
            return [Ended(asked.feed, "forbidden", "only whole documents can be matched")]
        if link is None and not matched and query != self.pattern:
            return [Ended(asked.feed, "forbidden", "the whole is for equal patterns only")]
        after = max(asked.after, self.history.lowest)
        cut = (asked.link, asked.query)
        serving = Serving(asked.feed, after, asked.credit)
        self._drop((site, asked.feed))
        self.feeds[site, asked.feed] = _Feed(site, asked.downstream, serving, link, cut, matched)
        if matched:
            self._rematching.want(matched)
        return [Opened(asked.feed, after, self.level)]

    def handle(self, site: str, frame: Credit | Cancel | Pace) -> None:
        """Take what a receiver says of its feed."""
        feed = self.feeds.get((site, frame.feed))
        if feed is None:
            return  # it has ended meanwhile
        if isinstance(frame, Cancel):
            self._drop((site, frame.feed))
        elif isinstance(frame, Pace):
            feed.is_gentle = frame.is_gentle
        else:
            feed.serving.grant(frame.total, frame.acknowledged)

    def _drop(self, key: tuple[str, int]) -> None:
        """Forget a feed, if it is there, and what was matched for it alone."""
        feed = self.feeds.pop(key, None)
        if feed is not None and feed.matched is not None:
            self._rematching.unwant(feed.cut[1])

    def at_level(self, level: int) -> list[tuple[str, FromSender]]:
        """Tell those who are fed that the level has changed, if it has."""
        if level == self.level:
            return []
        self.level = level
        return [(feed.site, Level(feed.serving.feed, level)) for feed in self.feeds.values()]

    def site_lost(self, site: str) -> None:
        """Forget the feeds to a machine."""
        for key in [key for key in self.feeds if key[0] == site]:
            self._drop(key)

    def end(self, why: str) -> list[tuple[str, FromSender]]:
        """End all feeds."""
        told: list[tuple[str, FromSender]] = [
            (feed.site, Ended(feed.serving.feed, why, "")) for feed in self.feeds.values()
        ]
        for key in list(self.feeds):
            self._drop(key)
        return told

    @property
    def is_gentle(self) -> bool:
        """Whether what all feeds to other machines get may be held for a moment."""
        return all(feed.is_gentle for feed in self.feeds.values() if feed.site != self.site)

    def pump(self, *, is_holding: bool = False) -> list[tuple[str, FromSender]]:
        """Send what every feed may get now, but nothing to gentle ones while holding; ``is_behind`` says if more
        is left for another round."""
        out: list[tuple[str, FromSender]] = []
        done = _Cuts()
        many = asked_by_many(sum(f.serving.cursor < self.history.frontier for f in self.feeds.values()))
        for key, feed in list(self.feeds.items()):
            serving = feed.serving
            if serving.cursor >= self.history.frontier or not serving.may_send:
                continue
            if is_holding and feed.is_gentle:
                continue
            # Reading finds out, at the latest, what the store has dropped.
            items, upto = self.history.read(serving.cursor, _AT_ONCE)
            if serving.cursor < self.history.lowest and not self.is_last_resort:
                # Somebody else may still have it: the receiver looks there, and comes back later.
                out.append((feed.site, Ended(serving.feed, "lost", "that is not stored here any more")))
                self._drop(key)
                continue
            try:
                items = [self.resolve(item) for item in items]
                if feed.matched is not None:
                    cut = [self._rematching.of(item, feed.matched, many=many) for item in items]
                elif feed.link is None:
                    cut = list(items)
                else:
                    cut = [done.of(feed.link, feed.cut, item) for item in items]
            except RewritingError as exc:
                out.append((feed.site, Ended(serving.feed, "lost", str(exc)[:500])))
                self._drop(key)
                continue
            wanted = [item for item in cut if item is not None]
            out += [(feed.site, frame) for frame in serving.serve(wanted, upto)]
        self._rematching.rest()
        return out

    def relayed_at(self, number: int) -> list[tuple[str, Serving]]:
        """List the feeds of this machine that want documents matched and have had all up to one; each with the
        pattern that it wants."""
        return [
            (feed.cut[1], feed.serving)
            for feed in self.feeds.values()
            if feed.serving.cursor == number and feed.matched is not None and feed.site == self.site
        ]

    @property
    def feeds_own(self) -> bool:
        """Whether anything on this machine is fed from here, one by one."""
        return any(site == self.site for site, _ in self.feeds)

    def marked(self, item: Item, relay: str) -> dict[str, Item] | None:
        """Return which patterns that are wanted of a relay match a document, by its marks; None if it has to be
        matched here."""
        return self._rematching.marked(item, relay)

    def references(self, items: Sequence[Item], relay: str) -> list[dict[str, Item]]:
        """Return which patterns that are wanted of a relay match which of its documents, as references to them."""
        return [self._rematching.references(item, relay) for item in items]

    @property
    def numbers(self) -> Numbers:
        """Of a relay: the numbers of the patterns that are wanted of it, by which marks are read."""
        return self._rematching.numbers

    @property
    def matched_bytes(self) -> int:
        """About how much the results of all patterns that were wanted of a relay take, each pattern once."""
        return self._rematching.matched_bytes

    @property
    def is_behind(self) -> bool:
        """Whether some feed could be sent more at once."""
        return self.has_work(is_holding=False)

    def has_work(self, *, is_holding: bool) -> bool:
        """Say whether some feed could be sent more at once; while holding, whether some other than gentle ones."""
        frontier = self.history.frontier
        for feed in self.feeds.values():
            if feed.serving.cursor < frontier and feed.serving.may_send and not (is_holding and feed.is_gentle):
                return True
        return False


@dataclass(slots=True)
class _Cuts:
    """What was cut in one round: each cut is made once, whoever asks for it. Of what had to be read for that, only
    the last is kept: feeds that are up to date all want that."""

    _read: dict[int, Columns] = field(default_factory=dict)
    _made: dict[tuple[bytes, str, int], bytes] = field(default_factory=dict)

    def of(self, link: Link, cut: tuple[bytes, str], item: Item) -> Item | None:
        """Return what a link carries of an item; None for nothing."""
        if item.kind is not Kind.RESULTS:
            return item
        key = (*cut, item.number)
        if key not in self._made:
            try:
                self._made[key] = self._cut(link, item)
            except ColumnsTooLargeError as exc:
                return trouble(item.number, item.name, exc)
        return Item(item.number, Kind.RESULTS, self._made[key], name=item.name) if self._made[key] else None

    def _cut(self, link: Link, item: Item) -> bytes:
        quickly = cut_at_once(link, item.data)
        if quickly is not None:
            return quickly
        if item.number not in self._read:
            self._read = {item.number: read_whole(link.view, item.data)}
        return cut_columns(link, self._read[item.number])

"""The sender's end of a feed: how far it has come, and how much it may still send.

Theory of operation. The sender keeps no queue: the results are in its store, and a feed is a place in them (the
*cursor*) and a credit in bytes. When there is something beyond the cursor and credit is left, the owner reads from
the store, or from what it has just made, and gives it to ``serve``. The last batch may exceed the credit: so one
that is larger than the whole window gets through too. Every frame names the interval it covers, and they follow on
each other without a hole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from overlay.feeds.items import Item, Kind
from overlay.wire.frames import Batch, Failed, Frontier, Gap, Marked

if TYPE_CHECKING:
    from collections.abc import Iterable

    from overlay.wire.frames import FromSender


@dataclass(slots=True)
class Serving:
    """One feed, at its sender. ``granted`` and ``sent`` count bytes since it was opened.

    >>> feed = Serving(feed=7, cursor=4, granted=10)
    >>> feed.serve([Item(6, Kind.RESULTS, b"abc", name="d")], upto=8)
    [Batch(feed=7, after=4, number=6, name='d', data=b'abc', more=False), Frontier(feed=7, after=6, upto=8)]
    >>> feed.cursor
    8
    """

    feed: int
    cursor: int
    granted: int
    sent: int = 0
    acknowledged: int = 0

    @property
    def may_send(self) -> bool:
        """Whether credit is left."""
        return self.sent < self.granted

    def grant(self, total: int, acknowledged: int) -> None:
        """Take a grant; totals never go back."""
        self.granted = max(self.granted, total)
        self.acknowledged = max(self.acknowledged, acknowledged)

    def serve(self, items: Iterable[Item], upto: int) -> list[FromSender]:
        """Send what there is in (cursor, upto], in order, as far as credit goes."""
        frames: list[FromSender] = []
        for item in items:
            if item.number <= self.cursor:
                continue
            if not self.may_send:
                return frames
            if item.begin > self.cursor and item.kind is Kind.GAP:
                frames.append(Frontier(self.feed, self.cursor, item.begin))
                self.cursor = item.begin
            frames.append(self._frame(item))
            self.sent += len(item.data)
            self.cursor = item.number
        if upto > self.cursor:
            frames.append(Frontier(self.feed, self.cursor, upto))
            self.cursor = upto
        return frames

    def _frame(self, item: Item) -> FromSender:
        match item.kind:
            case Kind.RESULTS if item.marks:
                return Marked(
                    self.feed, self.cursor, item.number, item.name, item.data, more=False, marks=item.marks
                )
            case Kind.RESULTS:
                return Batch(self.feed, self.cursor, item.number, item.name, item.data, more=False)
            case Kind.ERROR:
                return Failed(self.feed, self.cursor, item.number, item.name, item.data.decode())
            case Kind.GAP:
                return Gap(self.feed, self.cursor, item.number)
            case Kind.REFERENCE:
                raise ValueError(f"document {item.number}: a reference cannot be sent")
            case _:
                assert_never(item.kind)

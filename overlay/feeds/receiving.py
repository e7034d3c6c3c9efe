"""The receiver's end of a feed: what it covers so far, and the credit it grants.

    OPENING --Opened--> LIVE --Batch, Frontier, Failed, Gap, Level--> LIVE
    OPENING, LIVE --Ended, a frame that does not follow--> ENDED          (ENDED takes everything and does nothing)

Every frame must begin where the last one ended: a jump is refused, and the feed is opened again from what is
covered. Credit is counted in bytes since the feed was opened: at most a window is under way or waits to be used,
and more is granted when half of it has been used. Fragments of a batch are put together here, within a limit.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, assert_never

from overlay.feeds.items import Item, Kind
from overlay.wire.errors import MalformedFrame
from overlay.wire.frames import Batch, Cancel, Credit, Ended, Failed, Frontier, Gap, Level, Marked, Opened, Pace

if TYPE_CHECKING:
    from overlay.wire.frames import FromSender

WINDOW: Final = 1 << 20
"""How many bytes may be under way on a feed; more keeps long links busy, and costs memory at the receiver."""
MOST_BATCH: Final = 64 << 20
"""The largest batch that is put together."""
MOST_LEVEL: Final = 100
"""Nobody is fed over more links than this. Plans stay far below it: who is beyond it feeds itself in a circle."""


class Stage(enum.Enum):
    """Where a feed stands."""

    OPENING = enum.auto()
    LIVE = enum.auto()
    ENDED = enum.auto()


@dataclass(slots=True)
class Receiving:
    """One feed, at its receiver. ``covered``: everything up to there is known. ``missing``: the sender has nothing
    up to there, so (covered, missing] must come from elsewhere. ``why``: how it ended."""

    feed: int
    covered: int
    window: int = WINDOW
    stage: Stage = Stage.OPENING
    missing: int = 0
    level: int = 0
    why: str = ""
    is_gentle: bool = False
    _arrived: int = 0
    _used: int = 0
    _granted: int = 0
    _parts: list[bytes] = field(default_factory=list)
    _size: int = 0

    def __post_init__(self) -> None:
        self._granted = self.window

    def handle(self, frame: FromSender) -> list[Item]:
        """Take a frame in and return the items it completes; ``MalformedFrame`` ends the feed."""
        if self.stage is Stage.ENDED:
            return []
        if isinstance(frame, Ended):
            self.stage, self.why = Stage.ENDED, frame.why
            return []
        if isinstance(frame, Opened) is (self.stage is Stage.LIVE):
            raise self._refuse(f"{type(frame).__name__} while {self.stage.name.lower()}")
        match frame:
            case Opened():
                self.stage, self.level = Stage.LIVE, frame.level
                if frame.after > self.covered:
                    self.missing = frame.after
                return []
            case Level():
                self.level = frame.level
                return []
            case Batch():
                return self._batch(frame)
            case Frontier():
                self._follow(frame.after, frame.upto)
                return []
            case Failed():
                self._follow(frame.after, frame.number)
                return [Item(frame.number, Kind.ERROR, frame.reason.encode(), name=frame.name)]
            case Gap():
                self._follow(frame.after, frame.upto)
                return [Item(frame.upto, Kind.GAP, after=frame.after)]
            case _:
                assert_never(frame)

    @property
    def is_too_deep(self) -> bool:
        """Whether the sender is too many links away from the source for anybody to be fed by it."""
        return self.level >= MOST_LEVEL

    def skip_missing(self) -> None:
        """Go on after what the sender does not have."""
        self.covered, self.missing = max(self.covered, self.missing), 0

    def would_take(self, frame: Batch) -> bool:
        """Say whether a batch is whole, and follows on what is covered, within the credit."""
        is_whole = not (frame.more or self._parts) and len(frame.data) <= MOST_BATCH
        follows = self.stage is Stage.LIVE and frame.after == self.covered
        return is_whole and follows and not self.missing and self._arrived < self._granted

    def take(self, frame: Batch) -> None:
        """Take a batch in that ``would_take`` is true of, whatever becomes of it."""
        self._arrived += len(frame.data)
        self.covered = frame.number

    def _batch(self, frame: Batch) -> list[Item]:
        if frame.after != self.covered:
            raise self._refuse(f"it jumps from {self.covered} to {frame.after}")
        self._arrived += len(frame.data)
        self._size += len(frame.data)
        if self._size > MOST_BATCH:
            raise self._refuse(f"a batch of over {MOST_BATCH:,} bytes")
        if self._arrived - self._size >= self._granted:
            raise self._refuse("it sends more than it was granted")
        self._parts.append(frame.data)
        if frame.more:
            return []
        marks = frame.marks if isinstance(frame, Marked) else b""
        item = Item(frame.number, Kind.RESULTS, b"".join(self._parts), name=frame.name, marks=marks)
        self._parts, self._size = [], 0
        self._follow(frame.after, frame.number)
        return [item]

    def _follow(self, after: int, upto: int) -> None:
        if after != self.covered or self._parts:
            raise self._refuse(f"it jumps from {self.covered} to {after}")
        self.covered = upto

    def _refuse(self, reason: str) -> MalformedFrame:
        self.stage, self.why = Stage.ENDED, "lost"
        return MalformedFrame(f"feed {self.feed}: {reason}")

    def use(self, size: int, acknowledged: int) -> list[Credit]:
        """Say that bytes have been used, and up to where all is committed; grant more when it is time."""
        self._used += size
        if self.stage is Stage.ENDED or self._used + self.window - self._granted < self.window // 2:
            return []
        self._granted = self._used + self.window
        return [Credit(self.feed, self._granted, acknowledged)]

    def acknowledge(self, upto: int) -> list[Credit]:
        """Say up to where all is committed."""
        return [] if self.stage is Stage.ENDED else [Credit(self.feed, self._granted, upto)]

    def keep_pace(self, *, is_gentle: bool) -> list[Pace]:
        """Say whether what comes may be held for a moment, if that is news."""
        if self.stage is not Stage.LIVE or is_gentle is self.is_gentle:
            return []
        self.is_gentle = is_gentle
        return [Pace(self.feed, is_gentle)]

    def end(self) -> list[Cancel]:
        """End the feed from this side."""
        if self.stage is Stage.ENDED:
            return []
        self.stage, self.why = Stage.ENDED, "cancelled"
        return [Cancel(self.feed)]

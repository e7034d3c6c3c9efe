"""One connection between two hosts: bytes and a clock in, frames out.

Theory of operation. Both sides say ``Hello`` first; the version spoken is the highest that both know. Every
frame carries its number: over TCP they always follow on each other, and anything that loses, repeats or reorders
frames is noticed at the next one, at the latest at a keep-alive. A repeated frame is dropped; a missing one ends
the connection, and the feeds on it begin again where their receivers stand. Who is silent for ``dead_s`` is
taken for dead; so each side says ``Alive`` when it has said nothing for ``alive_s``.

Signs of life are most of what an idle network costs. A side that feeds nobody over the connection says ``Calm``
instead, which announces the next sign for later: its silence is excused for as long. Whoever hears anything but a
sign of life gives one within ``alive_s``, and that is no ``Calm``, which may have been under way before. So who
says something knows within ``dead_s`` whether it was heard, as ever, and who is fed knows of a death as soon; any
other death is noticed later by what was announced.

    GREETING --Hello--> READY --Bye, silence, a missing frame, a malformed one--> CLOSED

Data of batches that crossed the connection before is not sent again but named (``overlay.payloads.crossing``);
whoever uses a connection sees batches only.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from overlay.payloads.crossing import Crossing, HashedCrossing
from overlay.wire.errors import BrokenConnection, MalformedFrame
from overlay.wire.frames import (
    HEAD,
    LONGEST_CALM_S,
    MAX_FRAME,
    Again,
    Alive,
    Batch,
    Bye,
    Calm,
    Hello,
    SignOfLife,
    decode_untrusted,
)
from overlay.wire.outbox import Outbox

if TYPE_CHECKING:
    from collections.abc import Callable

    from overlay.payloads.crossing import OneDirection
    from overlay.wire.frames import Frame, OnTheWire

VERSIONS: Final = (1, 6)
"""The lowest and the highest version of the protocol spoken here; version 2 has ``Level``, version 3 ``Content``,
version 4 ``Again``, version 5 ``Calm``, version 6 ``Marked`` and ``Pace``,
and counts for names in ``Again``."""
_AGAIN: Final = 4
_CALM: Final = 5
_COUNTS: Final = 6


class Stage(enum.Enum):
    """Where a connection stands."""

    GREETING = enum.auto()
    READY = enum.auto()
    CLOSED = enum.auto()


@dataclass(frozen=True, slots=True)
class Patience:
    """``alive_s``: say something at least this often; less notices deaths sooner and costs more idle traffic.
    ``dead_s``: who is silent for longer is dead; too little takes slow machines for dead ones. ``calm_times``: how
    many times rarer signs of life are where nothing hangs on a connection; more costs less, and a machine that
    died unused is listed as connected for longer."""

    alive_s: float = 1.0
    dead_s: float = 3.0
    calm_times: float = 5.0

    def __post_init__(self) -> None:
        if not 0 < self.alive_s < self.dead_s:
            raise ValueError(f"alive_s {self.alive_s} must be above 0 and below dead_s {self.dead_s}")
        if self.calm_times < 1:
            raise ValueError(f"calm_times is {self.calm_times}; it is at least 1")

    @property
    def calm_s(self) -> float:
        """How rare signs of life may be where nothing hangs on them."""
        return min(self.calm_times * self.alive_s, LONGEST_CALM_S)


@dataclass(slots=True)
class Connection:
    """This side's view of a connection. ``incarnation`` is drawn anew by every process."""

    incarnation: int
    now: float
    revocation: int = 0
    patience: Patience = field(default_factory=Patience)
    outbox: Outbox = field(default_factory=Outbox)
    stage: Stage = Stage.GREETING
    version: int = 0
    theirs: Hello | None = None
    make_crossing: Callable[[], OneDirection] = Crossing
    make_hashed: Callable[[], OneDirection] = HashedCrossing
    _crossed: OneDirection | None = None
    _buffer: bytearray = field(default_factory=bytearray)
    _expected: int = 0
    _heard: float = 0.0
    _said: float = 0.0
    _excused_s: float = 0.0
    """How much longer than ``dead_s`` the other side may be silent, by its last sign."""
    _pace_s: float = 0.0
    """Within what time this side has to say something again."""
    _asked: float | None = None
    """When the first thing was said that has to be answered, since anything but ``Calm`` was heard."""
    _owes: bool = False
    """Whether something was heard that has to be answered."""
    _sign_bytes: int = 0

    def __post_init__(self) -> None:
        self._heard = self._said = self.now
        self._pace_s = self.patience.alive_s
        self.outbox.put(Hello(*VERSIONS, self.incarnation, self.revocation))

    def receive(self, data: bytes, now: float) -> list[Frame]:
        """Take bytes in and return the frames that are whole; raise if the connection cannot go on."""
        if self.stage is Stage.CLOSED:
            return []
        self._heard = now
        there: bytes | bytearray = data
        view = memoryview(data)
        if self._buffer:
            self._buffer += data
            there = self._buffer
        frames: list[Frame] = []
        at = 0
        try:
            while len(there) - at >= HEAD:
                size = int.from_bytes(there[at : at + 4])
                if not 4 < size <= MAX_FRAME:
                    raise MalformedFrame(f"{size:,} bytes long; the most is {MAX_FRAME:,}")
                if len(there) - at < 4 + size:
                    break
                body = there[at + 4 : at + 4 + size] if there is self._buffer else view[at + 4 : at + 4 + size]
                at += 4 + size
                frame = self._numbered(body)
                if frame is not None:
                    frames.append(self._greeted(frame))
        except (BrokenConnection, MalformedFrame):
            self.stage = Stage.CLOSED
            raise
        if there is self._buffer:
            del self._buffer[:at]
        elif at < len(data):
            self._buffer += data[at:]  # copied only if a frame came in pieces
        self._note(frames)
        return frames

    def _note(self, frames: list[Frame]) -> None:
        """Note what follows from what was heard: what this side owes, and how long the other may be silent now. A
        side says ``Calm`` only when it has nothing else to say, so one that comes last stands."""
        if self._buffer or not all(isinstance(frame, SignOfLife) for frame in frames):
            self._pace_s, self._owes = self.patience.alive_s, True
        if self._buffer or not all(isinstance(frame, Calm) for frame in frames):
            self._asked = None
        if self._buffer:
            self._excused_s = 0.0
        elif frames:  # one that is repeated says nothing new
            last = frames[-1]
            self._excused_s = max(last.seconds - self.patience.alive_s, 0.0) if isinstance(last, Calm) else 0.0

    def _numbered(self, body: memoryview | bytearray | bytes) -> Frame | None:
        number = int.from_bytes(body[:4])
        ahead = (number - self._expected) & 0xFFFFFFFF
        if ahead >= 1 << 31:
            return None  # it came before
        if ahead:
            raise BrokenConnection(f"{ahead} frames are missing")
        self._expected = (self._expected + 1) & 0xFFFFFFFF
        return self._unfolded(decode_untrusted(body[4:]))

    def _unfolded(self, frame: OnTheWire) -> Frame:
        """Give a batch its data back if that crossed before, and remember it if it did not."""
        if isinstance(frame, Again):
            data = None if self._crossed is None else self._crossed.named(frame.name_of_data)
            if data is None:
                raise MalformedFrame(f"feed {frame.feed}: data is named that did not cross")
            return Batch(frame.feed, frame.after, frame.number, frame.name, data, frame.more)
        if isinstance(frame, Batch) and self._crossed is not None:
            self._crossed.heard(frame.data)
        return frame

    def _greeted(self, frame: Frame) -> Frame:
        if self.stage is Stage.GREETING:
            if not isinstance(frame, Hello):
                raise MalformedFrame(f"{type(frame).__name__} before the greeting")
            low, high = max(VERSIONS[0], frame.lowest), min(VERSIONS[1], frame.highest)
            if low > high:
                raise BrokenConnection(
                    f"it speaks versions {frame.lowest} to {frame.highest}, we {VERSIONS[0]} to {VERSIONS[1]}"
                )
            self.stage, self.version, self.theirs = Stage.READY, high, frame
            if high >= _AGAIN:
                make = self.make_crossing if high >= _COUNTS else self.make_hashed
                self._crossed, self.outbox.crossed = make(), make()
        elif isinstance(frame, Hello):
            raise MalformedFrame("a second greeting")
        if isinstance(frame, Bye):
            self.stage = Stage.CLOSED
        return frame

    def send(self, most: int, now: float) -> bytes:
        """Take bytes to send."""
        data = self.outbox.take(most)
        if data:
            self._said = now
            if len(data) != self._sign_bytes:
                self._pace_s, self._owes = self.patience.alive_s, False
                self._asked = now if self._asked is None else self._asked
            self._sign_bytes = 0
        return data

    def tick(self, now: float, is_calm: Callable[[], bool] = lambda: False, *, early_s: float = 0.0) -> None:
        """Keep the connection alive; raise ``BrokenConnection`` if the other side is dead. ``is_calm``: whether
        nothing hangs on this side's being there; asked when there is a sign of life to give. One that is due
        within ``early_s`` is given now."""
        if self.stage is Stage.CLOSED:
            return
        if now >= self.dead_at:
            self.stage = Stage.CLOSED
            raise BrokenConnection(f"nothing was heard for {now - self._heard:.1f} s")
        if self.outbox.is_too_full:
            self.stage = Stage.CLOSED
            raise BrokenConnection("it does not read what it is told")
        if now - self._said >= self._pace_s - early_s and not self.outbox:
            self._give_sign(is_calm=self.version >= _CALM and not self._owes and is_calm())

    @property
    def dead_at(self) -> float:
        """When the other side is taken for dead, if nothing is heard of it."""
        dead_s = self.patience.dead_s
        of_itself = self._heard + dead_s + self._excused_s
        return of_itself if self._asked is None else min(of_itself, self._asked + dead_s)

    def _give_sign(self, *, is_calm: bool) -> None:
        self._pace_s, self._owes = self.patience.calm_s if is_calm else self.patience.alive_s, False
        sign = Calm(self.revocation, self._pace_s) if is_calm else Alive(self.revocation)
        self._sign_bytes = HEAD + self.outbox.put(sign)

    def excuse(self, seconds: float) -> None:
        """Leave time out of account in which this side itself did not run: it cannot have heard anything then."""
        self._heard += seconds
        if self._asked is not None:
            self._asked += seconds

"""What waits to be sent on one connection, and in which order it leaves.

Control frames go first, in order. Then feeds take turns, one frame each, so that a large batch of one does not
hold up the others. Frames of one feed never overtake each other. What waits of feeds is bounded by the credits
that the receivers granted; frames that cost no credit, because they say that there is nothing, are made one.
Whoever does not read what it is told (``is_too_full``) is to be cut off.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from overlay.wire.frames import FRAGMENT, MAX_FRAME, Again, Batch, Frontier, Marked, encode_body, with_head

if TYPE_CHECKING:
    from overlay.payloads.crossing import OneDirection
    from overlay.wire.frames import Frame, FromSender

MOST_CONTROL: Final = 4 * MAX_FRAME
"""How many bytes of control frames may wait on a connection."""


@dataclass(slots=True)
class Outbox:
    """Frames that wait; ``take`` numbers and encodes them.

    >>> from overlay.wire.frames import Alive, Frontier
    >>> box = Outbox()
    >>> box.put_feed(Frontier(1, 0, 5))
    >>> _ = box.put(Alive(0))
    >>> len(box.take(1000)), bool(box)
    (24, False)
    """

    _control: deque[bytes] = field(default_factory=deque)
    _control_bytes: int = 0
    _feeds: dict[int, deque[FromSender]] = field(default_factory=dict)
    _next: int = 0
    crossed: OneDirection | None = None
    """What the other end has of earlier batches, if it understands that they are named."""
    saved_bytes: int = 0

    def __bool__(self) -> bool:
        return bool(self._control or self._feeds)

    @property
    def waiting(self) -> int:
        """How many frames wait."""
        return len(self._control) + sum(map(len, self._feeds.values()))

    def put(self, frame: Frame) -> int:
        """Let a control frame wait; it goes before all that feeds send. ``FrameTooLarge`` if it cannot be sent.
        Return how long it is, without its head."""
        body = encode_body(frame)
        self._control_bytes += len(body)
        self._control.append(body)
        return len(body)

    @property
    def is_too_full(self) -> bool:
        """Whether more control frames wait than anybody who reads would leave waiting."""
        return self._control_bytes > MOST_CONTROL

    def put_feed(self, frame: FromSender) -> None:
        """Let a frame of a feed wait; a large batch is cut into fragments."""
        waiting = self._feeds.setdefault(frame.feed, deque())
        if isinstance(frame, Batch) and len(frame.data) > FRAGMENT:
            data = memoryview(frame.data)
            for at in range(0, len(data), FRAGMENT):
                part = bytes(data[at : at + FRAGMENT])
                more = at + FRAGMENT < len(data)
                if isinstance(frame, Marked) and not more:
                    waiting.append(replace(frame, data=part))
                else:
                    waiting.append(Batch(frame.feed, frame.after, frame.number, frame.name, part, more))
        elif isinstance(frame, Frontier) and waiting and _goes_on(waiting[-1], frame):
            waiting[-1] = Frontier(frame.feed, waiting[-1].after, frame.upto)  # type: ignore[union-attr]  # one too
        else:
            waiting.append(frame)

    def take(self, most: int) -> bytes:
        """Take frames out, about as many bytes as asked for, at least one frame if any waits."""
        out, size = [], 0
        while size < most and self:
            data = with_head(self._pop(), self._next)
            self._next += 1
            out.append(data)
            size += len(data)
        return b"".join(out)

    def _pop(self) -> bytes:
        if self._control:
            body = self._control.popleft()
            self._control_bytes -= len(body)
            return body
        feed, waiting = next(iter(self._feeds.items()))
        del self._feeds[feed]
        frame = waiting.popleft()
        if waiting:
            self._feeds[feed] = waiting  # to the end of the queue
        return encode_body(self._named(frame) if isinstance(frame, Batch) else frame)

    def _named(self, frame: Batch) -> Batch | Again:
        """Name the data of a batch if it has crossed before."""
        name = None if self.crossed is None else self.crossed.sending(frame.data)
        if name is None:
            return frame
        self.saved_bytes += len(frame.data) - len(name)
        return Again(frame.feed, frame.after, frame.number, frame.name, name, frame.more)


def _goes_on(last: FromSender, frame: Frontier) -> bool:
    """Say whether a frontier only takes the last one further."""
    return isinstance(last, Frontier) and last.upto == frame.after

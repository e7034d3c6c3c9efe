"""The subscriber's part: each message once per subscription, and up to where all are here.

A zone's owner may hand a message twice, and so may two owners of the same zone, one after the other; the number
tells. Numbers up to the frontier have all come, so what arrives for them late is dropped unseen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from overlay.content.frames import Deliver, Delivered, Seen

if TYPE_CHECKING:
    from overlay.content.frames import Frame


@dataclass(slots=True)
class Inbox:
    """What a machine's subscriptions have received: by subscription, number and message. It is to be kept durably
    before ``Delivered`` is sent. ``complete``: everything up to this number is here, but for gaps up to ``gap``.

    >>> inbox = Inbox()
    >>> inbox.take("n", Deliver(5, "01", ("s",), {"a": "1"}))
    [('n', Delivered(number=5, prefix='01'))]
    >>> inbox.take("n", Deliver(5, "0", ("s",), {"a": "1"})); inbox.received
    [('n', Delivered(number=5, prefix='0'))]
    {'s': {5: {'a': '1'}}}
    """

    received: dict[str, dict[int, dict[str, str]]] = field(default_factory=dict)
    complete: int = 0
    gap: int = 0
    doubles: int = 0

    def take(self, sender: str, frame: Deliver | Seen) -> list[tuple[str, Frame]]:
        """Take a message in, and say so."""
        if isinstance(frame, Seen):
            self.complete, self.gap = max(self.complete, frame.frontier), max(self.gap, frame.gap)
            return []
        for name in frame.subscriptions:
            here = self.received.setdefault(name, {})
            if frame.number in here or frame.number <= self.complete:
                self.doubles += 1
            else:
                here[frame.number] = frame.attributes
        return [(sender, Delivered(frame.number, frame.prefix))]

    def upto_complete(self, name: str) -> list[tuple[int, dict[str, str]]]:
        """List what a subscription has received, in order, as far as nothing can be missing in between."""
        return [(n, item) for n, item in sorted(self.received.get(name, {}).items()) if n <= self.complete]

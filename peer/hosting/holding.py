"""What comes often, and nobody is waiting for, is held for a moment, and goes on together.

Passing one thing on costs nearly as much as passing on ten. So something that comes less than ``hold_s`` after the
one before is held: until another comes when the first is no longer young, until there are ``most_bytes``, and for
``hold_s`` at most. What comes now and then is not held at all.

>>> holding = Holding(hold_s=0.25)
>>> holding.came(5.0, 10), holding.is_held(5.0)  # after a while
(None, False)
>>> holding.gone(), holding.came(5.2, 10), holding.is_held(5.2)  # soon after another
(None, None, True)
>>> holding.came(5.4, 10), holding.is_held(5.4)  # when one is there already
(None, False)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

HOLD_S: Final = 0.25
"""How long anything is held; more spares processors, and what nobody is waiting for is on disk later."""
_MOST_BYTES: Final = 256 << 10
_YOUNG: Final = 0.4
"""Something is young for so much of ``hold_s``."""


@dataclass(slots=True)
class Holding:
    """See the module's text. ``since``: when the first came that is here, never if nothing is; long ago if that is
    not to be held."""

    hold_s: float = HOLD_S
    most_bytes: int = _MOST_BYTES
    since: float = math.inf
    _came: float = -math.inf
    _size: int = 0

    def came(self, now: float, size: int) -> None:
        """Something has come."""
        is_often = now - self._came < self.hold_s
        is_young = self.since == math.inf or now - self.since < _YOUNG * self.hold_s
        self.since = min(self.since, now) if is_often and is_young else -math.inf
        self._came = now
        self._size += size

    def is_held(self, now: float) -> bool:
        """Say whether what is here is to be held for now."""
        return self.since <= now < self.until and self._size < self.most_bytes

    @property
    def until(self) -> float:
        """How long what is here may be held at most."""
        return self.since + self.hold_s

    def gone(self) -> None:
        """Everything has gone on."""
        self.since, self._size = math.inf, 0

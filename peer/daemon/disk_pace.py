"""Whether the disk is so quick that going to a thread for a commit takes longer than the commit.

A thread costs two wake-ups, and the event loop goes on meanwhile; that is worth it where a commit takes more than
a few milliseconds. So the last ones are looked at; after a slow one the disk has to be quick for a while again.
"""

from __future__ import annotations

import math
from typing import Final

QUICK_S: Final = 0.003
"""The event loop may be held up for this long."""
_SLOW_S: Final = 0.05
_WEIGHT: Final = 0.2


class DiskPace:
    """How long commits take, the last ones most.

    >>> pace = DiskPace()
    >>> pace.is_quick, pace.took(0.001), pace.is_quick
    (False, None, True)
    >>> pace.took(0.2), pace.took(0.001), pace.is_quick
    (None, None, False)
    """

    def __init__(self) -> None:
        self._average_s = math.inf

    @property
    def is_quick(self) -> bool:
        """Whether the next commit need not go to a thread."""
        return self._average_s <= QUICK_S

    def took(self, seconds: float) -> None:
        """A commit took so long."""
        if self._average_s == math.inf or seconds > _SLOW_S:
            self._average_s = seconds
        else:
            self._average_s += _WEIGHT * (seconds - self._average_s)

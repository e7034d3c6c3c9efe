"""Whether the disk is so quick that going to a thread for a commit takes longer than the commit.

A thread costs two wake-ups, and the event loop goes on meanwhile; that is worth it where a commit takes more than
a few milliseconds. How long commits take is known only of those that did not go to a thread, and without the time
in which others had the cores: on a busy machine all wait for their turn, not for the disk. So now and then one is
tried without; while these are quick it stays that way, and after a slow one it is threads again for a while.
"""

from __future__ import annotations

from typing import Final

QUICK_S: Final = 0.005
"""The event loop may be held up for this long, on average."""
_SLOW_S: Final = 0.1
_WEIGHT: Final = 0.2
_EVERY: Final = 16
"""Of so many commits in threads one is tried without."""


class DiskPace:
    """Decides where the next commit is written.

    >>> pace = DiskPace()
    >>> [pace.next_is_direct() for _ in range(16)].index(True)
    15
    >>> pace.took(0.001), pace.next_is_direct()
    (None, True)
    >>> pace.took(0.2), pace.next_is_direct()
    (None, False)
    """

    def __init__(self) -> None:
        self._average_s = QUICK_S
        self._is_direct = False
        self._in_threads = 0

    @property
    def is_direct(self) -> bool:
        """Whether commits are written within the event loop now."""
        return self._is_direct

    def next_is_direct(self) -> bool:
        """Say whether the next commit is written within the event loop; then ``took`` is to be told of it."""
        self._in_threads = 0 if self._is_direct else self._in_threads + 1
        if self._in_threads == _EVERY:
            self._in_threads = 0
            return True
        return self._is_direct

    def took(self, seconds: float) -> None:
        """A commit within the event loop took so long."""
        before = self._average_s if self._is_direct else seconds
        self._average_s = before + _WEIGHT * (seconds - before)
        self._is_direct = self._average_s <= QUICK_S and seconds <= _SLOW_S

"""How much of a long reading is handed out at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

ROW_BYTES: Final = 64
"""What a row is charged beyond its texts and bytes, so that empty ones too are bounded."""


def last_that_fits(sizes: Iterable[tuple[int, int]], max_bytes: int) -> int | None:
    """Return the last number of (number, size) pairs that fits: the first always does. None if there are none.

    >>> last_that_fits([(3, 40), (5, 40), (6, 40)], 100)
    5
    >>> last_that_fits([(3, 400), (5, 1)], 100)
    3
    """
    last = None
    left = max_bytes
    for number, size in sizes:
        if last is not None and size > left:
            break
        last = number
        left -= size
    return last

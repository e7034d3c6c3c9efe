"""Lines of JSON, and bytes between them, from a file that may fall silent."""

from __future__ import annotations

import os
import select
import time
from typing import Final

MOST_BYTES: Final = 1 << 20
_READ_BYTES: Final = 1 << 18


class Silence(Exception):
    """Nothing came for as long as was waited; or the line is longer than any of ours."""


class Lines:
    """Reads from an open file."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._rest = b""

    def next(self, patience_s: float) -> bytes:
        """Return the next line, without its end; nothing when there is no more. ``Silence``."""
        end = time.monotonic() + patience_s
        while b"\n" not in self._rest:
            if len(self._rest) > MOST_BYTES:
                raise Silence(f"a line of more than {MOST_BYTES:,} bytes")
            data = self._some(end)
            if not data:
                return b""
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line or self.next(patience_s)

    def some(self, most: int, patience_s: float) -> bytes:
        """Return at least one byte and at most so many; nothing when there is no more. ``Silence``."""
        data = self._rest or self._some(time.monotonic() + patience_s)
        self._rest = data[most:]
        return data[:most]

    def _some(self, end: float) -> bytes:
        if not select.select([self._file], [], [], max(0.0, end - time.monotonic()))[0]:
            raise Silence("nothing was heard for too long")
        return os.read(self._file, _READ_BYTES)

"""Ctrl-C and SIGTERM, let in where they can be borne: everything that was made is unmade then, undisturbed."""

from __future__ import annotations

import signal
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_UNDISTURBED_S: Final = 30.0


class Gate:
    """Closed, it keeps a signal back until it is opened; open, it lets the first one in, as a
    ``KeyboardInterrupt``, and for long no other: what that one has begun to tear down is torn down to the end."""

    def __init__(self) -> None:
        self._is_open = self._has_come = False
        self._closed_until = 0.0

    @contextmanager
    def open(self) -> Iterator[None]:
        """Let signals in while the block runs."""
        self._is_open = True
        try:
            self.let_in()
            yield
        finally:
            self._is_open = False

    def knock(self, *_: object) -> None:
        """A signal has come."""
        self._has_come = time.monotonic() >= self._closed_until
        if self._is_open:
            self.let_in()

    def let_in(self) -> None:
        """Raise what has come."""
        if self._has_come:
            self._has_come = False
            self._closed_until = time.monotonic() + _UNDISTURBED_S
            raise KeyboardInterrupt


@contextmanager
def interrupts() -> Iterator[Gate]:
    """Keep signals back while the block runs, but where its gate is open; one that came late is raised at the
    end."""
    gate = Gate()
    before = {one: signal.signal(one, gate.knock) for one in _SIGNALS}
    try:
        yield gate
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
    gate.let_in()

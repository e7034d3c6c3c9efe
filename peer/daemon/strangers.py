"""Connections of which nobody knows yet who is behind them: few at once, and cheap.

Anybody can connect. What that costs is bounded: beyond a number of strangers the newest is turned away at once,
and key files are read once per certificate, not per stranger: without file descriptors left they cannot be read.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator

    from overlay.identity import Credential

_LOG: Final = logging.getLogger("distributary.links")


class TooManyStrangers(Exception):
    """There are as many as may be."""

    def __init__(self, most: int) -> None:
        super().__init__(f"{most} strangers at once are the most")
        self.most = most


class Strangers:
    """At most ``most`` at once. A flood is logged where it begins, not for each that is turned away.

    >>> few = Strangers(1, "here")
    >>> with few.one_more():
    ...     few.there
    1
    """

    def __init__(self, most: int, where: str) -> None:
        self.most, self._where = most, where
        self.there = self.turned_away = 0
        self._is_flood = False

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """Count one more while the block runs; ``TooManyStrangers`` if there are too many."""
        if self.there >= self.most:
            self._turn_away()
        self.there += 1
        try:
            yield
        finally:
            self.there -= 1
            self._is_flood = self._is_flood and self.there > self.most // 2

    def _turn_away(self) -> None:
        self.turned_away += 1
        if not self._is_flood:
            _LOG.warning("too many strangers", extra={"where": self._where, "most": self.most})
        self._is_flood = True
        raise TooManyStrangers(self.most)


class ContextOf:
    """A TLS context, made when the certificate is another one; ``make`` raises ``BadCredential`` if it cannot."""

    def __init__(self, make: Callable[[Credential], ssl.SSLContext]) -> None:
        self._make = make
        self._made: tuple[tuple[bytes, bytes], ssl.SSLContext] | None = None

    def __call__(self, credential: Credential) -> ssl.SSLContext:
        """Return the context of a credential."""
        if self._made is None or self._made[0] != credential.signer.chain:
            self._made = credential.signer.chain, self._make(credential)
        return self._made[1]

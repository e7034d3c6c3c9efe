"""Which machines are members no more, and whether by their own wish: kept for those who look at the network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peer.daemon.one_writer import OneWriter
    from peer.storage.source_log import SourceLog

_STATE: Final = "departed"
LEFT: Final = "left"
REVOKED: Final = "revoked"


class Departed:
    """How each machine went that is gone; who is let in again is struck out. What counts is the signed list."""

    def __init__(self, log: SourceLog, alone: OneWriter) -> None:
        self._log, self._alone = log, alone
        self._how: dict[str, str] = msgspec.json.decode(log.get_state(_STATE) or b"{}", type=dict[str, str])

    def how(self, site: str) -> str:
        """Say how a machine went; nothing if it is a member."""
        return self._how.get(site, "")

    def went(self, sites: Iterable[str], how: str) -> None:
        """Machines are members no more."""
        self._how |= dict.fromkeys(sites, how)
        self._keep()

    def returned(self, site: str) -> None:
        """A machine was let in, perhaps again."""
        if self._how.pop(site, None):
            self._keep()

    def _keep(self) -> None:
        self._alone(self._log.put_state, _STATE, msgspec.json.encode(self._how))

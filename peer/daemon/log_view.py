"""The source's log, as what it feeds reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peer.hosting.catch_up import Body, Lost
from peer.storage.log_values import Missing

if TYPE_CHECKING:
    from peer.storage.source_log import SourceLog


class LogView:
    """The log as the source's views read it; the ends are kept at hand."""

    def __init__(self, log: SourceLog) -> None:
        self._log = log
        extent = log.extent()
        self.generation, self.lowest, self.last = extent.generation, extent.lowest, extent.last

    def bodies(self, after: int, upto: int, most_bytes: int) -> list[Body | Lost]:
        """Read documents in order, and what is lost among them."""
        found = self._log.documents(after, upto, most_bytes)
        return [
            Lost(one.after, one.upto) if isinstance(one, Missing) else Body(one.number, one.name, one.body)
            for one in found
        ]

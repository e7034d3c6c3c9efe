"""What happens to the feeds of a machine, for its log: the hosting itself is silent, so it is looked at."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from peer.hosting.host import Host

_LOG: Final = logging.getLogger("distributary.feeds")
_EVERY_S: Final = 0.2


class FeedEvents:
    """Logs, at ``info``, by whom each subscription is fed when that has changed, and if it had to fail over."""

    def __init__(self, source: str) -> None:
        self._source, self._next = source, 0.0
        self._seen: dict[str, tuple[list[str], int]] = {}

    def look(self, host: Host, now: float) -> None:
        """Look, if it is time and anybody wants to know."""
        if now < self._next or not _LOG.isEnabledFor(logging.INFO):
            return
        self._next = now + _EVERY_S
        for name in self._seen.keys() - host.hosted.keys():
            _LOG.info("ended", extra={"subscription": name})
            del self._seen[name]
        for name, hosted in host.hosted.items():
            current, failovers = hosted.feeding.current, hosted.feeding.failovers
            if current is None or not current.is_live:
                continue
            inputs = [f"{one.subscription}@{one.site}" for one in current.inputs] or [self._source]
            before, counted = self._seen.get(name, ([], failovers))
            if (inputs, failovers) != (before, counted):
                fields = {"subscription": name, "by": inputs, "before": before, "feed_level": hosted.feeding.level}
                _LOG.info("failover" if failovers > counted else "fed", extra=fields)
                self._seen[name] = inputs, failovers

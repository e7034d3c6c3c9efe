"""Asking the source for the numbers of patterns, by which a relay reads ``peer.hosting.marks``."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from peer.daemon.beats import Beat
from peer.daemon.questions import NoAnswer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from peer.hosting.host import Host

_LOG: Final = logging.getLogger("distributary.relay")
_EVERY_S: Final = 5.0
_REST_S: Final = 300.0
"""When to ask again a source that has no numbers: it may be an older one, or have given all it has."""
MOST_AT_ONCE: Final = 100
"""How many patterns a question may name: reading so many takes the source a few milliseconds."""


async def ask_numbers(host: Host, ask: Callable[[str, Any], Awaitable[Any]]) -> bool:
    """Ask for the numbers of all patterns that have none; say whether all have one now."""
    wanted = host.unnumbered()
    for begin in range(0, len(wanted), MOST_AT_ONCE):
        told = await ask("numbers", {"patterns": wanted[begin : begin + MOST_AT_ONCE]})
        host.numbered(told["numbering"], told["numbers"])
    return not host.unnumbered()


async def keep_numbered(host: Host, ask: Callable[[str, Any], Awaitable[Any]]) -> None:
    """Look now and then whether numbers are needed, until cancelled."""
    beat, period = Beat(), _EVERY_S
    while True:
        await beat.rest(period)
        try:
            period = _EVERY_S if await ask_numbers(host, ask) else _REST_S
        except NoAnswer as exc:
            _LOG.info("no numbers", extra={"reason": str(exc)})
            period = _REST_S

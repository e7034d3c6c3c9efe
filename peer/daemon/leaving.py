"""Stopping in order: nothing new is taken in, what waits is committed, and neighbours hear that this machine goes.

They then fail over at once, not when they have heard nothing for a while. All of it is bounded: what is not done
in time is as after a crash, which loses nothing either.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import trio

if TYPE_CHECKING:
    from peer.daemon.committing import Committer
    from peer.daemon.links import Links

_LOG: Final = logging.getLogger("distributary.service")
_COMMIT_S: Final = 10.0


async def take_leave(links: Links, committer: Committer[Any, Any]) -> None:
    """Stop listening, commit, and say goodbye."""
    links.stop_listening()
    with trio.move_on_after(_COMMIT_S) as late:
        await committer.settled()
    if late.cancelled_caught:
        _LOG.warning("not committed in time", extra={"seconds": _COMMIT_S})
    await links.leave("it is being stopped")

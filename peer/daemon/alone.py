"""What a peer does while it cannot reach the source: it looks in the directory for what the source pushed there.

Configurations that it missed, and where the source is now. Whatever is found is signed by the source, and taken
only if it is newer than what is here.
"""

from __future__ import annotations

import logging
from random import SystemRandom
from typing import TYPE_CHECKING, Final

import trio

from overlay.identity import IdentityError
from peer.hosting.configuration import MalformedConfiguration

if TYPE_CHECKING:
    from collections.abc import Callable

    from peer.daemon.directory import Directory
    from peer.daemon.hosted import HostedHere
    from peer.daemon.whereabouts import Whereabouts

_LOG: Final = logging.getLogger("distributary.peer")
_FIRST_S: Final = 3.0
# Less finds news sooner; more spares the directory while a source is away for long.
_AGAIN_S: Final = 60.0
_AT_ONCE: Final = 4


async def look_while_alone(
    is_connected: Callable[[], bool], directory: Directory, hosted: HostedHere, whereabouts: Whereabouts
) -> None:
    """Look now and then while there is no connection to the source, until cancelled; also remember the way."""
    await trio.sleep(_FIRST_S)
    while True:
        whereabouts.remember()
        if is_connected():
            await trio.sleep(_AGAIN_S)
            continue
        await directory.joined.wait()
        await whereabouts.seek_source()
        await look_up_configurations(directory, hosted)
        await trio.sleep(_AGAIN_S * (0.5 + SystemRandom().random()))


async def look_up_configurations(directory: Directory, hosted: HostedHere) -> None:
    """Look for newer configurations of the subscriptions here; what is wrong with one is logged."""
    names = iter(hosted.live())

    async def work() -> None:
        for name in names:
            signed = await directory.find_configuration(name)
            try:
                if signed is not None:
                    hosted.configure(signed)
            except (IdentityError, MalformedConfiguration) as exc:
                _LOG.warning("not taken", extra={"subscription": name, "reason": str(exc)})

    async with trio.open_nursery() as nursery:
        for _ in range(_AT_ONCE):
            nursery.start_soon(work)

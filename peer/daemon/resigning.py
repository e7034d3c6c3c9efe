"""Leaving a network for good: others take over, subscriptions end, and the source strikes the machine out.

In this order, so that nobody misses anything: those whom this machine feeds are fed by others; its subscriptions
are withdrawn, and get what they are owed; the source revokes the machine at its own request; the private key is
removed, and the home is marked. Results stay where they are. Whatever was done before it was cut short stays done,
and leaving can be asked for again.
"""

from __future__ import annotations

import logging
import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

import msgspec
import trio

from overlay.identity import BadCredential
from overlay.identity.private_files import read_private, write_private
from peer.daemon.questions import NoAnswer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from peer.daemon.peer_daemon import PeerDaemon

_LOG: Final = logging.getLogger("distributary.peer")
_MARK: Final = "left.json"
_LOOK_S: Final = 0.1


class Left(msgspec.Struct, frozen=True):
    """Which network a machine has left, as what, and when (seconds since 1970)."""

    network: str
    site: str
    at: float
    is_source_told: bool


def check_not_left(home: Path) -> None:
    """Raise ``BadCredential`` if the machine of a home has left its network."""
    path = home / _MARK
    if not path.exists():
        return
    try:
        left = msgspec.json.decode(read_private(path, "remove it"), type=Left)
    except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
        raise BadCredential(path, f"it cannot be read: {exc}", "remove it") from exc
    raise BadCredential(
        home, f"this machine has left the network {left.network}",
        f"join again with a new token: at the source 'distributary network invite {left.site}', here "
        f"'distributary network join TOKEN'",
    )  # fmt: skip


def mark_left(home: Path, network: str, site: str, *, is_source_told: bool) -> Left:
    """Mark a home as left, durably, and remove the key, so that nobody can be this machine any more."""
    left = Left(network, site, time.time(), is_source_told)
    write_private(home / _MARK, msgspec.json.encode(left))
    for name in ("key.pem", "key.next.pem"):
        (home / "identity" / name).unlink(missing_ok=True)
    return left


def unmark(home: Path) -> None:
    """Forget that the machine had left: it has joined again."""
    (home / _MARK).unlink(missing_ok=True)


async def resign(daemon: PeerDaemon, *, wait_s: float, is_forced: bool) -> AsyncGenerator[dict[str, Any], None]:
    """Leave; yields what is left to do. ``is_forced``: what needs the source and gets no answer is left out."""
    is_told, end = False, trio.current_time() + wait_s
    try:
        async with aclosing(daemon.drain()) as steps:
            async for told in steps:
                yield told
                if trio.current_time() >= end:
                    break
        for name in daemon.hosted.live():
            await daemon.unsubscribe(name)
        while daemon.host.subscriptions and trio.current_time() < end:
            yield {"subscriptions": len(daemon.host.subscriptions)}
            await trio.sleep(_LOOK_S)
        await daemon.ask_source("leave", None)
        is_told = True
    except NoAnswer as exc:
        if not is_forced:
            raise NoAnswer(f"{exc}; 'network leave --force' leaves without the source") from None
        _LOG.warning("left without the source", extra={"reason": str(exc)})
    member = daemon.credential.member
    left = mark_left(daemon.home, member.network, member.site, is_source_told=is_told)
    _LOG.warning("left the network", extra={"network": member.network, "is_source_told": is_told})
    daemon.finished.set()
    yield msgspec.to_builtins(left)

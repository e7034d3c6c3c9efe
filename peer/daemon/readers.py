"""Who reads a subscription reads it in the same way, whether it is of documents or in a space."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from peer.daemon.cursors import Cursors
    from peer.daemon.peer_daemon import PeerDaemon
    from peer.daemon.reading import Reading
    from peer.daemon.space_messages import SpaceReading


class Readers(NamedTuple):
    """What reads a kind of subscriptions, and remembers how far."""

    reading: Reading | SpaceReading
    cursors: Cursors


def readers_of(daemon: PeerDaemon, name: str) -> Readers:
    """Return what reads a subscription of a peer."""
    if name in daemon.spaces.subscriptions:
        return Readers(daemon.spaces.reading, daemon.spaces.cursors)
    return Readers(daemon.reading, daemon.cursors)

"""One connection to another machine, as ``Links`` keeps it, and who is told of all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import trio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overlay.identity import Member
    from overlay.wire.connection import Connection
    from overlay.wire.frames import Frame
    from peer.daemon.tls_stream import TlsStream


class Listener(Protocol):
    """What is told of connections; nothing here may wait."""

    def up(self, member: Member) -> None:
        """A machine is connected."""

    def lost(self, site: str) -> None:
        """A machine is not connected any more, or could not be reached."""

    def heard(self, member: Member, frames: Sequence[Frame]) -> None:
        """Frames have come, together."""

    def told(self) -> None:
        """What had to be said because of them is on its way."""


@dataclass(eq=False)
class Wire:
    """One connection."""

    member: Member
    stream: TlsStream
    connection: Connection
    is_dialled: bool
    wake: trio.Event = field(default_factory=trio.Event)
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    is_leaving: bool = False
    is_writing: bool = False
    """Whether the writer is at it: nobody else may send then."""
    used_at: float = field(default_factory=trio.current_time)
    """When something was last said, or found to be needed."""

    def stir(self) -> None:
        """Let the writer look again."""
        self.wake.set()

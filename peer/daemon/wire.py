"""One connection to another machine, as ``Links`` keeps it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from overlay.identity import Member
    from overlay.wire.connection import Connection


@dataclass(eq=False)
class Wire:
    """One connection."""

    member: Member
    stream: trio.SSLStream[trio.SocketStream]
    connection: Connection
    is_dialled: bool
    wake: trio.Event = field(default_factory=trio.Event)
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    is_leaving: bool = False
    used_at: float = field(default_factory=trio.current_time)
    """When something was last said, or found to be needed."""

    def stir(self) -> None:
        """Let the writer look again."""
        self.wake.set()

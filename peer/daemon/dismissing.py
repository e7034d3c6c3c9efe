"""What a machine that is revoked is told, and that it gets nothing else."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

import trio

from overlay.wire.frames import Bye

if TYPE_CHECKING:
    from overlay.wire.connection import Connection
    from peer.daemon.tls_stream import TlsStream

REVOKED: Final = "you are revoked"
"""The goodbye to a machine that is revoked."""
REVOKED_REST_S: Final = 60.0
"""Who was told so does not dial again for this long."""
_AT_ONCE: Final = 1 << 16


async def dismiss(stream: TlsStream, connection: Connection, patience_s: float = 1.0) -> None:
    """Greet a machine and tell it that it is revoked; what it says is not looked at."""
    connection.outbox.put(Bye(REVOKED))
    with trio.move_on_after(patience_s), contextlib.suppress(trio.BrokenResourceError):
        await stream.send_all(connection.send(_AT_ONCE, trio.current_time()))
        while await stream.receive_some(_AT_ONCE):
            pass  # closing while it still sends would take the goodbye from it

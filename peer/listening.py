"""Listening at an address, or saying in one line why not, and which options name another."""

from __future__ import annotations

import trio

from peer.errors import CommandError


async def listen(host: str, port: int, options: str) -> list[trio.SocketListener]:
    """Listen for connections; ``CommandError`` if that cannot be: another program has the port, say."""
    try:
        return await trio.open_tcp_listeners(port, host=host)
    except OSError as exc:
        reason = exc.strerror or str(exc)
        raise CommandError(f"cannot listen at {host}:{port}: {reason}; choose another with {options}") from exc

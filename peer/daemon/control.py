"""The socket that the command line talks to: a request in one line of JSON, then one line per answer.

The last line says ``{"done": true}`` or ``{"failed": REASON}``, with ``"again": true`` where it is worth trying
again; then another request may follow. The socket lies in the home folder, and only its owner can use it.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import trio

from peer.daemon.questions import NoAnswer, is_passing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    Handler: TypeAlias = Callable[[dict[str, Any]], AsyncGenerator[Any, None] | Awaitable[Any]]
    """What does a request: it yields answers as they come, or returns the only one."""

_LOG: Final = logging.getLogger("distributary.control")
SOCKET: Final = "control.sock"
_MOST_BYTES: Final = 200 << 20
_DONE: Final = {"done": True}


async def serve_control(
    home: Path,
    handlers: Mapping[str, Handler],
    name: str = SOCKET,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Answer requests until cancelled; the socket is there while it runs."""
    path = home / name
    path.unlink(missing_ok=True)
    listening = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        await listening.bind(str(path))
    finally:
        os.umask(before)
    listening.listen(64)

    async def answer(stream: trio.SocketStream) -> None:
        async with stream:
            try:
                request = b"\n"
                while request.endswith(b"\n") and (request := await _line(stream)):
                    await _answer(stream, handlers, request)
            except trio.BrokenResourceError:
                _LOG.debug("the command has gone")

    task_status.started()
    try:
        await trio.serve_listeners(answer, [trio.SocketListener(listening)])
    finally:
        path.unlink(missing_ok=True)


async def _answer(stream: trio.SocketStream, handlers: Mapping[str, Handler], request: bytes) -> None:
    try:
        asked = json.loads(request)
        handler = handlers.get(asked.get("do", ""))
        if handler is None:
            raise NoAnswer(_not_here(handlers))
        begun = handler(asked)
        if isinstance(begun, AsyncGenerator):
            async with aclosing(begun) as answers:
                await _send_each(stream, answers, is_followed=bool(asked.get("follow")))
            await _send(stream, _DONE)
        else:
            await _send(stream, await begun, _DONE)
    except trio.BrokenResourceError:
        raise
    except Exception as group:  # whatever a command asks, the daemon goes on
        exc: Exception = group
        while isinstance(exc, ExceptionGroup) and len(exc.exceptions) == 1:
            exc = exc.exceptions[0]  # of the nursery in which it is followed
        again = {"again": True} if is_passing(exc) else {}
        await _send(stream, {"failed": " ".join(str(exc).split())} | again)


def _not_here(handlers: Mapping[str, Handler]) -> str:
    if "invite" in handlers:
        return "this is not for the source; name the folder of a subscriber's machine with --home"
    if "subscribe" in handlers:
        return "this is for the source alone; name its folder with --home"
    return "this daemon does not do that; name the folder of another with --home"


async def _send_each(stream: trio.SocketStream, answers: AsyncGenerator[Any, None], *, is_followed: bool) -> None:
    if is_followed:
        await _follow(stream, answers)
        return
    async for one in answers:
        await _send(stream, one)


async def _follow(stream: trio.SocketStream, answers: AsyncGenerator[Any, None]) -> None:
    """Send what has no end, until the command goes: at once, though there may be nothing to send."""
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_until_closed, stream)
            async for one in answers:
                await _send(stream, one)
            nursery.cancel_scope.cancel()
    except* trio.BrokenResourceError as group:
        raise trio.BrokenResourceError("the command has gone") from group


async def _until_closed(stream: trio.SocketStream) -> None:
    while await stream.receive_some(1 << 10):
        pass  # a command says nothing more
    raise trio.BrokenResourceError("the command has gone")


async def _line(stream: trio.SocketStream) -> bytes:
    data = bytearray()
    while not data.endswith(b"\n"):
        more = await stream.receive_some(1 << 20)
        if not more or len(data) > _MOST_BYTES:
            break
        data += more
    return bytes(data)


async def _send(stream: trio.SocketStream, *answers: Any) -> None:
    await stream.send_all(b"".join(json.dumps(one).encode() + b"\n" for one in answers))

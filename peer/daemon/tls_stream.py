"""TLS over a socket, made for links: everything that has come is taken at once, and what can leave leaves at once.

It does what ``trio.SSLStream`` does for one reader and one writer, with a third of the work for each message: a
socket is waited for, then read until all that came is decrypted. The end of a connection needs no agreement here,
for frames are numbered and say goodbye themselves.
"""

from __future__ import annotations

import os
import ssl
from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from trio import SocketStream

_READ: Final = 64 << 10
_RECORD: Final = 16 << 10
"""The most that TLS hands out at a time."""


class TlsStream:
    """One end of a connection. One task may receive while another sends; whoever made the socket closes it."""

    def __init__(self, plain: SocketStream, context: ssl.SSLContext) -> None:
        self._socket = plain.socket
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        is_server = context.protocol is ssl.PROTOCOL_TLS_SERVER
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=is_server)
        self._wrong: ssl.SSLError | None = None

    async def do_handshake(self) -> None:
        """Agree on keys, and have both certificates checked."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                await self._fill()
            except ssl.SSLError as exc:
                await self._flush()  # the other end may learn why
                raise trio.BrokenResourceError from exc
            else:
                await self._flush()
                return

    def certificate(self) -> bytes:
        """Return the certificate of the other end; nothing if it showed none."""
        return self._tls.getpeercert(binary_form=True) or b""

    async def receive_some(self, most: int) -> bytes:
        """Return what has come, about as much as asked for at the most, as soon as there is any; nothing at the
        end."""
        while True:
            data, is_over = self._decrypted(most)
            if data or is_over:
                return data
            await self._fill()

    async def send_all(self, data: bytes) -> None:
        """Send data; returns when the socket has taken it."""
        view = memoryview(data)
        try:
            while view:
                view = view[self._tls.write(view) :]
        except ssl.SSLError as exc:
            raise trio.BrokenResourceError from exc
        await self._flush()

    def _decrypted(self, most: int) -> tuple[bytes, bool]:
        """Return what can be read now, and whether nothing comes after it. What is wrong is told when everything
        before it has been returned; TLS itself would not say it again."""
        if self._wrong is not None:
            raise trio.BrokenResourceError from self._wrong
        parts: list[bytes] = []
        size = 0
        try:
            while size < most:
                parts.append(self._tls.read(_RECORD))
                size += len(parts[-1])
                if not parts[-1]:
                    return b"".join(parts), True
        except ssl.SSLWantReadError:
            pass
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b"".join(parts), True
        except ssl.SSLError as exc:
            self._wrong = exc
            if not parts:
                raise trio.BrokenResourceError from exc
        return b"".join(parts), False

    async def _fill(self) -> None:
        """Wait until something comes, and take it in."""
        while True:
            if self._socket.fileno() < 0:
                raise trio.ClosedResourceError
            await trio.lowlevel.wait_readable(self._socket)
            try:
                data = os.read(self._socket.fileno(), _READ)
            except BlockingIOError:
                continue
            except OSError as exc:
                raise _gone(self._socket) from exc
            if data:
                self._incoming.write(data)
            else:
                self._incoming.write_eof()
            return

    async def _flush(self) -> None:
        """Send what TLS has written."""
        view = memoryview(self._outgoing.read())
        while view:
            try:
                view = view[os.write(self._socket.fileno(), view) :]
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._socket)
            except OSError as exc:
                raise _gone(self._socket) from exc


def _gone(socket: trio.socket.SocketType) -> trio.BrokenResourceError | trio.ClosedResourceError:
    """Say who ended a connection: this end, or the other."""
    return trio.ClosedResourceError() if socket.fileno() < 0 else trio.BrokenResourceError()

"""TLS over a socket, made for links: everything that has come is taken at once, and what can leave leaves at once.

It does what ``trio.SSLStream`` does for one reader and one writer, with a third of the work for each message: a
socket is waited for, then read until all that came is decrypted; and what fits into the socket can be sent without
waiting. The end of a connection needs no agreement here, for frames are numbered and say goodbye themselves.
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
    """One end of a connection. One task may receive while another sends; whoever made the socket closes it. Who
    sends at once sends nothing else before ``flush`` if something was left."""

    def __init__(self, plain: SocketStream, context: ssl.SSLContext) -> None:
        self._socket = plain.socket
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        is_server = context.protocol is ssl.PROTOCOL_TLS_SERVER
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=is_server)
        self._wrong: ssl.SSLError | None = None
        self._is_drained = True
        """Whether everything that came has been decrypted."""
        self._unsent = memoryview(b"")

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
            if self._is_drained:
                await self._fill()
            data, is_over = self._decrypted(most)
            if data or is_over:
                return data

    async def send_all(self, data: bytes) -> None:
        """Send data; returns when the socket has taken it."""
        self._encrypt(data)
        await self._flush()

    def send_at_once(self, data: bytes) -> bool:
        """Send what the socket takes now; say whether that was all. Else ``flush`` sends the rest."""
        self._encrypt(data)
        return self._write_some()

    async def flush(self) -> None:
        """Send what was left."""
        await self._flush()

    def _encrypt(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[self._tls.write(view) :]
        except ssl.SSLError as exc:
            raise trio.BrokenResourceError from exc

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
            self._is_drained = True
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
            self._is_drained = False
            if data:
                self._incoming.write(data)
            else:
                self._incoming.write_eof()
            return

    async def _flush(self) -> None:
        """Send what TLS has written."""
        while not self._write_some():
            await trio.lowlevel.wait_writable(self._socket)

    def _write_some(self) -> bool:
        """Send what the socket takes of what TLS has written; say whether that was all."""
        while True:
            try:
                while self._unsent:
                    self._unsent = self._unsent[os.write(self._socket.fileno(), self._unsent) :]
            except BlockingIOError:
                return False
            except OSError as exc:
                raise _gone(self._socket) from exc
            if not self._outgoing.pending:
                return True
            self._unsent = memoryview(self._outgoing.read())


def _gone(socket: trio.socket.SocketType) -> trio.BrokenResourceError | trio.ClosedResourceError:
    """Say who ended a connection: this end, or the other."""
    return trio.ClosedResourceError() if socket.fileno() < 0 else trio.BrokenResourceError()

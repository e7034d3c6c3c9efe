"""One POST: a connection, a request, and whether the receiver has taken it."""

from __future__ import annotations

import errno
import os
import ssl
from typing import TYPE_CHECKING, Final

import h11
import trio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peer.webhooks.hooks import Target

_AT_ONCE: Final = 1 << 16
_MOST_EVENTS: Final = 1_000
"""What a receiver may say before and behind its status: it cannot keep a task busy, nor fill memory."""


class NotDelivered(Exception):
    """The receiver has not taken it; the message says why, in one line."""


async def post(target: Target, headers: Sequence[tuple[str, str]], body: bytes, patience_s: float) -> None:
    """Post, and return if the answer is 2xx; ``NotDelivered`` otherwise. Redirects are not followed."""
    try:
        with trio.fail_after(patience_s):
            status = await _status_of(target, headers, body)
    except trio.TooSlowError:
        raise NotDelivered(f"no answer within {patience_s:g} s") from None
    except (OSError, UnicodeError, trio.BrokenResourceError, h11.RemoteProtocolError) as exc:
        raise NotDelivered(_why(exc.__cause__ or exc)) from None
    if not 200 <= status < 300:
        hint = "; redirects are not followed" if 300 <= status < 400 else ""
        raise NotDelivered(f"it answered {status}{hint}")


def _why(reason: BaseException) -> str:
    """Say in a few words why a connection did not come about.

    >>> _why(ExceptionGroup("all attempts", [ConnectionRefusedError(111, "error connecting to ...")]))
    'connection refused'
    """
    while isinstance(reason, BaseExceptionGroup):
        reason = reason.exceptions[0]  # one for each address that was tried
    number = 0 if isinstance(reason, ssl.SSLError) else getattr(reason, "errno", 0)
    if number in errno.errorcode:
        return os.strerror(number).lower()
    return " ".join(f"{type(reason).__name__}: {reason}".split())[:300]


async def _status_of(target: Target, headers: Sequence[tuple[str, str]], body: bytes) -> int:
    plain = await trio.open_tcp_stream(target.host, target.port)
    async with plain:
        stream: trio.SocketStream | trio.SSLStream[trio.SocketStream] = plain
        if target.is_secure:
            # The certificate is verified as the system does it, or by the file that SSL_CERT_FILE names.
            context = await trio.to_thread.run_sync(ssl.create_default_context)
            stream = trio.SSLStream(plain, context, server_hostname=target.host, https_compatible=True)
        http = h11.Connection(h11.CLIENT)
        asked = h11.Request(
            method="POST", target=target.path,
            headers=[("Host", target.name), ("Content-Length", str(len(body))), ("Connection", "close"),
                     ("User-Agent", "distributary"), *headers],
        )  # fmt: skip
        sent = [http.send(event) or b"" for event in (asked, h11.Data(data=body), h11.EndOfMessage())]
        await stream.send_all(b"".join(sent))
        for _ in range(_MOST_EVENTS):
            event = http.next_event()
            if event is h11.NEED_DATA:
                http.receive_data(bytes(await stream.receive_some(_AT_ONCE)))
            elif isinstance(event, h11.Response):
                return event.status_code
            elif isinstance(event, h11.ConnectionClosed):
                break
        raise trio.BrokenResourceError("it closed without an answer")

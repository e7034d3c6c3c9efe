"""Where machines join: a listener of its own at the source, and the other side for the command line.

Messages have a length (4 bytes, big-endian) before them. Who joins has no certificate yet: the token proves it,
and the source's proof comes before the token's secret is said (``overlay.identity.enrolment``).
"""

from __future__ import annotations

import logging
import socket
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import trio

from overlay.identity import (
    BadCredential,
    Credential,
    Enrolled,
    Enroller,
    IdentityError,
    InvitationRefused,
    Joiner,
    Refusal,
    Send,
    Token,
    install,
    prepare_key,
)
from overlay.identity.certificates import verify_chain_at_any_time
from overlay.identity.enrolment_messages import NONCE_BYTES
from overlay.identity.keys import fresh_bytes
from overlay.identity.tls import enrolment_client_context
from peer.daemon.resigning import unmark
from peer.daemon.strangers import ContextOf, Strangers, TooManyStrangers
from peer.daemon.supervising import supervised
from peer.listening import listen
from peer.storage.errors import StorageError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from overlay.identity import Application

_LOG: Final = logging.getLogger("distributary.enrolling")
_MOST_BYTES: Final = 64 << 10
_ANOTHER: Final = "name another folder with --home"
_PATIENCE_S: Final = 10.0
_MOST_AT_ONCE: Final = 64
"""So many may be joining. More lets more come at once; each takes a file descriptor of the source."""


async def serve_enrolment(
    own: Callable[[], Credential],
    host: str,
    port: int,
    admit: Callable[[Enroller, Application], Awaitable[bytes]],
    *,
    task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Let machines join until cancelled; started with the port. ``admit`` makes the last answer, durably."""

    context_of = ContextOf(Credential.enrolment_context)
    context_of(own())  # what is wrong with the files is said now
    strangers = Strangers(_MOST_AT_ONCE, "enrolment")

    async def enrol(plain: trio.SocketStream) -> None:
        async with plain:
            with supervised(_refused), suppress(TooManyStrangers):
                try:
                    with strangers.one_more(), trio.fail_after(_PATIENCE_S):
                        credential = own()  # anew for each: it is renewed now and then
                        await _let_in(plain, credential, context_of(credential), admit)
                except (trio.BrokenResourceError, trio.TooSlowError, trio.EndOfChannel, IdentityError) as exc:
                    _refused(str(exc))

    listeners = await listen(host, port, "--enrolment-port or --host")
    task_status.started(listeners[0].socket.getsockname()[1])
    await trio.serve_listeners(enrol, listeners)


async def _let_in(
    plain: trio.SocketStream,
    credential: Credential,
    context: ssl.SSLContext,
    admit: Callable[[Enroller, Application], Awaitable[bytes]],
) -> None:
    stream = trio.SSLStream(plain, context, server_side=True, https_compatible=True)
    enroller = Enroller(credential.signer, credential.root, nonce=fresh_bytes(NONCE_BYTES))
    while isinstance(step := enroller.receive(await _receive(stream)), Send):
        await _send(stream, step.data)
    try:
        told = await admit(enroller, step)
    except InvitationRefused as exc:
        told = enroller.refuse(exc.reason)
    except StorageError as exc:
        _LOG.error("nobody can join", extra={"reason": str(exc)})
        told = enroller.refuse(Refusal.LATER)
    await _send(stream, told)


def _refused(reason: str) -> None:
    _LOG.warning("refused", extra={"reason": reason})


async def _receive(stream: trio.SSLStream[trio.SocketStream]) -> bytes:
    size = int.from_bytes(await _exactly(stream, 4))
    if size > _MOST_BYTES:
        raise trio.EndOfChannel(f"a message of {size:,} bytes")
    return await _exactly(stream, size)


async def _exactly(stream: trio.SSLStream[trio.SocketStream], size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        more = await stream.receive_some(size - len(data))
        if not more:
            raise trio.EndOfChannel("the other side has gone")
        data += more
    return bytes(data)


async def _send(stream: trio.SSLStream[trio.SocketStream], data: bytes) -> None:
    await stream.send_all(len(data).to_bytes(4) + data)


def join(home: Path, text: str) -> Credential:
    """Join a network with a token, and return what this machine is then; ``IdentityError`` or ``OSError``."""
    token = Token.parse(text)
    if (home / "authority").exists():
        raise BadCredential(home, "this is the source's folder", _ANOTHER)
    known = _belongs_to(home)
    if token.site:
        _check_for(home, known, token.site, "")  # before the token is used up
    try:
        return _join_at(home, token, known)
    except InvitationRefused as exc:
        if exc.reason is not Refusal.USED or known is None or known.root.fingerprint != token.fingerprint:
            raise
        why = f"this is {known.member.site} in the network {token.network} already, and the token was used before"
        raise BadCredential(home, why, f"run 'distributary peer run --home {home}'") from None


def _join_at(home: Path, token: Token, known: Credential | None) -> Credential:
    key = prepare_key(home / "identity")
    last: OSError | None = None
    for address in token.addresses:
        try:
            with (
                socket.create_connection((address.host, address.port), _PATIENCE_S) as plain,
                enrolment_client_context().wrap_socket(plain) as stream,
            ):
                return _join_over(stream, home, token, key, known)
        except (ConnectionError, TimeoutError) as exc:
            last = exc
    raise last or OSError("the token names no address of the source")


def _belongs_to(home: Path) -> Credential | None:
    """Return which machine a folder is of; None if of none, or of one that cannot be used any more."""
    try:
        return Credential.load(home / "identity")
    except BadCredential:
        return None


def _check_for(home: Path, known: Credential | None, site: str, what_then: str) -> None:
    if known is not None and known.member.site != site:
        why = f"this is the machine {known.member.site}, and the token {'was' if what_then else 'is'} for {site}"
        raise BadCredential(home, why + what_then, _ANOTHER)


def _join_over(
    stream: ssl.SSLSocket, home: Path, token: Token, key: object, known: Credential | None
) -> Credential:
    leaf = stream.getpeercert(binary_form=True) or b""
    joiner = Joiner(token, key, leaf=leaf, nonce=fresh_bytes(NONCE_BYTES))  # type: ignore[arg-type]  # a private key
    data = joiner.hello()
    while True:
        stream.sendall(len(data).to_bytes(4) + data)
        step = joiner.receive(_read(stream), datetime.now(UTC))
        if isinstance(step, Enrolled):
            site = verify_chain_at_any_time(step.chain, step.root).site
            _check_for(home, known, site, ", which is to be invited again")
            made = install(home / "identity", step.root, step.settings, step.chain)
            unmark(home)
            return made
        data = step.data


def _read(stream: ssl.SSLSocket) -> bytes:
    def exactly(size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = stream.recv(size - len(data))
            if not more:
                raise ConnectionResetError("the source has closed the connection")
            data += more
        return data

    size = int.from_bytes(exactly(4))
    if size > _MOST_BYTES:
        raise ConnectionResetError(f"a message of {size:,} bytes")
    return exactly(size)

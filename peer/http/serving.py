"""The server: connections on trio, each read with ``h11``, one request after the other.

A connection ends when its client stays silent, is slow, or breaks a limit; the server goes on. What a stream sends
is made when the client has read what came before it, so one that does not read costs a socket's buffer, and is let
go after a while. When the client of a stream closes, the stream ends at once.
"""

from __future__ import annotations

import json
import logging
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import h11
import trio

from peer.http.access import check_host, check_token
from peer.http.exchange import Refusal, Response, request_of
from peer.http.limits import HttpLimits
from peer.listening import listen

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from peer.http.exchange import Request
    from peer.http.routes import Route, Routes

_LOG: Final = logging.getLogger("distributary.http")
_HOST: Final = "127.0.0.1"
_AT_ONCE: Final = 1 << 16
_LINGER_BYTES: Final = 1 << 20
_LINGER_S: Final = 2.0
_CLOSED: Final = (trio.BrokenResourceError, trio.ClosedResourceError)


class _Gone(Exception):
    """The client has closed, or takes too long."""


@dataclass(eq=False)
class Server:
    """What is offered, to whom, and how many are there now."""

    routes: Routes
    token: str
    limits: HttpLimits = field(default_factory=HttpLimits)
    connections: int = 0
    streams: int = 0
    answers: dict[int, int] = field(default_factory=dict)
    """How often each status was answered."""

    def __post_init__(self) -> None:
        self.bodies = trio.Semaphore(self.limits.bodies)

    async def serve(self, port: int, *, task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED) -> None:
        """Listen on localhost until cancelled; started with the port."""
        listeners = await listen(_HOST, port, "--http")
        task_status.started(listeners[0].socket.getsockname()[1])
        await trio.serve_listeners(self._accept, listeners)

    async def _accept(self, stream: trio.SocketStream) -> None:
        self.connections += 1
        talk = _Talk(self, stream)
        try:
            async with stream:
                if self.connections > 2 * self.limits.connections:
                    return  # a flood: not even told why
                if self.connections > self.limits.connections:
                    await talk.turn_away()
                else:
                    await talk.run()
        except (_Gone, *_CLOSED) as exc:
            _LOG.debug("closed", extra={"reason": str(exc)})
        except Exception:  # whatever a client does, the daemon goes on
            _LOG.exception("a request failed")
        finally:
            self.connections -= 1


class _Talk:
    """One connection."""

    def __init__(self, server: Server, stream: trio.SocketStream) -> None:
        self._server, self._stream, self._limits = server, stream, server.limits
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=self._limits.head_bytes)
        self._is_head = False

    async def turn_away(self) -> None:
        """Say that there are too many."""
        with trio.move_on_after(_LINGER_S):
            body = json.dumps({"error": "too many connections; try again later"}).encode() + b"\n"
            head = f"HTTP/1.1 503 Service Unavailable\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            await self._stream.send_all(head.encode() + body)
            await self._linger()

    async def run(self) -> None:
        """Answer requests until either side has enough."""
        while True:
            self._is_head = False
            try:
                event = await self._head()
                self._is_head = event.method == b"HEAD"
                await self._answered(event)
            except h11.RemoteProtocolError as exc:
                await self._refuse(Refusal(exc.error_status_hint, f"this is not HTTP as it should be: {exc}"))
            except Refusal as exc:
                await self._refuse(exc)
            if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
                await self._linger()
                return
            self._http.start_next_cycle()

    # Reading.

    async def _head(self) -> h11.Request:
        if not self._http.trailing_data[0]:
            with trio.move_on_after(self._limits.idle_s) as idle:
                await self._receive()
            if idle.cancelled_caught:
                raise _Gone("idle")
        with trio.move_on_after(self._limits.head_s):
            event = await self._event()
            if isinstance(event, h11.ConnectionClosed):
                raise _Gone("closed")
            assert isinstance(event, h11.Request)
            return event
        raise Refusal(408, f"the head of a request must come within {self._limits.head_s:g} s")

    async def _event(self) -> h11.Event:
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                await self._receive()
            else:
                assert not isinstance(event, type)  # PAUSED comes only where nothing is left to be read
                return event

    async def _receive(self) -> None:
        self._http.receive_data(await self._stream.receive_some(_AT_ONCE))

    async def _body(self, request: Request) -> bytes:
        most = self._limits.body_bytes
        name = request.query.get("name") or "the body"
        too_large = Refusal(413, f"{name}: it is larger than {most:,} bytes, the most that a document may have")
        if int(request.headers.get("content-length", 0)) > most:
            raise too_large
        if self._http.they_are_waiting_for_100_continue:
            await self._send(h11.InformationalResponse(status_code=100, headers=[], reason="Continue"))
        data = bytearray()
        with trio.move_on_after(self._limits.body_s):
            while isinstance(event := await self._event(), h11.Data):
                data += event.data
                if len(data) > most:
                    raise too_large
            if isinstance(event, h11.ConnectionClosed):
                raise _Gone("closed within a body")
            return bytes(data)
        raise Refusal(408, f"a body must come within {self._limits.body_s:g} s")

    # Answering.

    async def _answered(self, event: h11.Request) -> None:
        headers = [(name.decode("ascii"), value.decode("latin-1")) for name, value in event.headers]
        request = request_of(event.method.decode("ascii"), event.target.decode("ascii"), headers)
        check_host(request.headers)
        if not self._server.routes.is_open(request.path):
            check_token(request.headers, self._server.token)
        route, parts = self._server.routes.find(request.method, request.path)
        route.check(request.query)
        if route.takes_body:
            await self._with_body(route, parts, request)
            return
        if int(request.headers.get("content-length", 0)) or "transfer-encoding" in request.headers:
            raise Refusal(413, "no body is expected here")
        await self._event()  # the end of the request
        await self._handle(route, parts, request)

    async def _with_body(self, route: Route, parts: tuple[str, ...], request: Request) -> None:
        with trio.move_on_after(self._limits.body_s) as waiting:
            await self._server.bodies.acquire()
        if waiting.cancelled_caught:
            raise Refusal(503, "too many documents at once; try again later", (("Retry-After", "5"),))
        try:
            await self._handle(route, parts, replace(request, body=await self._body(request)))
        finally:
            self._server.bodies.release()

    async def _handle(self, route: Route, parts: tuple[str, ...], request: Request) -> None:
        try:
            response = await route.handler(request, parts)
        except Refusal:
            raise
        except Exception:  # whatever a request brings about, the daemon goes on
            _LOG.exception("a request failed")
            raise Refusal(500, "this failed here; the daemon's log says why") from None
        if response.parts is None:
            await self._whole(response)
            return
        if self._is_head:
            await response.parts.aclose()
            await self._whole(response)
            return
        if self._server.streams >= self._limits.streams:
            await response.parts.aclose()
            raise Refusal(503, "too many streams at once; close one first", (("Retry-After", "5"),))
        self._server.streams += 1
        try:
            await self._streamed(response, response.parts)
        finally:
            self._server.streams -= 1

    async def _whole(self, response: Response) -> None:
        self._count(response.status)
        headers = [*response.headers, ("Cache-Control", "no-store")]
        if response.status != HTTPStatus.NO_CONTENT and response.parts is None:
            headers.append(("Content-Length", str(len(response.body))))
        body = b"" if self._is_head else response.body
        await self._send(_head_of(response.status, headers), h11.Data(data=body), h11.EndOfMessage())

    async def _streamed(self, response: Response, parts: AsyncGenerator[bytes, None]) -> None:
        """Send parts as they come. Nothing else is expected on this connection: it ends with the stream."""
        self._count(response.status)
        headers = [*response.headers, ("Cache-Control", "no-store"), ("Connection", "close")]
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._until_closed, nursery.cancel_scope)
                await self._send(_head_of(response.status, headers))
                async with aclosing(parts):
                    async for part in parts:
                        await self._send(h11.Data(data=part))
                await self._send(h11.EndOfMessage())
                nursery.cancel_scope.cancel()
        except* (_Gone, *_CLOSED) as group:
            raise _Gone("the client of a stream has gone") from group

    async def _until_closed(self, scope: trio.CancelScope) -> None:
        """Cancel a stream as soon as its client is gone, whether or not there is anything to send."""
        try:
            while await self._stream.receive_some(_AT_ONCE):
                pass  # what comes here is nothing that was asked for
        except _CLOSED:
            pass
        scope.cancel()

    async def _refuse(self, refusal: Refusal) -> None:
        _LOG.info("refused", extra={"status": refusal.status, "reason": refusal.message})
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            response = refusal.response()
            await self._whole(replace(response, headers=(*response.headers, ("Connection", "close"))))

    async def _send(self, *events: h11.Event) -> None:
        data = b"".join(self._http.send(event) or b"" for event in events)
        with trio.move_on_after(self._limits.write_s) as scope:
            await self._stream.send_all(data)
        if scope.cancelled_caught:
            raise _Gone("what was sent is not read")

    async def _linger(self) -> None:
        """Let the client read the answer before the connection goes, though it may still be sending."""
        with trio.move_on_after(_LINGER_S):
            await self._stream.send_eof()
            taken = 0
            while taken < _LINGER_BYTES and (more := await self._stream.receive_some(_AT_ONCE)):
                taken += len(more)

    def _count(self, status: int) -> None:
        self._server.answers[status] = self._server.answers.get(status, 0) + 1


def _head_of(status: int, headers: Sequence[tuple[str, str]]) -> h11.Response:
    return h11.Response(status_code=status, headers=list(headers), reason=HTTPStatus(status).phrase)

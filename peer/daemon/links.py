"""Connections to other machines: TLS both ways, one per pair, dialled when somebody wants to say something.

Both machines may dial at once. Then the connection is kept that the machine with the smaller name dialled,
unless the other belongs to a process that has started since. Whoever is behind a connection is what its
certificate says, and it may be revoked at any time. A connection has two tasks: one reads and never waits for
anything but the network, one writes all that waits at once.

Keeping connections alive is most of what an idle network costs. One that nothing but signs of life has gone over
for a while, and that nobody here needs, is hung up, and dialled again when there is something to say.
"""

from __future__ import annotations

import logging
import math
import random
import ssl
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from overlay.identity import Credential, IdentityError, NotPermitted, RevocationList, Untrusted
from overlay.wire.connection import Connection, Patience, Stage
from overlay.wire.errors import WireError
from overlay.wire.frames import OF_SENDER, Bye, Content, Level, Marked, Pace, SignOfLife
from peer.daemon.beats import Beat
from peer.daemon.dismissing import REVOKED, REVOKED_REST_S, dismiss
from peer.daemon.doubles import Doubles
from peer.daemon.refusals import Refusals
from peer.daemon.resting import Resting
from peer.daemon.strangers import ContextOf, Strangers, TooManyStrangers
from peer.daemon.supervising import supervised
from peer.daemon.tls_stream import TlsStream
from peer.daemon.wire import Wire
from peer.listening import listen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from overlay.identity import Address, Member
    from overlay.wire.frames import Frame
    from peer.daemon.wire import Listener

_LOG: Final = logging.getLogger("distributary.links")
_HANDSHAKE_S: Final = 15.0
_MOST_HANDSHAKES: Final = 256
"""So many machines may be about to show who they are. More lets more come at once; each costs a file."""
_GOODBYE_S: Final = 1.0
_AT_ONCE: Final = 512 << 10
_UNUSED_S: Final = 30.0
"""So long a connection that nobody needs is kept: dialling again takes a greeting."""


def nobody_revoked(network: str) -> RevocationList:
    """Stand in for the list until one is known; every real list replaces it."""
    return RevocationList(network, -1, {}, {}, 0, b"")


class Links:
    """All connections of one machine. ``find`` says where a machine can be dialled; ``needs``, whether a
    connection is to be kept although nothing is said; ``feeds``, whether somebody must notice soon if we die."""

    def __init__(
        self,
        credential: Credential,
        listener: Listener,
        find: Callable[[str], Awaitable[tuple[Address, ...]]],
        *,
        patience: Patience | None = None,
        needs: Callable[[str], bool] = lambda _: True,
        feeds: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self.credential, self._listener, self._find = credential, listener, find
        self._needs, self._feeds = needs, feeds
        self.revocations = nobody_revoked(credential.root.network)
        self._patience = patience or Patience()
        self._incarnation = random.SystemRandom().getrandbits(60)
        self._as_server, self._as_client = (
            ContextOf(Credential.server_context),
            ContextOf(Credential.client_context),
        )
        self._strangers = Strangers(_MOST_HANDSHAKES, "links")
        self._wires: dict[str, Wire] = {}
        self._beating: set[Wire] = set()
        self._dialling: set[str] = set()
        self._resting, self.doubles = Resting(), Doubles()
        self._nursery: trio.Nursery | None = None
        self._listening, self._is_leaving, self._all_gone = trio.CancelScope(), False, trio.Event()
        self.bytes_sent = self.bytes_received = self._saved = 0
        self._stirred: dict[Wire, None] | None = None
        """Which wires have something to send because of what is being heard; none while nothing is."""
        self._refusals = Refusals()
        self.refused = self._refusals.counts

    def use(self, credential: Credential) -> None:
        """Make new connections with a renewed credential."""
        self.credential = credential

    async def serve(
        self, host: str, port: int, *, task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Listen, and run all connections, until cancelled; started with the port."""
        listeners = await listen(host, port, "--port or --host")
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            nursery.start_soon(self._beat)
            task_status.started(listeners[0].socket.getsockname()[1])
            try:
                with self._listening:
                    await trio.serve_listeners(self._accept, listeners, handler_nursery=nursery)
            finally:
                self._is_leaving = True  # what is still being written may have somebody to be told of it

    @property
    def sites(self) -> list[str]:
        """The machines that are connected."""
        return sorted(site for site, wire in self._wires.items() if wire.connection.stage is Stage.READY)

    @property
    def frames_waiting(self) -> int:
        """How many frames wait to be sent, on all connections."""
        return sum(wire.connection.outbox.waiting for wire in self._wires.values())

    def traffic(self) -> dict[str, Any]:
        """Say how much came and went, and what was refused. ``bytes_saved``: named instead of sent, because they
        had crossed the same connection before."""
        saved = self._saved + sum(wire.connection.outbox.saved_bytes for wire in self._beating)
        return {
            "bytes_sent": self.bytes_sent, "bytes_saved": saved, "bytes_received": self.bytes_received,
            "refused": dict(self.refused),
        }  # fmt: skip

    def send(self, site: str, frame: Frame) -> bool:
        """Send a frame; False if there is no connection, and then one is dialled."""
        wire = self._wires.get(site)
        if wire is None or wire.connection.stage is not Stage.READY:
            self.dial(site)
            return False
        if isinstance(frame, Level) and wire.connection.version < 2:
            return True  # it does not know levels that change
        if isinstance(frame, Content) and wire.connection.version < 3:
            return False  # nor spaces
        if wire.connection.version < 6:
            if isinstance(frame, Pace):
                return True  # nothing is ever held there
            frame = frame.plain if isinstance(frame, Marked) else frame
        wire.used_at = trio.current_time()
        if isinstance(frame, OF_SENDER):
            wire.connection.outbox.put_feed(frame)
        else:
            wire.connection.outbox.put(frame)
        if self._stirred is None:
            wire.stir()
        else:
            self._stirred[wire] = None
        return True

    def dial(self, site: str) -> None:
        """Connect to a machine, unless it is being done."""
        wanted = site not in self._dialling and site not in self._wires and not self._is_leaving
        if wanted and self._nursery is not None and not self._resting.holds(site):
            self._dialling.add(site)
            self._nursery.start_soon(self._dial, site)

    def is_dialling(self, site: str) -> bool:
        """Say whether a machine is being dialled."""
        return site in self._dialling

    def hang_up(self, site: str, reason: str) -> None:
        """End the connection to a machine, once it has been told why, and within a second in any case."""
        wire = self._wires.get(site)
        if wire is not None:
            wire.connection.outbox.put(Bye(reason))
            wire.is_leaving = True
            wire.scope.deadline = trio.current_time() + _GOODBYE_S
            wire.stir()

    def stop_listening(self) -> None:
        """Take no more connections, and make none."""
        self._is_leaving = True
        self._listening.cancel()

    async def leave(self, reason: str) -> None:
        """Say goodbye to everybody; returns when all connections have ended, within a second."""
        self.stop_listening()
        self._all_gone = trio.Event()  # there may have been none for a moment before
        for site in list(self._wires):
            self.hang_up(site, reason)
        if self._wires:
            with trio.move_on_after(_GOODBYE_S):
                await self._all_gone.wait()

    def revoked(self, revocations: RevocationList) -> None:
        """Take a new list of the revoked, and end what it ends."""
        self.revocations = revocations
        for site, wire in list(self._wires.items()):
            wire.connection.revocation = revocations.number
            if revocations.is_revoked(wire.member):
                _LOG.warning("revoked", extra={"site": site})
                wire.scope.cancel()

    async def _dial(self, site: str) -> None:
        try:
            with supervised(self._refuse, site=site):
                for address in await self._find(site):
                    if await self._dial_at(site, address):
                        return
        finally:
            self._dialling.discard(site)
        if site not in self._wires:  # it may have dialled us meanwhile
            self._listener.lost(site)

    async def _dial_at(self, site: str, address: Address) -> bool:
        try:
            with trio.fail_after(_HANDSHAKE_S):
                plain = await trio.open_tcp_stream(address.host, address.port)
        except (OSError, UnicodeError, ValueError):
            return False
        except trio.TooSlowError:
            self._resting.longer(site)
            return False
        async with plain:  # also when the daemon stops within a handshake
            return await self._run(plain, dialled=site)

    async def _accept(self, plain: trio.SocketStream) -> None:
        async with plain:
            with supervised(self._refuse):
                await self._run(plain, dialled=None)

    async def _run(self, plain: trio.SocketStream, *, dialled: str | None) -> bool:
        """Greet whoever is there and run the connection until it ends; False if it never began. Whoever made the
        stream closes it."""
        try:
            if dialled is None:
                with self._strangers.one_more():
                    stream, member = await self._shake_hands(plain, self._as_server(self.credential))
            else:
                stream, member = await self._shake_hands(plain, self._as_client(self.credential))
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError, IdentityError) as exc:
            self._refuse("it takes too long" if isinstance(exc, trio.TooSlowError) else str(exc.__cause__ or exc))
            if dialled is not None and isinstance(exc, trio.TooSlowError):
                self._resting.longer(dialled)
            return False
        except TooManyStrangers as exc:
            self._refuse(str(exc))
            return False
        if dialled is not None and member.site != dialled:
            self._refuse(f"{member.site} answers at the address of {dialled}")
            return False
        number = max(self.revocations.number, 0)
        connection = Connection(self._incarnation, trio.current_time(), number, self._patience)
        wire = Wire(member, stream, connection, dialled is not None)
        try:
            await self._converse(wire)
        finally:
            self._gone(wire)
        return True

    async def _shake_hands(self, plain: trio.SocketStream, context: ssl.SSLContext) -> tuple[TlsStream, Member]:
        stream = TlsStream(plain, context)
        with trio.fail_after(_HANDSHAKE_S):
            await stream.do_handshake()
        try:
            return stream, self.credential.peer(stream.certificate(), datetime.now(UTC), self.revocations)
        except NotPermitted:
            if context.protocol is ssl.PROTOCOL_TLS_SERVER:
                await dismiss(stream, Connection(self._incarnation, trio.current_time(), 0, self._patience))
            raise

    def _refuse(self, reason: str) -> None:
        self._refusals.count(reason, trio.current_time())

    async def _converse(self, wire: Wire) -> None:
        self._beating.add(wire)
        try:
            with wire.scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._supervised, self._write, wire)
                    await self._supervised(self._read, wire)
                    nursery.cancel_scope.cancel()
        finally:
            self._beating.discard(wire)
            self._saved += wire.connection.outbox.saved_bytes

    async def _supervised(self, work: Callable[[Wire], Awaitable[None]], wire: Wire) -> None:
        with supervised(self._refuse, wire.scope.cancel, site=wire.member.site):
            await work(wire)

    async def _read(self, wire: Wire) -> None:
        while wire.connection.stage is not Stage.CLOSED:
            try:
                data = await wire.stream.receive_some(_AT_ONCE)
                if not data:
                    return
                self.bytes_received += len(data)
                was = wire.connection.stage
                frames = wire.connection.receive(data, trio.current_time())
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return
            except WireError as exc:
                self._refuse(str(exc))
                return
            if was is Stage.GREETING and wire.connection.stage is Stage.READY and not self._kept(wire):
                return
            for frame in frames:
                if isinstance(frame, Bye):
                    _LOG.info("goodbye", extra={"site": wire.member.site, "reason": frame.reason[:200]})
                    if frame.reason == REVOKED:
                        self._resting.rest(wire.member.site, REVOKED_REST_S)
                if not isinstance(frame, SignOfLife):
                    wire.used_at = trio.current_time()
            self._hear(wire, frames)

    def _hear(self, wire: Wire, frames: list[Frame]) -> None:
        """Let frames be heard, and send what had to be said because of them: here and now, for waking up a task
        for each connection would take as long again."""
        self._stirred = {wire: None} if wire.connection.outbox else {}
        try:
            self._listener.heard(wire.member, frames)
        finally:
            stirred, self._stirred = self._stirred, None
            for one in stirred:
                with supervised(self._refuse, one.scope.cancel, site=one.member.site):
                    self._send_now(one)
            self._listener.told()

    def _send_now(self, wire: Wire) -> None:
        """Send what waits on a wire, once, as far as the socket takes it; the writer does the rest."""
        is_done = False
        if not (wire.is_writing or wire.wake.is_set()):
            data = wire.connection.send(_AT_ONCE, trio.current_time())
            self.bytes_sent += len(data)
            try:
                is_done = wire.stream.send_at_once(data) and not (wire.connection.outbox or wire.is_leaving)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                wire.scope.cancel()
                return
        if not is_done:
            wire.stir()

    async def _write(self, wire: Wire) -> None:
        while True:
            wire.is_writing = True
            try:
                await wire.stream.flush()
                while data := wire.connection.send(_AT_ONCE, trio.current_time()):
                    self.bytes_sent += len(data)
                    await wire.stream.send_all(data)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                wire.scope.cancel()
                return
            wire.is_writing = False
            if wire.is_leaving:
                wire.scope.cancel()
            wire.wake = trio.Event()
            await wire.wake.wait()

    async def _beat(self) -> None:
        """Look after all connections, until cancelled; one task for all, for waking up costs more than looking."""
        beat, period = Beat(), self._patience.alive_s
        while True:
            dead_at = min([wire.connection.dead_at for wire in self._beating], default=math.inf)
            late = await beat.rest(period, latest=max(dead_at, trio.current_time() + period / 10))
            for wire in list(self._beating):
                if late > period / 2:
                    wire.connection.excuse(late)
                with supervised(self._refuse, wire.scope.cancel, site=wire.member.site):
                    self._look_after(wire)

    def _look_after(self, wire: Wire) -> None:
        try:
            wire.member.check_time(datetime.now(UTC))  # a link lasts no longer than the right to it
            is_calm = partial(self._is_calm, wire.member.site)
            wire.connection.tick(trio.current_time(), is_calm, early_s=self._patience.alive_s / 2)
        except Untrusted as exc:
            _LOG.warning("ended", extra={"site": wire.member.site, "reason": str(exc)})
            wire.scope.cancel()
        except WireError as exc:
            _LOG.info("silent", extra={"site": wire.member.site, "reason": str(exc)})
            wire.scope.cancel()
        else:
            if wire.connection.outbox:
                self._send_now(wire)
            self._part(wire)

    def _is_calm(self, site: str) -> bool:
        return not self._feeds(site)

    def _part(self, wire: Wire) -> None:
        """Hang up if the connection is not used."""
        now, site = trio.current_time(), wire.member.site
        if now - wire.used_at < _UNUSED_S or self._wires.get(site) is not wire or wire.is_leaving:
            return
        if self._needs(site):
            wire.used_at = now
        else:
            self.hang_up(site, "there is nothing to say")

    def _kept(self, wire: Wire) -> bool:
        """Say whether a new connection is kept beside or instead of the one there is."""
        site = wire.member.site
        if self.revocations.is_revoked(wire.member):
            return False  # since the handshake
        old = self._wires.get(site)
        if old is not None:
            ours, theirs = wire.connection.theirs, old.connection.theirs
            same = ours is not None and theirs is not None and ours.incarnation == theirs.incarnation
            smaller = min(site, self.credential.member.site) == self.credential.member.site
            if same and old.connection.stage is Stage.READY and old.is_dialled == smaller:
                return False
            del self._wires[site]
            old.scope.cancel()
            self._listener.lost(site)
        self._wires[site] = wire
        self._resting.reached(site)
        if wire.connection.theirs is not None:
            self.doubles.came(site, wire.connection.theirs.incarnation, trio.current_time())
        _LOG.info("connected", extra={"site": site, "dialled": wire.is_dialled})
        self._listener.up(wire.member)
        return True

    def _gone(self, wire: Wire) -> None:
        if self._wires.get(wire.member.site) is wire:
            del self._wires[wire.member.site]
            _LOG.info("lost", extra={"site": wire.member.site})
            self._listener.lost(wire.member.site)
            if not self._wires:
                self._all_gone.set()

"""The directory's node of the DHT: kept open and joined, and used without any risk to the daemon.

Nothing but a bind error at the start and cancellation leaves it. If the node fails it is logged and opened again,
without the records that it held or kept for others; if something that was asked of it fails, or takes too long,
that is logged and means "nothing".

Its id is a hash of the network and the site, so a site that runs two nodes has them fight for one place in
everybody's table. If there is a previous DHT key that is still accepted, the node begins with it and changes to
the current one at once, since changing is how a node comes to accept two.
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import msgspec
import trio

from overlay.dht.contacts import ID_BYTES
from overlay.dht.dht_driver import Dht, open_dht
from overlay.identity.domains import digest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

    from overlay.dht import DhtSettings, Record
    from overlay.identity import Address
    from peer.daemon.directory_records import Notary

T = TypeVar("T")
_LOG: Final = logging.getLogger("distributary.directory")
_JOIN_S: Final = 30.0
# How soon to try again when nobody is known, and how often to visit the first nodes anyway: one that has lost
# everybody is not found by those who have each other. Higher: less traffic; lower: sooner together again.
_ALONE_S: Final = 2.0
_REJOIN_S: Final = 300.0
_REOPEN_S: Final = 1.0
_CLOSE_S: Final = 2.0


class Owner(Protocol):
    """Whose node it is."""

    def opened(self) -> None:
        """A node is open; what was kept with an earlier one is lost."""

    async def meet(self) -> None:
        """There are other nodes; raises nothing."""


class DirectoryNode:
    """A node, or none for a while; ``run`` runs it."""

    def __init__(self, owner: Owner, notary: Notary, bootstrap: Sequence[Address], settings: DhtSettings) -> None:
        self.dht: Dht | None = None
        self.joined = trio.Event()
        self.records_put = 0
        self._owner, self._notary = owner, notary
        self._bootstrap, self._settings = tuple(bootstrap), settings
        self._calls: set[trio.CancelScope] = set()
        self._idle = trio.Event()

    async def call(
        self, work: Callable[[Dht], Awaitable[T]], otherwise: T, *, what: str, name: str, limit_s: float
    ) -> T:
        """Do something with the node, within a time; whatever goes wrong is logged."""
        if self.dht is None:
            return otherwise
        reason = f"it took more than {limit_s} s, or the node was closed"
        with trio.move_on_after(limit_s) as scope:
            self._calls.add(scope)
            try:
                return await work(self.dht)
            except Exception as exc:  # the daemon goes on without the DHT, whatever it is
                reason = f"{type(exc).__name__}: {exc}"
            finally:
                self._calls.discard(scope)
                if not self._calls:
                    self._idle.set()
        _LOG.warning("failed", extra={"what": what, "record": name, "reason": reason})
        return otherwise

    async def put(self, dht: Dht, record: Record, chunks: Iterable[Record]) -> int:
        """Put a record, its chunks first; the fewest other nodes that hold one of them.

        The record is put even if nobody took a chunk: all of them are put again when there are other nodes.
        """
        records = (*chunks, record)
        self.records_put += len(records)
        return min([await dht.put(one) for one in records])

    async def get(self, dht: Dht, kind: str, name: str) -> tuple[Record, bytes] | None:
        """Find a record that may be believed, and its whole value."""
        record = await dht.get(kind, name)
        sealed = None if record is None else self._notary.read(record)
        if record is None or sealed is None:
            return None
        value: bytes | None = sealed.value
        for size in reversed(sealed.sizes):
            if value is not None:
                value = await dht.get_whole(msgspec.structs.replace(record, payload=value, whole_bytes=size))
        return None if value is None else (record, value)

    async def run(
        self, host: str, port: int, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Run a node until cancelled, and another if it fails; ``OSError`` only before the first has started."""
        is_first = True
        while True:
            try:
                async with self._opened(host, port) as dht:
                    port = dht.address[1]
                    if is_first:
                        task_status.started()
                    is_first = False
                    await self._stay_joined(dht)
            except Exception as exc:  # the supervisor of the node
                if is_first:
                    raise
                _LOG.error("node failed", extra={"reason": f"{type(exc).__name__}: {exc}"})
            await trio.sleep(_REOPEN_S)

    @asynccontextmanager
    async def _opened(self, host: str, port: int) -> AsyncIterator[Dht]:
        credential = self._notary.credential
        keys, member = credential.settings.dht_keys, credential.member
        before = None if keys.previous is None else keys.accepted(keys.previous.number, datetime.now(UTC))
        async with open_dht(
            (before or keys.current).secret, self._notary.verify, host=host, port=port,
            node_id=digest("dht node", member.network.encode(), member.site.encode())[:ID_BYTES],
            settings=self._settings, renew=self._notary.renew,
        ) as dht:  # fmt: skip
            dht.rotate(keys.current.secret)
            self.dht = dht
            self._owner.opened()
            try:
                yield dht
            finally:
                self.dht = None
                await self._end_calls()

    async def _end_calls(self) -> None:
        """End what others do with the node: once its loop is closed, they would wait for ever."""
        self._idle = trio.Event()
        for scope in self._calls:
            scope.cancel()
        if self._calls:
            with trio.move_on_after(_CLOSE_S, shield=True):
                await self._idle.wait()

    async def _stay_joined(self, dht: Dht) -> None:
        while True:
            reached = await self.call(self._join, 0, what="join", name="", limit_s=_JOIN_S)
            if dht.statistics.peers:
                await self._owner.meet()
            if (reached or not self._bootstrap) and not self.joined.is_set():
                _LOG.info("joined", extra={"reached": reached, "port": dht.address[1]})
                self.joined.set()
            await trio.sleep(_REJOIN_S if dht.statistics.peers else _ALONE_S)

    async def _join(self, dht: Dht) -> int:
        family = trio.socket.AF_INET6 if ":" in dht.address[0] else trio.socket.AF_INET
        found: list[tuple[str, int]] = []
        for address in self._bootstrap:
            try:
                told = await trio.socket.getaddrinfo(address.host, address.port, family, trio.socket.SOCK_DGRAM)
            except OSError as exc:
                _LOG.warning("not resolved", extra={"address": str(address), "reason": str(exc)})
                continue
            found += [(str(one[4][0]), int(one[4][1])) for one in told[:1]]
        return await dht.bootstrap(one for one in found if one != dht.address)

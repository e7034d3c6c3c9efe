"""The spaces of a network, at the source: their catalogs on disk, and their frames on the links.

Every space has an ``Origin``. What it must not forget is written before anything is sent that follows from it, and
before users are told (``WrittenFirst``). Machines take part when they are first heard in a space.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec
import trio

from overlay.content import frames
from overlay.content.errors import ContentError, MalformedContent
from overlay.content.journal import decode_record, encode_record
from overlay.content.origin import Origin
from overlay.identity import Role
from overlay.wire.frames import Content
from peer.daemon import requests
from peer.daemon.declared import Declared, decode_declared, encode_declared
from peer.daemon.questions import NoAnswer
from peer.daemon.written_first import WrittenFirst
from peer.storage.space_store import SpaceStore
from rewriting.errors import RewritingError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from overlay.identity import Member
    from overlay.wire.frames import Frame
    from rewriting.filters import Space

_LOG: Final = logging.getLogger("distributary.spaces")
_TICK_S: Final = 0.25
_BALANCE_S: Final = 5.0
"""So often something moves, where that helps; each move is loaded from the catalog."""
_KEYS: Final = 100_000
"""The keys of so many messages are remembered, so that a publication that is tried again is the same one."""
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class SpaceSubscribe(msgspec.Struct, frozen=True):
    """Subscribe by a filter in a space; again: the same one."""

    space: _Name
    subscription: _Name
    filter: Annotated[str, msgspec.Meta(min_length=1, max_length=10_000)]


class SpacePublish(msgspec.Struct, frozen=True):
    """Publish a message in a space; ``payload``: which attributes are bulky."""

    space: _Name
    key: _Name
    attributes: Annotated[dict[_Name, str], msgspec.Meta(max_length=256)]
    payload: Annotated[list[_Name], msgspec.Meta(max_length=256)] = []


class SpaceOf(msgspec.Struct, frozen=True):
    """A subscription in a space."""

    space: _Name
    subscription: _Name


class _Write(NamedTuple):
    """A record of a space, or a key under which something was published."""

    record: tuple[str, bytes] | None = None
    key: tuple[str, str, str, int] | None = None


class SourceSpaces:
    """All spaces; ``run`` keeps them going. ``tell``: lets a connected machine know something."""

    def __init__(
        self, home: Path, site: str, send: Callable[[str, Frame], bool], tell: Callable[[str, str, Any], None]
    ) -> None:
        self._site, self._send, self._tell = site, send, tell
        self._store = SpaceStore(home / "spaces.sqlite")
        self._first = WrittenFirst(self._write)
        self._connected: dict[str, int] = {}
        self.origins: dict[str, Origin] = {}
        self._declared: dict[str, Declared] = {}

    def _restore(self) -> None:
        for name, body in self._store.spaces().items():
            declared = self._declared[name] = decode_declared(body)
            origin = self.origins[name] = Origin(self._site, declared.space)
            origin.restore(map(decode_record, self._store.records(declared.key)), trio.current_time())
            records = [encode_record(record) for record in origin.snapshot()]
            self._store.replace(declared.key, records, origin.number - _KEYS)

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep time, and write, until cancelled; started when everything is as it was."""
        self._restore()
        task_status.started()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._first.run)
            balanced_at = trio.current_time()
            while True:
                for name, origin in self.origins.items():
                    self._out(name, origin.tick(trio.current_time()))
                if trio.current_time() - balanced_at >= _BALANCE_S:
                    balanced_at = trio.current_time()
                    self.rebalance()
                await trio.sleep(_TICK_S)

    def rebalance(self) -> None:
        """Let a machine with much to do give something away, in every space."""
        for name, origin in self.origins.items():
            self._out(name, origin.rebalance(trio.current_time()))

    # What the operator and machines ask for.

    def create(self, space: Space) -> dict[str, Any]:
        """Declare a space; the same again changes nothing."""
        known = self._declared.get(space.name)
        if known is not None and known.space != space:
            raise NoAnswer(f"there is another space {space.name}; choose another name")
        if known is None:
            declared = self._declared[space.name] = Declared(space, time.time_ns())
            body = encode_declared(declared)
            self._store.put_space(space.name, body)
            self.origins[space.name] = Origin(self._site, space)
            for site in self._connected:
                self._tell(site, "spaces", [body])
        return {"space": space.name, "is_new": known is None}

    def listed(self) -> list[dict[str, Any]]:
        """Say how the spaces stand."""
        return [
            {
                "space": name,
                "dimensions": [f"{d.attribute} {d.kind.value}" for d in origin.space.dimensions],
                "zones": {site: len(zones) for site, zones in origin.catalog.history.now.owners().items()},
                "subscriptions": len(origin.catalog.live),
                "number": origin.number,
                "complete": origin.frontier,
            }
            for name, origin in sorted(self.origins.items())
        ]

    async def answer(self, member: Member, what: str, body: bytes) -> Any:
        """Answer a machine's question about spaces."""
        try:
            return await self._answer(member, what, body)
        except (RewritingError, ContentError) as exc:
            raise NoAnswer(str(exc)) from exc

    async def _answer(self, member: Member, what: str, body: bytes) -> Any:
        match what:
            case "spaces":
                return [encode_declared(declared) for declared in self._declared.values()]
            case "space_subscribe":
                member.require(Role.SUBSCRIBER)
                asked = requests.read(body, SpaceSubscribe)
                origin = self._origin(asked.space)
                entry = origin.catalog.live.get(asked.subscription)
                if entry is not None and entry.site != member.site:
                    raise NoAnswer(f"{asked.subscription} is a subscription of another machine")
                start, sends = origin.subscribe(asked.subscription, member.site, asked.filter, trio.current_time())
                await self._done(asked.space, sends)
                return {"start": start, "space": self._declared[asked.space].key}
            case "space_unsubscribe":
                about = requests.read(body, SpaceOf)
                space = about.space.partition("@")[0]
                origin = self._origin(space)
                entry = origin.catalog.live.get(about.subscription)
                if entry is None or entry.site != member.site:
                    raise NoAnswer(f"{about.subscription} is not a subscription of {member.site}")
                end, sends = origin.unsubscribe(about.subscription, trio.current_time())
                await self._done(space, sends)
                return {"subscription": about.subscription, "end": end}
            case "space_publish":
                member.require(Role.PUBLISHER)
                return await self.publish(member.site, requests.read(body, SpacePublish))
            case _:
                raise NoAnswer(f"nobody here knows about {what[:50]}")

    async def publish(self, publisher: str, asked: SpacePublish) -> dict[str, Any]:
        """Publish a message; return its number once it is durable."""
        origin = self._origin(asked.space)
        if self._first.is_full:
            raise NoAnswer("the source's disk does not keep up; try again later")
        space = self._declared[asked.space].key
        before = self._store.published(space, publisher, asked.key)
        if before is not None:
            return {"number": before, "is_new": False}
        number, sends = origin.publish(asked.attributes, trio.current_time(), payload=asked.payload)
        key = space, publisher, asked.key, number
        await self._done(asked.space, sends, _Write(key=key))
        return {"number": number, "is_new": True}

    def _origin(self, space: str) -> Origin:
        try:
            return self.origins[space]
        except KeyError:
            raise NoAnswer(
                f"there is no space {space}; 'distributary space list' at the source lists them"
            ) from None

    # Links.

    def up(self, site: str) -> None:
        """A machine is connected: over this link no payload has gone yet."""
        self._connected[site] = self._connected.get(site, 0) + 1
        for origin in self.origins.values():
            origin.link(site, self._connected[site])

    def heard(self, member: Member, frame: Content) -> None:
        """A machine says something about a space."""
        space = frame.space.partition("@")[0]
        origin = self.origins.get(space)
        if origin is None or self._declared[space].key != frame.space or self._first.is_full:
            return
        try:
            said, now = frames.decode_untrusted(frame.body), trio.current_time()
        except MalformedContent as exc:
            _LOG.warning("refused", extra={"site": member.site, "reason": str(exc)})
            return
        if isinstance(said, frames.Alive) and Role.SUBSCRIBER in member.roles:
            machine = origin.machines.get(member.site)
            if machine is None or not machine.is_node:
                self._out(space, origin.join(member.site, now))
        self._out(space, origin.handle(member.site, said, now))

    def _out(self, space: str, sends: list[tuple[str, frames.Frame]], *more: _Write) -> None:
        """Send, once everything that it follows from is written."""
        key = self._declared[space].key
        records = [_Write((key, encode_record(record))) for record in self.origins[space].take_journal()]
        if sends or records or more:
            self._first.put([*records, *more], lambda: self._put_out(key, sends))

    async def _done(self, space: str, sends: list[tuple[str, frames.Frame]], *more: _Write) -> None:
        self._out(space, sends, *more)
        await self._first.written([])

    def _put_out(self, key: str, sends: list[tuple[str, frames.Frame]]) -> None:
        for site, frame in sends:
            self._send(site, Content(key, frames.encode(frame)))  # if it is not there, it is asked again later

    def _write(self, writes: list[_Write]) -> None:
        records = [one.record for one in writes if one.record is not None]
        self._store.append(records, [one.key for one in writes if one.key is not None])

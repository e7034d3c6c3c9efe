"""The spaces of a network, at the source: their catalogs on disk, and their frames on the links.

Every space has an ``Origin``. Messages, subscriptions and their ends are entries of the source's log: checked,
numbered and durable there, then entered in the space, in the order of their numbers. A message is a document with
attributes only besides, so planned feeds carry it too. What comes of entries (zones, who has what) is written
before anything is sent that follows from it (``WrittenFirst``). A source that starts again reads both, so what was
in the log when it ended goes out. Machines take part when they are first heard in a space.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import trio

from overlay.content import frames
from overlay.content.errors import ContentError, MalformedContent
from overlay.content.journal import Published, Subscribed, Unsubscribed, decode_entry, decode_record, encode_record
from overlay.content.origin import Origin
from overlay.identity import Role
from overlay.wire.frames import Content
from peer.daemon import requests
from peer.daemon.beats import Beat
from peer.daemon.declared import Declared, decode_declared, encode_declared, name_of
from peer.daemon.questions import NoAnswer
from peer.daemon.written_first import WrittenFirst
from peer.daemon.zones_in_directory import ZonePushing
from peer.storage.log_values import NewDocument, Refused, SpaceEntry
from peer.storage.space_records import Snapshot
from rewriting.errors import RewritingError
from rewriting.filters import message_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from overlay.content.journal import Entered, Record
    from overlay.identity import Member
    from overlay.wire.frames import Frame
    from overlay.zones.zone_map import History
    from peer.daemon.committing import Committer
    from peer.daemon.directory import Directory
    from peer.daemon.one_writer import OneWriter
    from peer.daemon.publications import Publications
    from peer.storage.log_values import Appended, NewEntry
    from peer.storage.source_log import SourceLog
    from peer.storage.space_records import SpaceRecord
    from rewriting.filters import Space

_LOG: Final = logging.getLogger("distributary.spaces")
_TICK_S: Final = 0.25
_IDLE_S: Final = 1.0
_BALANCE_S: Final = 5.0
"""So often something moves, where that helps; each move is loaded from the catalog."""
SNAPSHOT_AFTER: Final = 10_000
SNAPSHOT_SHARE: Final = 4
"""A snapshot is written after so many records, and as many more as this times what the last one had: more costs
disk, less costs time."""
_MESSAGE: Final = "message"
"""What messages are called as documents."""
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
_Filter = Annotated[str, msgspec.Meta(min_length=1, max_length=10_000)]


class SpaceSubscribe(msgspec.Struct, frozen=True):
    """Subscribe by a filter in a space; again: the same one."""

    space: _Name
    subscription: _Name
    filter: _Filter


class SpacePublish(msgspec.Struct, frozen=True):
    """Publish a message in a space; ``payload``: which attributes are bulky."""

    space: _Name
    key: _Name
    attributes: Annotated[dict[_Name, str], msgspec.Meta(max_length=256)]
    payload: Annotated[list[_Name], msgspec.Meta(max_length=256)] = []


class SpaceAnnounce(msgspec.Struct, frozen=True):
    """Subscriptions of mine in an earlier generation of a space: those that live, with their filters, and those
    that have ended."""

    space: _Name
    live: Annotated[dict[_Name, _Filter], msgspec.Meta(max_length=100_000)]
    ended: Annotated[list[_Name], msgspec.Meta(max_length=100_000)]


class SpaceOf(msgspec.Struct, frozen=True):
    """A subscription in a space."""

    space: _Name
    subscription: _Name


class SourceSpaces:
    """All spaces; ``run`` keeps them going. ``tell``: lets a connected machine know something."""

    def __init__(
        self, log: SourceLog, alone: OneWriter, site: str, publications: Publications,
        committer: Committer[NewEntry, Appended | Refused], send: Callable[[str, Frame], bool],
        tell: Callable[[str, str, Any], None],
    ) -> None:  # fmt: skip
        self._site, self._publications, self._committer = site, publications, committer
        self._records, self._alone, self._send, self._tell = log.spaces, alone, send, tell
        self._last: Callable[[], int] = lambda: log.last
        self._first: WrittenFirst[tuple[str, bytes] | Snapshot] = WrittenFirst(
            lambda records: alone(self._records.append, records)
        )
        self._turn = trio.Lock()
        """One change of subscriptions at a time: what was checked holds when it is entered."""
        self._connected: dict[str, int] = {}
        self.zones = ZonePushing()
        self._grown: dict[str, int] = {}
        """How many records of a space were written since its snapshot, less a share of what that has."""
        self.origins: dict[str, Origin] = {}
        self._declared: dict[str, Declared] = {}

    def restore(self) -> None:
        """Become what the log says, before anybody is heard."""
        for name, body in self._records.spaces().items():
            declared = self._declared[name] = decode_declared(body)
            origin = self.origins[name] = Origin(self._site, declared.space)
            origin.restore(map(_record, self._records.records(declared.key)), trio.current_time())
            self._alone(self._records.replace, self._snapshot(name))
            self.zones.put(declared.key, origin.catalog.history, origin.catalog.version)

    def _snapshot(self, space: str) -> Snapshot:
        origin = self.origins[space]
        records = [encode_record(record) for record in origin.snapshot()]
        self._grown[space] = -SNAPSHOT_SHARE * len(records)
        return Snapshot(self._declared[space].key, records, origin.number)

    def _keep_small(self) -> None:
        """Put a snapshot in place of records that have become many."""
        for name in [name for name, count in self._grown.items() if count >= SNAPSHOT_AFTER]:
            self._first.put([self._snapshot(name)], lambda: None)

    async def run(self, directory: Directory) -> None:
        """Keep time, and write, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._first.run)
            nursery.start_soon(self.zones.run, directory)
            balanced_at, beat = trio.current_time(), Beat()
            while True:
                for name, origin in self.origins.items():
                    self._out(name, origin.tick(trio.current_time()))
                if trio.current_time() - balanced_at >= _BALANCE_S:
                    balanced_at = trio.current_time()
                    self.rebalance()
                self._keep_small()
                await beat.rest(_TICK_S if self.origins else _IDLE_S)

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
            declared = Declared(space, time.time_ns(), self._last())
            body = encode_declared(declared)
            self._alone(self._records.put_space, space.name, body)
            self._declared[space.name], self.origins[space.name] = declared, Origin(self._site, space)
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
                return await self._subscribe(member.site, requests.read(body, SpaceSubscribe))
            case "space_unsubscribe":
                return await self._unsubscribe(member.site, requests.read(body, SpaceOf))
            case "space_announce":
                member.require(Role.SUBSCRIBER)
                return await self._announce(member.site, requests.read(body, SpaceAnnounce))
            case "space_publish":
                member.require(Role.PUBLISHER)
                return await self.publish(member.site, requests.read(body, SpacePublish))
            case _:
                raise NoAnswer(f"nobody here knows about {what[:50]}")

    async def publish(self, publisher: str, asked: SpacePublish) -> dict[str, Any]:
        """Publish a message; return its number once it is durable."""
        entry = Published(0, asked.attributes, tuple(sorted(asked.payload)))
        self._origin(asked.space).check(entry)
        body = message_bytes(asked.attributes)
        return await self._publications.publish(
            NewDocument(publisher, asked.key, _MESSAGE, body, self._entry(asked.space, entry))
        )

    async def _subscribe(self, site: str, asked: SpaceSubscribe) -> dict[str, Any]:
        origin = self._origin(asked.space)
        async with self._turn:
            entry = origin.catalog.live.get(asked.subscription)
            if entry is not None and entry.site != site:
                raise NoAnswer(f"{asked.subscription} is a subscription of another machine")
            key = self._declared[asked.space].key
            if entry is None and self._records.entered(key, f"subscribe {asked.subscription}") is not None:
                raise NoAnswer(f"{asked.subscription} has ended; take a new name")
            start = 0 if entry is None else entry.start
            if entry is None:
                start = await self._commit(asked.space, Subscribed(0, asked.subscription, site, asked.filter))
        return {"start": start, "space": key}

    async def _unsubscribe(self, site: str, asked: SpaceOf) -> dict[str, Any]:
        """End a subscription; asked again, it has ended where it did."""
        space = name_of(asked.space)
        origin = self._origin(space)
        async with self._turn:
            entry = origin.catalog.live.get(asked.subscription)
            key = self._declared[space].key
            end = self._records.entered(key, f"unsubscribe {asked.subscription}")
            if end is None and (entry is None or entry.site != site):
                raise NoAnswer(f"{asked.subscription} is not a subscription of {site}")
            if end is None:
                end = await self._commit(space, Unsubscribed(0, asked.subscription))
        return {"subscription": asked.subscription, "end": end}

    async def _announce(self, site: str, asked: SpaceAnnounce) -> dict[str, int]:
        """Take over what a machine has since before this generation; say where its subscriptions start."""
        space = name_of(asked.space)
        self._origin(space)
        if self._declared[space].key != asked.space:
            raise NoAnswer(f"{asked.space} is not the space {space} that there is now")
        starts = {}
        for name, wanted in asked.live.items():
            starts[name] = (await self._subscribe(site, SpaceSubscribe(space, name, wanted)))["start"]
        live = self.origins[space].catalog.live
        for name in asked.ended:
            if name in live and live[name].site == site:
                await self._unsubscribe(site, SpaceOf(asked.space, name))
        return starts

    async def _commit(self, space: str, entry: Subscribed | Unsubscribed) -> int:
        """Write a change to the log, and return its number."""
        self._origin(space).check(entry)
        what = "subscribe" if isinstance(entry, Subscribed) else "unsubscribe"
        done = await self._committer.commit(self._entry(space, entry, f"{what} {entry.subscription}"))
        if isinstance(done, Refused):
            raise NoAnswer(done.reason)
        return done.number

    def _entry(self, space: str, entry: Entered, key: str = "") -> SpaceEntry:
        if self._first.is_full:
            raise NoAnswer("the source's disk does not keep up; try again later")
        return SpaceEntry(self._declared[space].key, encode_record(entry), key)

    def entered(self, number: int, entry: NewEntry) -> None:
        """An entry of the log is durable: if it is one of a space, it is entered there."""
        there = entry.entry if isinstance(entry, NewDocument) else entry
        if isinstance(there, SpaceEntry):
            self._grown[there.name] = self._grown.get(there.name, 0) + 1
            sends = self.origins[there.name].enter(decode_entry(there.body, number), trio.current_time())
            self._out(there.name, sends)

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
        space = name_of(frame.space)
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

    def _out(self, space: str, sends: list[tuple[str, frames.Frame]]) -> None:
        """Send, once everything that it follows from is written."""
        key = self._declared[space].key
        records: list[tuple[str, bytes] | Snapshot] = [
            (key, encode_record(record)) for record in self.origins[space].take_journal()
        ]
        self._grown[space] = self._grown.get(space, 0) + len(records)
        if sends or records:
            history = self.origins[space].catalog.history
            version = history.now.version
            self._first.put(records, lambda: self._put_out(key, sends, history, version))

    def _put_out(self, key: str, sends: list[tuple[str, frames.Frame]], history: History, version: int) -> None:
        self.zones.put(key, history, version)
        for site, frame in sends:
            self._send(site, Content(key, frames.encode(frame)))  # if it is not there, it is asked again later


def _record(kept: SpaceRecord) -> Record:
    return decode_record(kept.body) if kept.number is None else decode_entry(kept.body, kept.number)

"""The spaces in which a subscriber's machine takes part: its nodes on the links, and its messages on disk.

The source says which spaces there are. In each of them the machine has a ``ContentNode``; what it is given as a
subscriber is written before it is acknowledged, each message once per subscription. Frames for a machine that is
not connected wait, up to a limit, until it has been dialled; what is lost the protocol asks for again.

A source that was restored has its spaces in a new generation (``declared``). The machine begins anew with the map
then, and announces its subscriptions: those that the source has forgotten start again, and each has a gap from
where it was complete to where it goes on. Until that is done it is read as it was.
"""

from __future__ import annotations

import logging
import secrets
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import trio

from overlay.content import frames
from overlay.content.errors import MalformedContent
from overlay.content.node import ContentNode
from overlay.content.quick import QuickMatching
from overlay.payloads.desk import Desk
from overlay.wire.frames import Content
from peer.daemon.beats import Beat
from peer.daemon.cursors import Cursors
from peer.daemon.declared import decode_declared, name_of
from peer.daemon.one_writer import OneWriter
from peer.daemon.questions import NoAnswer
from peer.daemon.space_messages import SpaceReading
from peer.daemon.written_first import WrittenFirst
from peer.daemon.zones_in_directory import ZoneFinding
from peer.storage.errors import StorageError
from peer.storage.space_store import SpaceStore, SpaceSubscription

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from overlay.identity import Member
    from overlay.wire.frames import Frame
    from overlay.zones.zone_map import ZoneMap
    from peer.daemon.declared import Declared
    from peer.daemon.directory import Directory

_LOG: Final = logging.getLogger("distributary.spaces")
_TICK_S: Final = 0.25
_IDLE_S: Final = 1.0
_LEARN_S: Final = 60.0
"""So often a machine asks which spaces there are; it is told of new ones, and asks when it meets the source."""
_LEARN_AGAIN_S: Final = 5.0
_MOST_WAITING: Final = 1000
_TRIM_S: Final = 60.0
MOST_MESSAGES: Final = 100_000
"""So many messages of a subscription are kept, the newest ones."""
MOST_UNREAD: Final = 1_000_000
"""So many are kept while a cursor has yet to read them."""
REPOSITORY_BYTES: Final = 16 << 20
"""How much of others' payloads a machine keeps for a space; less fetches more often."""


class _Write(NamedTuple):
    """A message for a subscription, or up to where a space is complete; or a subscription to be trimmed."""

    message: tuple[str, int, bytes] | None = None
    complete: tuple[str, int, int] | None = None
    trim: str | None = None


class PeerSpaces:
    """All spaces of a machine; ``run`` keeps them going. ``ask_source``: asks the source something."""

    def __init__(
        self, home: Path, site: str, source: str, send: Callable[[str, Frame], bool],
        ask_source: Callable[[str, Any], Awaitable[Any]],
    ) -> None:  # fmt: skip
        self._site, self._source, self._send, self._ask = site, source, send, ask_source
        self._store = SpaceStore(home / "spaces.sqlite")
        self._alone = OneWriter()
        self._first: WrittenFirst[_Write] = WrittenFirst(lambda writes: self._alone(self._write, writes))
        self._incarnation = secrets.randbits(60)
        self._links: dict[str, int] = {}
        self._learn_now = trio.Event()
        """The source was met, or has told of a space."""
        self._waiting: dict[str, list[Content]] = {}
        self._complete: dict[str, tuple[int, int]] = {}
        self.subscriptions = self._store.subscriptions()
        self.reading = SpaceReading(self._store, self.subscriptions, self.complete)
        self.cursors = Cursors(self._store, self.reading, self._alone)
        self._names = set(self.subscriptions)
        self.nodes: dict[str, ContentNode] = {}
        self.zones = ZoneFinding(self._found)
        self.told(list(self._store.spaces().values()))

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    async def run(self, directory: Directory) -> None:
        """Keep time, and write, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._first.run)
            nursery.start_soon(self.zones.run, directory)
            nursery.start_soon(self._learn)
            nursery.start_soon(self._trim)
            beat = Beat()
            while True:
                for name, node in list(self.nodes.items()):
                    self._out(name, node.tick(trio.current_time()))
                await beat.rest(_TICK_S if self.nodes else _IDLE_S)

    async def _learn(self) -> None:
        """Ask the source which spaces there are, now and then: one may have been made while it was not heard."""
        while True:
            self._learn_now, pause = trio.Event(), _LEARN_S
            try:
                bodies = await self._ask("spaces", None)
                self.told(bodies)
                spaces = {one.space.name: one for one in map(decode_declared, bodies)}
                for key in [key for key in self.nodes if name_of(key) not in spaces]:
                    del self.nodes[key]  # the source does not have it any more
                for declared in spaces.values():
                    await self._announce(declared)
            except (NoAnswer, StorageError) as exc:
                _LOG.info("spaces not learnt", extra={"reason": str(exc)})
                pause = min(_LEARN_AGAIN_S, _LEARN_S)
            with trio.move_on_after(pause):
                await self._learn_now.wait()

    async def _trim(self) -> None:
        """Keep the newest messages of every subscription only."""
        while True:
            await trio.sleep(_TRIM_S)
            for name in list(self.subscriptions):
                await self._first.written([_Write(trim=name)])

    def told(self, bodies: list[bytes]) -> None:
        """The source says which spaces there are."""
        for body in bodies:
            declared = decode_declared(body)
            name, key = declared.space.name, declared.key
            others = [known for known in self.nodes if name_of(known) == name]
            if all(int(known.partition("@")[2]) < declared.generation for known in others):
                stale = {one.space for one in self._stale(declared)}
                self._alone(self._store.put_space, name, body, key, [*others, *sorted(stale)])
                for known in others:  # the source was restored, or has lost it and made another one
                    del self.nodes[known]
                self._complete[key] = self._store.complete(key)
                self._learn_now.set()  # what is subscribed in an earlier one is announced
                self.nodes[key] = ContentNode(
                    self._site, self._source, declared.space, incarnation=self._incarnation,
                    make_matcher=QuickMatching, desk=Desk(self._site, self._source, cap_bytes=REPOSITORY_BYTES),
                )  # fmt: skip

    def _stale(self, declared: Declared) -> list[SpaceSubscription]:
        """List the subscriptions that are not known to be in this generation of a space."""
        name, key = declared.space.name, declared.key
        return [one for one in self.subscriptions.values() if name_of(one.space) == name and one.space != key]

    async def _announce(self, declared: Declared) -> None:
        """Bring the subscriptions of earlier generations of a space into this one."""
        if declared.key not in self.nodes or not (stale := self._stale(declared)):
            return
        live = {one.name: one.filter for one in stale if one.end is None}
        ended = [one.name for one in stale if one.end is not None]
        starts = await self._ask("space_announce", {"space": declared.key, "live": live, "ended": ended})
        after, gaps = [], []
        for one in stale:
            had = max(self._store.complete(one.space)[0], one.start)
            start = starts.get(one.name, one.start)
            goes_on = max(declared.begins, start) if one.end is None else one.end
            gaps += [(one.name, had, goes_on)] if had < goes_on else []
            after.append(one._replace(space=declared.key))
            _LOG.warning(
                "announced again", extra={"subscription": one.name, "space": declared.key, "gap": goes_on}
            )
        self._alone(self._store.put_subscriptions, after, gaps)
        self.subscriptions |= {one.name: one for one in after}
        self.reading.tell()

    # What users ask for.

    async def subscribe(self, space: str, wanted: str) -> dict[str, Any]:
        """Subscribe by a filter in a space."""
        name = f"c-{secrets.token_hex(8)}"
        self._names.add(name)  # messages may come before the answer
        try:
            told = await self._ask("space_subscribe", {"space": space, "subscription": name, "filter": wanted})
        except BaseException:
            self._names.discard(name)  # if the source has it all the same, nobody reads or trims what comes of it
            raise
        self.subscriptions[name] = one = SpaceSubscription(name, told["space"], wanted, told["start"], None)
        self._alone(self._store.put_subscriptions, [one])
        return {"subscription": name, "start": told["start"], "space": told["space"]}

    async def unsubscribe(self, name: str) -> dict[str, Any]:
        """End a subscription in a space."""
        one = self.subscriptions[name]
        if one.end is not None:
            return {"subscription": name, "end": one.end}
        if one.space not in self.nodes:
            raise NoAnswer(f"the source does not have the space of {name}, or not yet; try again later")
        told: dict[str, Any] = await self._ask("space_unsubscribe", {"space": one.space, "subscription": name})
        self.subscriptions[name] = one._replace(end=told["end"])
        self._alone(self._store.put_subscriptions, [self.subscriptions[name]])
        self.reading.tell()
        return told

    def complete(self, space: str) -> tuple[int, int]:
        """Return up to where a space is complete here, and up to where messages were given up."""
        return self._complete.get(space) or self._store.complete(space)

    # Links.

    def up(self, site: str) -> None:
        """A machine is connected: a new link, over which no payload has gone yet."""
        if site == self._source:
            self._learn_now.set()
        self._links[site] = self._links.get(site, 0) + 1
        for node in self.nodes.values():
            if node.desk is not None:
                node.desk.link(site, self._links[site])
        for frame in self._waiting.pop(site, []):
            self._send(site, frame)

    def lost(self, site: str) -> None:
        """A machine is not there."""
        self._waiting.pop(site, None)

    def heard(self, member: Member, frame: Content) -> None:
        """Another machine says something about a space."""
        try:
            self._take(member.site, frame.space, frames.decode_untrusted(frame.body))
        except MalformedContent as exc:
            _LOG.warning("refused", extra={"site": member.site, "reason": str(exc)})

    def _take(self, sender: str, space: str, frame: frames.Frame) -> None:
        node = self.nodes.get(space)
        if node is None or self._first.is_full:
            return
        if isinstance(frame, frames.Deliver):
            is_late = frame.number <= self._complete[space][0]
            names = () if is_late else self._names.intersection(frame.subscriptions)
            body = msgspec.msgpack.encode(frame.attributes)
            items = [_Write((name, frame.number, body)) for name in sorted(names)]
            answer = frames.Delivered(frame.number, frame.prefix)
            self._first.put(items, lambda: self._out(space, [(sender, answer)]))
            return
        if isinstance(frame, frames.Seen) and sender == self._source:
            upto, gap = self._complete[space]
            if (frame.frontier, frame.gap) > (upto, gap):
                found = max(upto, frame.frontier), max(gap, frame.gap)
                self._first.put([_Write(complete=(space, *found))], lambda: self._completed(space, found))
        self._out(space, node.handle(sender, frame, trio.current_time()))

    def _completed(self, space: str, found: tuple[int, int]) -> None:
        self._complete[space] = found
        self.reading.tell()

    def _out(self, space: str, sends: list[tuple[str, frames.Frame]]) -> None:
        for site, frame in sends:
            if site == self._site:
                self._take(site, space, frame)
                continue
            content = Content(space, frames.encode(frame))
            if not self._send(site, content):
                if isinstance(frame, frames.AskMap):
                    self.zones.want(space, self.nodes[space].space.axes, frame.version)
                waiting = self._waiting.setdefault(site, [])
                if len(waiting) < _MOST_WAITING:
                    waiting.append(content)

    def _found(self, space: str, found: ZoneMap) -> None:
        """The map of a space was found in the directory."""
        if space in self.nodes:
            self._out(space, self.nodes[space].keeper.adopt(found, trio.current_time()))

    def _write(self, writes: list[_Write]) -> None:
        messages = [one.message for one in writes if one.message is not None]
        self._store.receive(messages, [one.complete for one in writes if one.complete is not None])
        for one in writes:
            if one.trim is not None:
                self._store.trim(one.trim, MOST_MESSAGES, MOST_UNREAD)

    def standing(self) -> list[dict[str, Any]]:
        """Say how the subscriptions in spaces stand."""
        return [
            {
                "subscription": name,
                "space": name_of(one.space),
                "filter": one.filter,
                "complete": self._complete.get(one.space, (0, 0))[0],
                "is_lost": one.space not in self.nodes,
            }
            for name, one in sorted(self.subscriptions.items())
            if one.end is None
        ]

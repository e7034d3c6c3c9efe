"""The daemon of a subscriber's machine: its host on real links, with its results in SQLite.

It keeps a connection to the source, which tells it how its subscriptions are fed; everything else follows from
what the host asks for. Stopping and starting again, also by a crash, goes on from what was committed.
"""

from __future__ import annotations

import logging
import random
import secrets
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec
import trio

from overlay.feeds.receiving import WINDOW
from overlay.identity import Address, Credential, Role
from overlay.wire.connection import Patience
from overlay.wire.frames import Alive, Answer, Ask, Bye, Calm, Content, Hello, Open
from peer.daemon.alone import look_while_alone
from peer.daemon.asking_source import AskingSource
from peer.daemon.beats import Beat
from peer.daemon.cursors import Cursors
from peer.daemon.directory import Directory, open_directory
from peer.daemon.dismissing import REVOKED
from peer.daemon.feed_events import FeedEvents
from peer.daemon.feed_refusals import FeedRefusals
from peer.daemon.hosted import HostedHere
from peer.daemon.leaving import take_leave
from peer.daemon.links import Links
from peer.daemon.membership import Membership
from peer.daemon.numbering import keep_numbered
from peer.daemon.one_writer import OneWriter
from peer.daemon.own_identity import OwnIdentity, ending
from peer.daemon.peer_spaces import PeerSpaces
from peer.daemon.permits import Permits
from peer.daemon.questions import NoAnswer, Questions, answer, refuse
from peer.daemon.rates import Rates
from peer.daemon.reading import Reading
from peer.daemon.relaying import Relaying
from peer.daemon.remembered import Remembered
from peer.daemon.resigning import check_not_left
from peer.daemon.revocation_news import NEWS
from peer.daemon.standing import lag_of, standing_of
from peer.daemon.storing import Storing
from peer.daemon.tracing import traced_here
from peer.daemon.whereabouts import Whereabouts
from peer.hosting.host import Host
from peer.hosting.results import DOCUMENTS
from peer.hosting.rows import write_columns
from peer.publication import too_large
from peer.storage.result_store import ResultStore
from peer.storage.result_values import ResultLimits
from peer.warm import warm_peer
from peer.webhooks.delivering import Webhooks

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence
    from pathlib import Path

    from overlay.feeds.items import Item
    from overlay.identity import Member
    from overlay.wire.frames import Frame, FromReceiver, FromSender
    from peer.hosting.history import Stretch
    from peer.storage.result_values import Followers
    from xmlmatch import Pattern

_LOG: Final = logging.getLogger("distributary.peer")
SOURCE: Final = "source"
"""The name of the source's machine, in every network."""
_SOON_S: Final = 0.01
_BEAT_S: Final = 0.25
_CALM_S: Final = 1.0
_SHUN_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class PeerSettings:
    """Where a peer listens, and how others reach it (where it listens, if not said); what it bears and keeps."""

    host: str = "127.0.0.1"
    port: int = 0
    addresses: tuple[Address, ...] = ()
    capacity: int | None = None
    limits: ResultLimits = field(default_factory=ResultLimits)
    patience: Patience = field(default_factory=Patience)
    window: int = WINDOW
    relay: str = "auto"


class PeerDaemon:
    """A subscriber's machine; ``opened`` runs it."""

    def __init__(self, home: Path, settings: PeerSettings) -> None:
        check_not_left(home)
        self.home = home
        self.identity = OwnIdentity(Credential.load(home / "identity"))
        self.identity.check_not_source()
        self.identity.check_not_ended()
        warm_peer()
        self.site = self.credential.member.site
        self.settings = settings
        self.store_file = ResultStore.open(home / "results.sqlite", limits=settings.limits)
        self.links = Links(
            self.credential, self, lambda site: self._whereabouts.find(site), patience=settings.patience,
            needs=lambda site: site == SOURCE or bool(self.spaces.nodes) or self.host.uses(site),
            feeds=lambda site: bool(self.spaces.nodes) or self.host.feeds(site),
        )  # fmt: skip
        self.questions = Questions(self.links.send)
        self.host = Host(self.site, SOURCE, self, random.Random(secrets.randbits(64)), window=settings.window)
        self.port = 0
        remembered = Remembered(home / "identity", self.credential.root)
        self._whereabouts = Whereabouts(self.identity, self.questions, remembered, SOURCE)
        self.directory: Directory | None = None
        self.permits = Permits(self.credential, lambda: self.links.revocations)
        self._refusals = FeedRefusals(self.links.refused)
        self._alone = OneWriter()
        self.rates = Rates()
        self._events = FeedEvents(SOURCE)
        self.reading = Reading(self.store_file, self._hurry)
        self.storing = Storing(
            self.store_file, self._alone, self.host, self.reading.tell,
            lambda: self.reading.was_awaited(trio.current_time()),
        )  # fmt: skip
        self._committer = self.storing.committer
        self.cursors = Cursors(self.store_file, self.reading, self._alone)
        self.webhooks = Webhooks(home, self.reading, self.cursors)
        self.hosted = HostedHere(self.site, self.store_file, self.permits, self.host, self._committer)
        self.membership = Membership(
            self.identity, self.links, self.questions, self.hosted, self, remembered=remembered, source=SOURCE
        )
        self.ask_source = AskingSource(SOURCE, self.questions, self.membership, lambda: self.connected).ask
        self.relaying = Relaying(
            settings.relay, self.host.hosted, self._subscribe_relay, self.unsubscribe, self.ask_source
        )
        self.spaces = PeerSpaces(home, self.site, SOURCE, self.links.send, self.ask_source)
        self._nursery: trio.Nursery | None = None
        self.published = self.http_port = 0
        self.connected = trio.Event()
        self.finished = trio.Event()
        self._shuns_until, self._beats = 0.0, Beat()
        self.identity.users += [self.links.use, self.permits.use]

    @property
    def credential(self) -> Credential:
        """Who this machine is."""
        return self.identity.credential

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[PeerDaemon]:
        """Run the daemon while the block runs."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                self.port = await nursery.start(self.links.serve, self.settings.host, self.settings.port)
                async with open_directory(
                    self.credential, lambda: self.links.revocations, self.settings.host, self.port,
                    bootstrap=self._whereabouts.bootstrap,
                ) as self.directory:  # fmt: skip
                    self._whereabouts.directory = self.directory
                    self.identity.users.append(self.directory.use)
                    self.membership.news.users.append(self.directory.revoked)
                    nursery.start_soon(self.membership.news.run)
                    nursery.start_soon(self._committer.run)
                    self.hosted.resume()
                    nursery.start_soon(self.identity.keep_renewed, lambda: self.identity.renew_by(self.ask_source))
                    nursery.start_soon(self.directory.announce, self.own_addresses())
                    nursery.start_soon(self._beat)
                    nursery.start_soon(self.storing.trim)
                    nursery.start_soon(
                        look_while_alone, lambda: self.connected.is_set(), self.directory, self.hosted,
                        self._whereabouts,
                    )  # fmt: skip
                    nursery.start_soon(self.webhooks.run)
                    nursery.start_soon(self.relaying.run)
                    nursery.start_soon(keep_numbered, self.host, self.ask_source)
                    nursery.start_soon(self.spaces.run, self.directory)
                    yield self
                    self._whereabouts.remember()
                    nursery.cancel_scope.cancel()
        finally:
            self.spaces.close()
            self.store_file.close()

    async def leave(self) -> None:
        """Stop in order: nothing new, everything committed, goodbye to all."""
        await take_leave(self.links, self._committer)

    # What users ask for.

    async def subscribe(
        self, pattern: Pattern, *, start: str | int = "now", limit: int | None = None, name: str = ""
    ) -> Any:
        """Subscribe; return the subscription's name and the number of the document after which it begins. By the
        same ``name`` it can be asked for again."""
        self.storing.check_room()
        name = name or f"s-{secrets.token_hex(8)}"
        asked: dict[str, Any] = {
            "subscription": name, "pattern": pattern.text, "columns": write_columns(pattern), "start": start,
            "limit": limit,
        }  # fmt: skip
        self.hosted.expect(name, asked["columns"])
        found = await self.ask_source("subscribe", asked)
        await self.hosted.begin(name, pattern.text, found["start"], found["generation"], found["configuration"])
        return {"subscription": name, "start": found["start"], "first_document": found["start"] + 1}

    async def _subscribe_relay(self, name: str, limit: int | None) -> Any:
        return await self.subscribe(DOCUMENTS, limit=limit, name=name)

    async def unsubscribe(self, name: str) -> Any:
        """End a subscription: it gets the documents up to now, and feeds others until they have moved."""
        found = await self.ask_source("unsubscribe", {"subscription": name})
        await self.hosted.end(name, found["end"])
        return found

    async def publish(self, name: str, key: str, body: bytes) -> Any:
        """Publish a document through the source; return its number once it is durable."""
        if problem := too_large(name, len(body)):
            raise NoAnswer(problem)
        told = await self.ask_source("publish", {"name": name, "key": key, "body": body})
        self.published += bool(told["is_new"])
        return told

    async def drain(self) -> AsyncGenerator[dict[str, int], None]:
        """Have those whom this machine feeds fed by others; yields how many are left, until there are none."""
        await self.ask_source("drain", {})
        while (left := self.host.feeds_given) > 0:
            yield {"feeds": left}
            await trio.sleep(_BEAT_S)
        yield {"feeds": 0}

    async def end_drain(self) -> None:
        """Let this machine feed others again."""
        await self.ask_source("drain", {"is_over": True})

    async def trace(self, number: int, name: str) -> Any:
        """Say why a subscription of this machine got a document, or did not."""
        return await self.ask_source("trace", {"document": number, "subscription": name})

    def entries(self, name: str, after: int, *, follow: bool) -> AsyncGenerator[dict[str, Any], None]:
        """Yield what a subscription has after a document: rows, errors, gaps, and up to where it is complete."""
        return self.reading.entries(name, after, follow=follow)

    async def lag(self) -> int | None:
        """Return how many entries of the log the slowest subscription here is behind; None if nobody can say."""
        return await lag_of(self.host.subscriptions.values(), self.questions, SOURCE)

    def status(self) -> dict[str, Any]:
        """Say how everything stands."""
        return {
            "site": self.site,
            "role": "peer",
            "roles": sorted(role.value for role in self.credential.member.roles),
            "port": self.port,
            "certificate_ends": ending(self.credential),
            "http_port": self.http_port,
            "connected": self.links.sites,
            "trouble": self.membership.trouble,
            "is_revoked": self.membership.is_revoked,
            "storage": self._committer.trouble,
            **self.links.traffic(),
            "failovers": self.host.failovers,
            "webhooks": self.webhooks.standing(),
            "per_second": self.rates.per_second(trio.current_time()),
            "spaces": self.spaces.standing(),
            "subscriptions": [
                standing_of(self.host.subscriptions[name], SOURCE) for name in sorted(self.host.subscriptions)
            ],
        }

    @property
    def uncommitted(self) -> int:
        """How many changes wait to be on disk."""
        return self._committer.waiting

    # What the links tell.

    def up(self, member: Member) -> None:
        """A machine is connected."""
        if member.site == SOURCE and self._nursery is not None:
            self._nursery.start_soon(self._greet)
        self._whereabouts.reached(member.site)
        self.spaces.up(member.site)
        self.host.site_up(member.site, trio.current_time())

    def lost(self, site: str) -> None:
        """A machine is gone."""
        if site == SOURCE and self.connected.is_set():  # else somebody waits for it, and a dial has failed
            self.connected = trio.Event()
        self._whereabouts.lost(site)
        self.questions.lost(site)
        self.spaces.lost(site)
        self.host.site_lost(site, trio.current_time())
        self._beats.soon(_BEAT_S)

    def heard(self, member: Member, frames: Sequence[Frame]) -> None:
        """Frames have come, together."""
        self.storing.hearing()
        of_feeds: list[FromReceiver | FromSender] = []
        for frame in frames:
            match frame:
                case Ask():
                    self.host.handle_all(member.site, of_feeds, trio.current_time())
                    of_feeds.clear()
                    self._asked(member, frame)
                case Answer():
                    self.questions.answered(member.site, frame)
                case Content():
                    self.spaces.heard(member, frame)
                case Alive() | Calm():
                    self.membership.news.heard(member.site, frame.revocation)
                case Bye() if frame.reason == REVOKED and Role.SOURCE in member.roles:
                    self.membership.told_revoked()
                case Hello() | Bye():
                    pass
                case _:
                    of_feeds.append(frame)
        self.host.handle_all(member.site, of_feeds, trio.current_time())
        if self.host.has_work:
            self._beats.soon(_SOON_S)

    def told(self) -> None:
        """What was to be said because of what was heard is on its way."""
        self.storing.heard()

    def _hurry(self) -> None:
        """Somebody reads here: hold nothing, and have nothing held for this machine."""
        self._committer.hurry()
        if not self.host.is_awaited:
            self.host.keep_pace(is_awaited=True)

    def _asked(self, member: Member, question: Ask) -> None:
        try:
            body = msgspec.msgpack.decode(question.body)
            if question.what in NEWS:
                found = self.membership.news.told(member, question.what, body)
            else:
                member.require(Role.SOURCE)
                found = self._told_by_source(question.what, body)
            self.links.send(member.site, answer(question, found))
        except Exception as exc:  # whatever another machine says, this one goes on
            _LOG.warning("refused", extra={"site": member.site, "what": question.what, "reason": str(exc)})
            self.links.send(member.site, refuse(question, str(exc)))

    def _told_by_source(self, what: str, body: Any) -> Any:
        match what:
            case "configure":
                for signed in body:
                    self.hosted.configure(signed)
            case "trace":
                name = body["subscription"]
                return traced_here(self.store_file, self.host.subscriptions.get(name), name, body["document"])
            case "withdrawn":
                self.hosted.withdrawn(body["subscription"], body["end"])
            case "spaces":
                self.spaces.told(body)
            case _:
                raise KeyError(f"nobody here knows about {what}")
        return True

    def own_addresses(self) -> tuple[Address, ...]:
        """Say where this machine can be dialled."""
        return self.settings.addresses or (Address(self.settings.host, self.port),)

    def own_capacity(self) -> int | None:
        """Say how many feeds this machine bears."""
        return self.settings.capacity

    def told_machines(self, machines: dict[str, list[str]]) -> None:
        """The source says where some other machines are."""
        self._whereabouts.told(machines)

    async def _greet(self) -> None:
        """Meet the source; if they do not agree, not again for a while."""
        if await self.membership.greet():
            self.connected.set()
        else:
            self._shuns_until = trio.current_time() + _SHUN_S
            self.links.hang_up(SOURCE, "it does not agree with this machine")

    # What the host asks for.

    def send(self, site: str, frame: Frame) -> bool:
        """Send to a machine."""
        return self.links.send(site, frame)

    def store(self, subscription: str, items: Sequence[Item], upto: int) -> None:
        """Store results."""
        self.store_together([(subscription, items, upto)])

    def store_together(
        self, parts: Sequence[tuple[str, Sequence[Item], int]], followers: Followers | None = None
    ) -> None:
        """Store results of several subscriptions at once."""
        self.storing.store_together(parts, followers)
        for subscription, items, _ in parts:
            self.relaying.stored(subscription, items)

    def stored(self, subscription: str, after: int, upto: int, most_bytes: int) -> Stretch:
        """Read stored results."""
        return self.storing.stored(subscription, after, upto, most_bytes)

    def forbids(self, site: str, asked: Open) -> str:
        """Say why a machine may not open a feed here."""
        reason = self.permits.forbids(site, asked) or self.permits.names(asked, self.site)
        return self._refusals.noted(site, asked, reason)

    # Tasks.

    async def _beat(self) -> None:
        while True:
            if SOURCE not in self.links.sites and trio.current_time() >= self._shuns_until:
                self.links.dial(SOURCE)
            self.storing.look(trio.current_time(), self.hosted.resume)
            self.host.tick(trio.current_time())
            self.host.keep_pace(is_awaited=self.reading.was_awaited(trio.current_time()))
            self._events.look(self.host, trio.current_time())
            self.rates.look(trio.current_time(), {
                "results": self.storing.results, "bytes_sent": self.links.bytes_sent,
                "bytes_received": self.links.bytes_received,
            })  # fmt: skip
            is_calm = self.host.is_settled and self.connected.is_set() and not self._committer.trouble
            await self._beats.rest(_SOON_S if self.host.has_work else _CALM_S if is_calm else _BEAT_S)

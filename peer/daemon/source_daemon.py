"""The daemon of the source: the log, the catalog, and what it feeds itself.

Every entry of the log goes through one committer, so that numbers are given, made durable and told in the same
order.
"""

from __future__ import annotations

import logging
import math
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import trio

from overlay.identity import Address, Authority, Credential, Role
from overlay.wire.frames import Answer, Ask, Cancel, Content, Credit, Open, Pace
from peer.daemon import requests
from peer.daemon.absences import Absences
from peer.daemon.beats import Beat
from peer.daemon.catalog import Catalog
from peer.daemon.committing import Committer
from peer.daemon.departed import LEFT
from peer.daemon.directory import Directory, open_directory
from peer.daemon.enrolling import serve_enrolment
from peer.daemon.feed_refusals import FeedRefusals
from peer.daemon.in_parts import in_parts
from peer.daemon.leaving import take_leave
from peer.daemon.links import Links
from peer.daemon.log_view import LogView
from peer.daemon.lull import Lull
from peer.daemon.members import Members
from peer.daemon.one_writer import OneWriter
from peer.daemon.own_identity import OwnIdentity, ending
from peer.daemon.peer_daemon import SOURCE
from peer.daemon.permits import Permits
from peer.daemon.planner_desk import PlannerDesk
from peer.daemon.publications import Publications
from peer.daemon.pushing import Pushing
from peer.daemon.questions import NoAnswer, Questions, answer, is_passing, refuse
from peer.daemon.rates import Rates
from peer.daemon.source_backup import About, secrets_of, write_backup
from peer.daemon.source_spaces import SourceSpaces
from peer.daemon.source_state import SourceSettings, known_revocations, opened_log
from peer.daemon.tracing import Tracing
from peer.hosting.source_views import SourceViews
from peer.storage.errors import StorageError
from peer.storage.log_values import Appended, NewDocument, Refused
from peer.storage.log_values import Configuration as Kept
from peer.warm import warm_source

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from overlay.identity import Member
    from overlay.wire.frames import Frame
    from peer.storage.log_values import NewEntry

_LOG: Final = logging.getLogger("distributary.source")
_BEAT_S: Final = 0.25
_TRIM_S: Final = 60.0


class SourceDaemon:
    """The source; ``opened`` runs it."""

    def __init__(self, home: Path, settings: SourceSettings) -> None:
        warm_source()
        self._home = home
        self.identity = OwnIdentity(Credential.load(home / "identity"))
        self.credential.member.require(Role.SOURCE)
        self.authority = Authority.load(home / "authority")
        if self.credential.needs_renewal(self.identity.now()):
            self.identity.renew_as_source(self.authority)
        self.site, self.settings = self.credential.member.site, settings
        self.log = opened_log(home, settings.retention)
        self._alone = OneWriter()
        self._view = LogView(self.log)
        self.links = Links(self.credential, self, self._find, patience=settings.patience, feeds=lambda site: (
            bool(self.spaces.origins) or self.views.feeds(site)
        ))  # fmt: skip
        self.questions = Questions(self.links.send)
        self.views = SourceViews(self.site, self._view, self)
        self.links.revocations = known_revocations(self.log, self.credential, self.authority)
        self.permits = Permits(self.credential, lambda: self.links.revocations)
        self._refusals = FeedRefusals(self.links.refused)
        self.port = self.enrolment_port = 0
        self._committer: Committer[NewEntry, Appended | Refused] = Committer(
            lambda entries: self._alone(self.log.append, entries), self._appended
        )
        self.catalog = Catalog(
            self.log, self._alone, self.permits, self._committer, self, source=SOURCE, feeds=settings.feeds
        )
        self.members = Members(
            self.log, self._alone, self.identity, self.authority, self.links, self.catalog, self._view, self
        )
        self.absences = Absences(self.log, self._alone, self.catalog, self.links, settings.away_s)
        self.rates = Rates()
        self.tracing = Tracing(self.log, self.questions.ask)
        self.desk = PlannerDesk(self.catalog, self.adopt)
        self._lull, self._pushing, self._beats = Lull(), Pushing(), Beat()
        self._publications = Publications(self._committer)
        self.spaces = SourceSpaces(
            self.log, self._alone, self.site, self._publications, self._committer, self.links.send, self.tell
        )
        self._nursery: trio.Nursery | None = None
        self.published = self.published_bytes = self.http_port = 0
        self.directory: Directory | None = None
        self.finished = trio.Event()
        self.identity.users += [self.links.use, self.permits.use]

    @property
    def credential(self) -> Credential:
        """Who the source is."""
        return self.identity.credential

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[SourceDaemon]:
        """Run the daemon while the block runs."""
        try:
            self.spaces.restore()
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                host = self.settings.host
                self.port = await nursery.start(self.links.serve, host, self.settings.port)
                self.enrolment_port = await nursery.start(
                    serve_enrolment,
                    lambda: self.credential,
                    host,
                    self.settings.enrolment_port,
                    self.members.admit,
                )
                self.identity.keep_source_at(
                    self.settings.reached_at(self.port)
                )  # members learn it when they join
                known = [
                    Address.parse(text) for site in self.catalog.sites.values() for text in site.addresses[:1]
                ]
                async with open_directory(
                    self.credential, lambda: self.links.revocations, host, self.port, bootstrap=known[-8:]
                ) as self.directory:
                    self.identity.users.append(self.directory.use)
                    self.catalog.begin()
                    nursery.start_soon(self.directory.announce, self.credential.settings.source)
                    nursery.start_soon(self.identity.keep_renewed, self._renew)
                    nursery.start_soon(self._pushing.run, self.directory)
                    nursery.start_soon(self._committer.run)
                    nursery.start_soon(self._beat)
                    nursery.start_soon(self._trim)
                    nursery.start_soon(self.absences.watch)
                    nursery.start_soon(self.spaces.run, self.directory)
                    yield self
                    nursery.cancel_scope.cancel()
        finally:
            self.log.close()

    async def leave(self) -> None:
        """Stop in order: nothing new, everything committed, goodbye to all."""
        await take_leave(self.links, self._committer)

    # What users ask for.

    async def publish(self, publisher: str, name: str, key: str, body: bytes) -> dict[str, Any]:
        """Number a document; answers once it is durable. What cannot be parsed is refused."""
        return await self._publications.publish(NewDocument(publisher, key, name, body))

    def invite(self, site: str, roles: Sequence[str], hours: float) -> dict[str, Any]:
        """Invite a machine; return the token."""
        return self.members.invite(site, roles, hours, self.settings.joined_at(self.enrolment_port))

    async def revoke(self, site: str) -> dict[str, Any]:
        """Cut a machine off, everywhere."""
        return await self.members.revoke(site)

    async def backup(self, path: Path) -> dict[str, Any]:
        """Write everything that the source is to a file, while it runs."""
        about = About(self.credential.member.network, time.time())
        secrets = secrets_of(self._home)
        return await trio.to_thread.run_sync(write_backup, self.log, secrets, path, about)

    async def adopt(self, base_epoch: int, rows: list[dict[str, Any]], is_dry: bool = False) -> dict[str, Any]:
        """Take a full plan over, or only try it out; also say how much the source feeds before and after."""
        before = len(self.views)
        done = await (self.catalog.try_out if is_dry else self.catalog.adopt)(base_epoch, rows)
        return done | {"source_feeds_before": before}

    def status(self) -> dict[str, Any]:
        """Say how everything stands."""
        return {
            "site": self.site,
            "role": "source",
            "roles": sorted(role.value for role in self.credential.member.roles),
            "port": self.port,
            "http_port": self.http_port,
            "enrolment_port": self.enrolment_port,
            "generation": self._view.generation,
            "last": self._view.last,
            "storage": self._committer.trouble,
            "connected": self.links.sites,
            "sites": sorted(self.catalog.sites),
            "away": sorted(self.absences.given_up),
            "doubled": self.links.doubles.sites(trio.current_time()),
            "subscriptions": len(self.catalog.owners),
            "feeds": len(self.views),
            "epoch": self.catalog.steering.epoch,
            "last_plan": self.catalog.last_plan.shown(),
            "certificate_ends": ending(self.credential),
            **self.links.traffic(),
            "per_second": self.rates.per_second(trio.current_time()),
        }

    @property
    def uncommitted(self) -> int:
        """How many changes wait to be on disk."""
        return self._committer.waiting

    # What the links tell.

    def up(self, member: Member) -> None:
        """A machine is connected; it greets first."""
        self.spaces.up(member.site)

    def lost(self, site: str) -> None:
        """A machine is gone."""
        self.questions.lost(site)
        self.views.site_lost(site)

    def heard(self, member: Member, frames: Sequence[Frame]) -> None:
        """Frames have come, together."""
        for frame in frames:
            match frame:
                case Open() | Credit() | Cancel() | Pace():
                    self.views.handle(member.site, frame)
                case Answer():
                    self.questions.answered(member.site, frame)
                case Content():
                    self.spaces.heard(member, frame)
                case Ask() if self._nursery is not None:
                    self._nursery.start_soon(self._asked, member, frame)

    def told(self) -> None:
        """What was to be said because of what was heard is on its way."""

    async def _asked(self, member: Member, question: Ask) -> None:
        try:
            told = answer(question, await self._answer(member, question.what, question.body))
            self.links.send(member.site, told)
        except Exception as exc:  # whatever a machine asks, the source goes on
            _LOG.warning("refused", extra={"site": member.site, "what": question.what[:50], "reason": str(exc)})
            self.links.send(member.site, refuse(question, str(exc), again=is_passing(exc)))

    async def _answer(self, member: Member, what: str, body: bytes) -> Any:
        match what:
            case "greet":
                return await self.members.greeted(member, requests.read(body, requests.Greet))
            case "configurations":
                return self.catalog.configurations_of(member.site, requests.read(body, requests.More).after)
            case "drain":
                is_over = requests.read(body, requests.Drain).is_over
                return await (self.catalog.take_back if is_over else self.catalog.set_aside)(member.site)
            case "address":
                site = self.catalog.sites.get(requests.read(body, requests.Where).site)
                return [] if site is None else list(site.addresses)
            case "last":
                return self._view.last
            case "volume":
                return {"documents": self.published, "bytes": self.published_bytes}
            case "revocations":
                return self.links.revocations.encoded
            case "dht_key":
                return self.members.dht_key()
            case "leave":
                return self._let_go(member)
            case "renew":
                return self.members.renew(member, requests.read(body, requests.Renew))
            case "plan_state" | "snapshot" | "snapshot_part" | "proposal_part" | "adopt":
                return await self.desk.answer(member, what, body)
            case "publish":
                member.require(Role.PUBLISHER)
                asked = requests.read(body, requests.Publish)
                return await self.publish(member.site, asked.name, asked.key, asked.body)
            case "subscribe":
                member.require(Role.SUBSCRIBER)
                return await self.catalog.subscribe(member.site, requests.read(body, requests.Subscribe))
            case "numbers":
                member.require(Role.SUBSCRIBER)
                return self.views.numbers(requests.read(body, requests.Numbers).patterns, trio.current_time())
            case "trace":
                about = requests.read(body, requests.Trace)
                return await self.tracing.trace(about.document, about.subscription, of=member.site)
            case "unsubscribe":
                return await self.catalog.unsubscribe(member.site, requests.read(body, requests.Of).subscription)
            case _:
                return await self.spaces.answer(member, what, body)

    def _let_go(self, member: Member) -> dict[str, Any]:
        told = self.members.let_go(member.site, LEFT)
        if self._nursery is not None:
            self._nursery.start_soon(self.members.farewell, member.site)
        return told

    # What the catalog and the members let others know.

    def push(self, kept: Sequence[Kept]) -> None:
        """Put configurations into the DHT, in the background."""
        self._pushing.put(kept)

    def forget(self, subscription: str) -> None:
        """A subscription has ended: nothing of it stays in the DHT."""
        self._pushing.forget(subscription)
        if self.directory is not None:
            self.directory.forget(subscription)

    def tell(self, site: str, what: str, body: Any) -> None:
        """Tell a machine something if it is connected; else it learns of it when it greets."""
        if self._nursery is not None and site in self.links.sites:
            self._nursery.start_soon(self._told, site, what, body)

    async def ask(self, site: str, what: str, body: Any) -> Any:
        """Ask a machine something."""
        return await self.questions.ask(site, what, body)

    async def _told(self, site: str, what: str, body: Any) -> None:
        for part in in_parts(body) if what == "configure" else (body,):
            try:
                await self.questions.ask(site, what, part)
            except NoAnswer as exc:  # it may only be slow, and hear the next
                _LOG.warning("not told", extra={"site": site, "what": what, "reason": str(exc)})

    # What the views ask for.

    def send(self, site: str, frame: Frame) -> bool:
        """Send to a machine."""
        return self.links.send(site, frame)

    def forbids(self, site: str, asked: Open) -> str:
        """Say why a machine may not be fed by the source."""
        return self._refusals.noted(site, asked, self._forbids(site, asked))

    def _forbids(self, site: str, asked: Open) -> str:
        if self.catalog.owners.get(asked.downstream) == site:
            return self.permits.forbids(site, asked)
        # One that has ended may still owe its user documents; nobody gives it a newer permit.
        if self.catalog.end_of(site, asked.downstream) is None:
            return f"{asked.downstream} is not a subscription of {site}"
        return self.permits.forbids(site, asked, is_last=True)

    # Tasks and state.

    def _appended(self, entry: NewEntry, done: Appended | Refused) -> None:
        """An entry is durable: feed it, in the order of numbers."""
        if isinstance(done, Appended) and done.is_new:
            self._view.last = done.number
            if isinstance(entry, NewDocument):
                self.published += 1
                self.published_bytes += len(entry.body)
                _LOG.info(
                    "published", extra={"number": done.number, "document": entry.name, "by": entry.publisher}
                )
                now = trio.current_time()
                self.views.published(
                    done.number, entry.name, entry.body, self._publications.parsed(entry), now=now
                )
                if self.views.held_until < math.inf:
                    self._beats.soon(self.views.held_until - now)
                elif not self.views.has_work:
                    self._beats.calm()
                self._lull.told()
            else:
                self._lull.came(done.number, trio.current_time())
            self.spaces.entered(done.number, entry)

    async def _beat(self) -> None:
        while True:
            behind = self._lull.due(trio.current_time())
            if behind is not None:
                self.views.published(behind, "", None)
            self.views.pump(trio.current_time())
            self.rates.look(trio.current_time(), {
                "entries": self._view.last, "bytes_sent": self.links.bytes_sent,
                "bytes_received": self.links.bytes_received,
            })  # fmt: skip
            await self._beats.rest(0.01 if self.views.has_work else _BEAT_S)

    async def _trim(self) -> None:
        """Keep the log within its limits."""
        while True:
            await trio.sleep(_TRIM_S)
            try:
                self._view.lowest = await trio.to_thread.run_sync(self._alone, self.log.trim, time.time())
            except StorageError as exc:
                _LOG.error("not trimmed", extra={"reason": str(exc)})
                continue
            self.views.trimmed(self._view.lowest)

    async def _find(self, site: str) -> tuple[Address, ...]:
        if site not in self.absences.probed:
            return ()  # machines dial the source
        return tuple(Address.parse(text) for text in self.catalog.sites[site].addresses)

    async def _renew(self) -> None:
        self.identity.renew_as_source(self.authority)
        await self.catalog.sign_again()

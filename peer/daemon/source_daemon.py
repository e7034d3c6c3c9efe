"""The daemon of the source: the log, the catalog, what it feeds itself, and who is fed by whom.

Every entry of the log goes through one committer, so that numbers are given, made durable and told in the same
order. A subscription is an entry; then the steering says how it is fed, the source signs that, keeps it, and
tells the machine concerned, and those whose feeds have changed with it.
"""

from __future__ import annotations

import logging
import time
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import trio

from overlay.dht import Version as DhtVersion
from overlay.identity import (
    Address,
    Authority,
    Credential,
    Role,
)
from overlay.wire.frames import Answer, Ask, Cancel, Credit, Open
from peer.daemon import requests
from peer.daemon.admissions import Admissions
from peer.daemon.committing import Committer
from peer.daemon.directory import Directory, open_directory
from peer.daemon.enrolling import serve_enrolment
from peer.daemon.links import Links
from peer.daemon.log_view import LogView
from peer.daemon.one_writer import OneWriter
from peer.daemon.peer_daemon import SOURCE
from peer.daemon.permits import Permits
from peer.daemon.questions import NoAnswer, Questions, answer, refuse
from peer.daemon.source_state import (
    SourceSettings,
    known_revocations,
    restored_steering,
    snapshot_of,
)
from peer.hosting.source_views import SourceViews
from peer.steering.proposal import Stale, read_proposal
from peer.storage.log_values import (
    Appended,
    NewDocument,
    NewSubscription,
    Refused,
    SiteRecord,
    Start,
    Version,
    Withdrawal,
)
from peer.storage.log_values import Configuration as Kept
from peer.storage.source_log import SourceLog
from peer.warm import warm_source
from xmlmatch import Document
from xmlmatch.errors import XmlMatchError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence
    from pathlib import Path

    from overlay.identity import Application, Enroller, Member
    from overlay.wire.frames import Frame
    from peer.hosting.configuration import Configuration
    from peer.storage.log_values import NewEntry

_LOG: Final = logging.getLogger("distributary.source")
_BEAT_S: Final = 0.1
_TRIM_S: Final = 60.0


class SourceDaemon:
    """The source; ``opened`` runs it."""

    def __init__(self, home: Path, settings: SourceSettings) -> None:
        warm_source()
        self.credential = Credential.load(home / "identity")
        self.credential.member.require(Role.SOURCE)
        self.authority = Authority.load(home / "authority")
        self.site, self.settings = self.credential.member.site, settings
        self.log = SourceLog.open(home / "source.sqlite")
        self._alone = OneWriter()
        self._view = LogView(self.log)
        self.links = Links(self.credential, self, self._find)
        self.questions = Questions(self.links.send)
        self.views = SourceViews(self.site, self._view, self)
        self._admissions = Admissions(self.log, self.authority, self._alone)
        self.links.revocations = known_revocations(self.log, self.credential, self.authority)
        self.permits = Permits(self.credential, lambda: self.links.revocations)
        self.steering, self._unsent = restored_steering(self.log, self.permits, SOURCE, settings.feeds)
        self.permits.epoch = self.steering.epoch
        self.port = self.enrolment_port = 0
        self._signed = {one.subscription: one.body for one in self.log.configurations()}
        self._sites = {site.name: site for site in self.log.sites()}
        self._owners = {one.id: one.site for one in self.log.subscriptions()}
        self._committer: Committer[NewEntry, Appended | Refused] = Committer(
            lambda entries: self._alone(self.log.append, entries), self._appended
        )
        self._nursery: trio.Nursery | None = None
        self._planning = trio.Lock()
        self.directory: Directory | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[SourceDaemon]:
        """Run the daemon while the block runs."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                host = self.settings.host
                self.port = await nursery.start(self.links.serve, host, self.settings.port)
                self.enrolment_port = await nursery.start(
                    serve_enrolment, self.credential, host, self.settings.enrolment_port, self._admit
                )
                self._keep_address()
                known = [Address.parse(text) for site in self._sites.values() for text in site.addresses[:1]]
                async with open_directory(
                    self.credential, lambda: self.links.revocations, host, self.port, bootstrap=known[-8:]
                ) as self.directory:
                    self._push(list(self.log.configurations()))
                    self._install(self._unsent)
                    nursery.start_soon(self._committer.run)
                    nursery.start_soon(self._beat)
                    nursery.start_soon(self._trim)
                    yield self
                    nursery.cancel_scope.cancel()
        finally:
            self.log.close()

    # What users ask for.

    async def publish(self, publisher: str, name: str, key: str, body: bytes) -> dict[str, Any]:
        """Number a document; answers once it is durable. What cannot be parsed is refused."""
        try:
            await trio.to_thread.run_sync(Document.parse, body)
        except XmlMatchError as exc:
            raise NoAnswer(f"{name}: {exc}") from None
        done = await self._committer.commit(NewDocument(publisher, key, name, body))
        if isinstance(done, Refused):
            raise NoAnswer(f"{name}: {done.reason}")
        return {"number": done.number, "is_new": done.is_new}

    def invite(self, site: str, roles: Sequence[str], hours: float) -> dict[str, Any]:
        """Invite a machine; return the token."""
        is_revoked = site in self.links.revocations.sites
        if site == self.site or (site in self._sites and not is_revoked):
            raise NoAnswer(f"{site} is a member already; choose another name, or revoke it first")
        address = Address(self.settings.host, self.enrolment_port)
        token = self._admissions.invite(site, roles, hours, address, self.links.revocations.number)
        return {"site": site, "token": token}

    async def revoke(self, site: str) -> dict[str, Any]:
        """Cut a machine off, everywhere."""
        if site == self.site:
            raise NoAnswer("the source cannot be revoked")
        self._admissions.withdraw(site)
        dht_key = self.credential.settings.dht_keys.current.number
        found = self.links.revocations.extended(
            self.authority.intermediate, datetime.now(UTC), dht_key=dht_key, sites=[site]
        )
        self._alone(self.log.put_state, "revocations", found.encoded)
        self.links.revoked(found)
        for other in self.links.sites:
            self._tell(other, "revocations", found.encoded)
        for name in [name for name, owner in self._owners.items() if owner == site]:
            await self._withdraw(name)
        return {"site": site, "list": found.number}

    def snapshot(self, documents: int) -> dict[str, Any]:
        """Return what a full plan starts from: the catalog, the machines, and the newest documents as a sample."""
        return snapshot_of(self.steering, self.log, self.settings.feeds, documents)

    async def adopt(self, base_epoch: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """Take a full plan over, as far as it holds for what is the case now; sign it as a new epoch."""
        proposal = read_proposal(rows, base_epoch)
        async with self._planning:
            before = len(self.views)
            done = await trio.to_thread.run_sync(self.steering.adopt, proposal)
            if isinstance(done, Stale):
                raise NoAnswer(done.reason)
            self._alone(self.log.put_state, "epoch", str(self.steering.epoch).encode())
            # Everybody's permit is of the new epoch, also where nothing else has changed.
            self.permits.epoch = self.steering.epoch
            self._install(self.steering.configurations())
        return {
            "epoch": self.steering.epoch, "changed": len(done.configurations), "taken": len(done.taken),
            "kept": len(done.kept), "rebased": len(done.rebased), "refused": dict(done.refused),
            "source_feeds_before": before, "source_feeds": self.steering.source_feeds_used,
        }  # fmt: skip

    def status(self) -> dict[str, Any]:
        """Say how everything stands."""
        return {
            "site": self.site,
            "role": "source",
            "port": self.port,
            "enrolment_port": self.enrolment_port,
            "generation": self._view.generation,
            "last": self._view.last,
            "connected": self.links.sites,
            "sites": sorted(self._sites),
            "subscriptions": len(self._owners),
            "feeds": len(self.views),
            "epoch": self.steering.epoch,
            "bytes_sent": self.links.bytes_sent,
            "bytes_received": self.links.bytes_received,
            "refused": dict(self.links.refused),
        }

    # What the links tell.

    def up(self, member: Member) -> None:
        """A machine is connected; it greets first."""
        _LOG.info("connected", extra={"site": member.site})

    def lost(self, site: str) -> None:
        """A machine is gone."""
        self.questions.lost(site)
        self.views.site_lost(site)

    def heard(self, member: Member, frame: Frame) -> None:
        """A frame has come."""
        match frame:
            case Open() | Credit() | Cancel():
                self.views.handle(member.site, frame)
            case Answer():
                self.questions.answered(member.site, frame)
            case Ask() if self._nursery is not None:
                self._nursery.start_soon(self._asked, member, frame)

    async def _asked(self, member: Member, question: Ask) -> None:
        try:
            told = answer(question, await self._answer(member, question.what, question.body))
            self.links.send(member.site, told)
        except Exception as exc:  # whatever a machine asks, the source goes on
            _LOG.warning("refused", extra={"site": member.site, "what": question.what[:50], "reason": str(exc)})
            self.links.send(member.site, refuse(question, str(exc)))

    async def _answer(self, member: Member, what: str, body: bytes) -> Any:
        match what:
            case "greet":
                return self._greeted(member, requests.read(body, requests.Greet))
            case "address":
                site = self._sites.get(requests.read(body, requests.Where).site)
                return [] if site is None else list(site.addresses)
            case "revocations":
                return self.links.revocations.encoded
            case "publish":
                member.require(Role.PUBLISHER)
                asked = requests.read(body, requests.Publish)
                return await self.publish(member.site, asked.name, asked.key, asked.body)
            case "subscribe":
                member.require(Role.SUBSCRIBER)
                return await self._subscribe(member, requests.read(body, requests.Subscribe))
            case "unsubscribe":
                name = requests.read(body, requests.Of).subscription
                if self._owners.get(name) != member.site:
                    raise NoAnswer(f"{name} is not a subscription of {member.site}")
                return await self._withdraw(name)
            case _:
                raise NoAnswer(f"nobody here knows about {what[:50]}")

    def _greeted(self, member: Member, asked: requests.Greet) -> dict[str, Any]:
        addresses = tuple(str(Address.parse(text)) for text in asked.addresses)
        record = SiteRecord(member.site, addresses, asked.capacity, time.time())
        self._alone(self.log.put_site, record)
        if member.site not in self._sites:
            self.steering.add_site(member.site, asked.capacity)
        self._sites[member.site] = record
        mine = [name for name, owner in self._owners.items() if owner == member.site]
        return {
            "generation": self._view.generation,
            "revocations": self.links.revocations.encoded,
            "configurations": [self._signed[name] for name in mine if name in self._signed],
        }

    async def _subscribe(self, member: Member, asked: requests.Subscribe) -> dict[str, Any]:
        if member.site not in self._sites:
            raise NoAnswer("greet first")
        name, pattern = asked.subscription, asked.checked()
        start = {"now": Start.NOW, "earliest": Start.EARLIEST}.get(str(asked.start), asked.start)
        entry = NewSubscription(name, pattern.text, asked.columns, member.site, asked.limit, start)  # type: ignore[arg-type]  # checked
        async with self._planning:
            if self._owners.get(name, member.site) != member.site:
                raise NoAnswer(f"{name} is a subscription of another machine")
            done = await self._committer.commit(entry)
            if isinstance(done, Refused) or done.start is None:
                raise NoAnswer(str(getattr(done, "reason", "it has no start")))
            if name not in self._owners:
                self._owners[name] = member.site
                changed = await trio.to_thread.run_sync(
                    self.steering.add, name, pattern.text, member.site, asked.limit, done.start
                )
                self._install(changed, but=name)
        return {
            "start": done.start, "number": done.number, "generation": self._view.generation,
            "configuration": self._signed[name],
        }  # fmt: skip

    async def _withdraw(self, name: str) -> dict[str, Any]:
        async with self._planning:
            done = await self._committer.commit(Withdrawal(name))
            if isinstance(done, Refused):
                raise NoAnswer(done.reason)
            owner = self._owners.pop(name, None)
            if owner is not None:
                self._signed.pop(name, None)
                if self.directory is not None:
                    self.directory.forget(name)
                self._install(await trio.to_thread.run_sync(self.steering.withdraw, name))
                self._tell(owner, "withdrawn", {"subscription": name, "end": done.number})
        return {"subscription": name, "end": done.number}

    # Configurations.

    def _install(self, changed: Iterable[Configuration], *, but: str = "") -> None:
        """Sign and keep configurations, and tell the machines; ``but``: whom the answer tells."""
        found = list(changed)
        bodies = {one.subscription: self.permits.sign(one) for one in found}
        self._signed |= bodies
        kept = [Kept(one.subscription, Version(*one.version), bodies[one.subscription]) for one in found]
        self._alone(self.log.put_configurations, kept)
        self._push(kept)
        by_site: dict[str, list[bytes]] = {}
        for one in found:
            if one.subscription != but:
                by_site.setdefault(one.site, []).append(bodies[one.subscription])
        for site, signed in by_site.items():
            self._tell(site, "configure", signed)

    def _push(self, kept: Sequence[Kept]) -> None:
        """Put configurations into the DHT, in the background."""
        versions = {o.subscription: DhtVersion(*o.version) for o in kept}
        if versions and self._nursery is not None and self.directory is not None:
            bodies = {o.subscription: o.body for o in kept}
            self._nursery.start_soon(self.directory.push, bodies, versions, max(versions.values()))

    def _tell(self, site: str, what: str, body: Any) -> None:
        """Tell a machine something if it is connected; else it learns of it when it greets."""
        if self._nursery is not None and site in self.links.sites:
            self._nursery.start_soon(self._told, site, what, body)

    async def _told(self, site: str, what: str, body: Any) -> None:
        try:
            await self.questions.ask(site, what, body)
        except NoAnswer as exc:
            _LOG.warning("not told", extra={"site": site, "what": what, "reason": str(exc)})

    # What the views ask for.

    def send(self, site: str, frame: Frame) -> bool:
        """Send to a machine."""
        return self.links.send(site, frame)

    def forbids(self, site: str, asked: Open) -> str:
        """Say why a machine may not be fed by the source."""
        ended = "" if self._owners.get(asked.downstream) == site else f"{asked.downstream} has ended"
        return ended or self.permits.forbids(site, asked)

    # Tasks and state.

    def _appended(self, entry: NewEntry, done: Appended | Refused) -> None:
        """An entry is durable: feed it, in the order of numbers."""
        if isinstance(done, Appended) and done.is_new:
            self._view.last = done.number
            if isinstance(entry, NewDocument):
                self.views.published(done.number, entry.name, entry.body)
            else:
                self.views.published(done.number, "", None)

    async def _beat(self) -> None:
        while True:
            self.views.pump()
            await trio.sleep(0.01 if self.views.has_work else _BEAT_S)

    async def _trim(self) -> None:
        """Keep the log within its limits."""
        while True:
            await trio.sleep(_TRIM_S)
            self._view.lowest = await trio.to_thread.run_sync(self._alone, self.log.trim, time.time())
            self.views.trimmed(self._view.lowest)

    async def _find(self, site: str) -> tuple[Address, ...]:
        return ()  # machines dial the source

    async def _admit(self, enroller: Enroller, application: Application) -> bytes:
        chain = self._admissions.admit(application)
        return enroller.admit(chain, self.credential.settings, max(self.links.revocations.number, 0))

    def _keep_address(self) -> None:
        """Members learn where the source is when they join."""
        own = (Address(self.settings.host, self.port),)
        if self.credential.settings.source != own:
            settings = self.credential.settings
            self.credential = self.credential.with_settings(
                type(settings)(settings.network, own, settings.dht_keys)
            )

"""The source's catalog: subscriptions, machines, and who is fed by whom.

A subscription is an entry of the log; then the steering says how it is fed. The source signs that, keeps it, and
tells the machine concerned, and those whose feeds have changed with it. One change at a time.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
import trio

from overlay.identity import Address
from peer.daemon.in_parts import in_parts
from peer.daemon.last_plan import LastPlan
from peer.daemon.overview import overview_of
from peer.daemon.questions import NoAnswer
from peer.daemon.source_state import restored_steering, snapshot_of
from peer.steering.proposal import Stale, read_proposal
from peer.storage.errors import StorageError
from peer.storage.log_values import Configuration as Kept
from peer.storage.log_values import NewSubscription, Refused, SiteRecord, Start, Version, Withdrawal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
    from contextlib import AbstractAsyncContextManager

    from overlay.identity import Member
    from peer.daemon import requests
    from peer.daemon.committing import Committer
    from peer.daemon.one_writer import OneWriter
    from peer.daemon.permits import Permits
    from peer.hosting.configuration import Configuration
    from peer.storage.log_values import Appended, NewEntry
    from peer.storage.source_log import SourceLog

_SIGNED_UNDER: Final = "signed_under"
"""The state that holds the serial number of the certificate under which all configurations are signed."""
_ASIDE: Final = "aside"

_LOG: Final = logging.getLogger("distributary.source")


class Teller(Protocol):
    """Who lets others know what has changed."""

    def tell(self, site: str, what: str, body: Any) -> None:
        """Tell a machine something if it is connected; else it learns of it when it greets."""

    def push(self, kept: Sequence[Kept]) -> None:
        """Put configurations where machines can look them up."""

    def forget(self, subscription: str) -> None:
        """A subscription has no configuration any more."""


class Catalog:
    """What the source knows of subscriptions and machines."""

    def __init__(
        self,
        log: SourceLog,
        alone: OneWriter,
        permits: Permits,
        committer: Committer[NewEntry, Appended | Refused],
        teller: Teller,
        *,
        source: str,
        feeds: int | None,
        turn: AbstractAsyncContextManager[None] | None = None,
        in_thread: Callable[..., Awaitable[Any]] = trio.to_thread.run_sync,
    ) -> None:
        """``turn`` lets one change be made at a time; ``in_thread`` runs what takes long. Both are trio's, unless
        said otherwise."""
        self._log, self._alone, self._permits, self._committer, self._teller = (
            log,
            alone,
            permits,
            committer,
            teller,
        )
        self._feeds = feeds
        self._aside = set(msgspec.json.decode(log.get_state(_ASIDE) or b"[]", type=list[str]))
        self.steering, self._unsent = restored_steering(log, permits, source, feeds, self._aside)
        permits.reached(self.steering.generation, self.steering.epoch)
        self._signed = {one.subscription: one.body for one in log.configurations()}
        self.sites = {site.name: site for site in log.sites()}
        self.owners = {one.id: one.site for one in log.subscriptions()}
        self._one, self._in_thread = turn or trio.Lock(), in_thread
        self.last_plan = LastPlan(log, alone)

    def begin(self) -> None:
        """Let everybody know what is in force, with what restarting had to change."""
        self._teller.push(list(self._log.configurations()))
        self._install(self._unsent)
        self._sign_again()

    async def sign_again(self) -> None:
        """The source has a new certificate: what the earlier one signed is good only until that one ends."""
        async with self._one:
            self._sign_again()

    def _sign_again(self) -> None:
        serial = str(self._permits.serial).encode()
        if self._log.get_state(_SIGNED_UNDER) != serial:
            self._install(self.steering.issue_again())
            self._alone(self._log.put_state, _SIGNED_UNDER, serial)

    def owned_by(self, site: str) -> list[str]:
        """List the subscriptions of a machine."""
        return [name for name, owner in self.owners.items() if owner == site]

    def greeted(self, member: Member, asked: requests.Greet) -> list[bytes]:
        """Keep where a machine is; return how its subscriptions are fed."""
        addresses = tuple(str(Address.parse(text)) for text in asked.addresses)
        record = SiteRecord(member.site, addresses, asked.capacity, time.time())
        try:
            self._alone(self._log.put_site, record)
        except StorageError as exc:
            _LOG.error("not kept where it is", extra={"site": member.site, "reason": str(exc)})
        if member.site not in self.sites:
            self.steering.add_site(member.site, asked.capacity)
        self.sites[member.site] = record
        return [self._signed[name] for name in self.owned_by(member.site) if name in self._signed]

    def configurations_of(self, site: str, after: str = "") -> dict[str, Any]:
        """Return how the subscriptions of a machine are fed whose names come after one: the first of them, as many
        as a frame has room for. ``more``: the name of the last, if there are others."""
        names = sorted(name for name in self.owned_by(site) if name > after and name in self._signed)
        part = next(in_parts(self._signed[name] for name in names), [])
        return {"configurations": part, "more": names[len(part) - 1] if len(part) < len(names) else ""}

    def neighbours(self, site: str, most: int) -> dict[str, list[str]]:
        """Say where some machines are: those that may feed a machine, and then those that were here last."""
        choices = [
            choice
            for name in self.owned_by(site)
            if name in self._signed
            for choice in self.steering.configuration(name).choices
        ]
        feeders = dict.fromkeys(one.site for choice in choices for one in choice)
        recent = sorted(self.sites.values(), key=lambda one: -one.last_seen)
        names = [name for name in dict.fromkeys((*feeders, *(one.name for one in recent))) if name != site]
        return {name: list(self.sites[name].addresses) for name in names[:most] if name in self.sites}

    def compared(self, site: str, names: Iterable[str]) -> tuple[dict[str, int], list[str]]:
        """Say of what a machine has as live subscriptions which have ended, and where, and which are not known."""
        ended, unknown = {}, []
        for name in names:
            if self.owners.get(name) == site:
                continue
            entry = self._log.subscription(name)
            if entry is None:
                unknown.append(name)
            elif entry.site == site and entry.end is not None:
                ended[name] = entry.end
        return ended, unknown

    async def subscribe(self, site: str, asked: requests.Subscribe) -> dict[str, Any]:
        """Make a subscription of a machine; asked again, it is the same one."""
        if site not in self.sites:
            raise NoAnswer("greet first")
        name, pattern = asked.subscription, asked.checked()
        start = {"now": Start.NOW, "earliest": Start.EARLIEST}.get(str(asked.start), asked.start)
        entry = NewSubscription(name, pattern.text, asked.columns, site, asked.limit, start)  # type: ignore[arg-type]  # checked
        async with self._one:
            if self.owners.get(name, site) != site:
                raise NoAnswer(f"{name} is a subscription of another machine")
            done = await self._committer.commit(entry)
            if isinstance(done, Refused) or done.start is None:
                raise NoAnswer(str(getattr(done, "reason", "it has no start")))
            if name not in self.owners:
                self.owners[name] = site
                changed = await self._in_thread(
                    self.steering.add, name, pattern.text, site, asked.limit, done.start
                )
                self._install(changed, but=name)
                _LOG.info("subscribed", extra={"subscription": name, "site": site, "start": done.start})
            elif name not in self._signed:
                self._install([self.steering.configuration(name)], but=name)  # it could not be kept before
        return {
            "start": done.start, "number": done.number, "generation": self._log.generation,
            "configuration": self._signed[name],
        }  # fmt: skip

    async def unsubscribe(self, site: str, name: str) -> dict[str, Any]:
        """End a subscription of a machine; asked again, it has ended where it did."""
        if self.owners.get(name) != site and self.end_of(site, name) is None:
            raise NoAnswer(f"{name} is not a subscription of {site}")
        return await self.withdraw(name)

    async def withdraw(self, name: str) -> dict[str, Any]:
        """End a subscription: it owes the documents up to now."""
        async with self._one:
            done = await self._committer.commit(Withdrawal(name))
            if isinstance(done, Refused):
                raise NoAnswer(done.reason)
            owner = self.owners.pop(name, None)
            if owner is not None:
                self._signed.pop(name, None)
                self._teller.forget(name)
                self._install(await self._in_thread(self.steering.withdraw, name))
                self._teller.tell(owner, "withdrawn", {"subscription": name, "end": done.number})
                _LOG.info("withdrawn", extra={"subscription": name, "site": owner, "end": done.number})
        return {"subscription": name, "end": done.number}

    def end_of(self, site: str, name: str) -> int | None:
        """Return the last number that a subscription of a machine owes; None if it has not ended, or is none."""
        found = None if name in self.owners else self._log.subscription(name)
        return None if found is None or found.site != site else found.end

    def snapshot(self, documents: int) -> dict[str, Any]:
        """Return what a full plan starts from: the catalog, the machines, and the newest documents as a sample."""
        return snapshot_of(self.steering, self._log, self._feeds, documents)

    async def set_aside(self, site: str) -> None:
        """Let a machine feed nobody any more; what it is fed itself stays. It lasts, also over restarts."""
        if site not in self.sites:
            raise NoAnswer(f"{site} has never been here")
        async with self._one:
            if site not in self._aside:
                self._keep_aside(self._aside | {site})
                self._install(await self._in_thread(self.steering.site_failed, site))

    async def take_back(self, site: str) -> None:
        """Let a machine that was set aside feed again."""
        async with self._one:
            if site in self._aside:
                self._keep_aside(self._aside - {site})
                self._install(await self._in_thread(self.steering.site_returned, site))

    def is_aside(self, site: str) -> bool:
        """Say whether a machine feeds nobody."""
        return site in self._aside

    async def settle(self) -> None:
        """Search better feeds for some that had to do without a search."""
        async with self._one:
            self._install(await self._in_thread(self.steering.settle))

    def _keep_aside(self, sites: set[str]) -> None:
        self._alone(self._log.put_state, _ASIDE, msgspec.json.encode(sorted(sites)))
        self._aside = sites

    async def overview(self, connected: Collection[str]) -> dict[str, Any]:
        """Say how the network is planned; ``connected``: the machines that are."""
        async with self._one:
            return overview_of(self.steering, self.sites, connected) | {"aside": sorted(self._aside)}

    def plan_state(self) -> dict[str, Any]:
        """Say how far the network has moved from its last full plan."""
        return self.last_plan.state(self.steering.source_feeds_used, self.owners)

    async def try_out(self, base_epoch: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """Say what would become of a full plan, and leave everything as it is."""
        proposal = read_proposal(rows, base_epoch)
        async with self._one:
            done = await self._in_thread(self.steering.check, proposal)
        if isinstance(done, Stale):
            return {"stale": done.reason}
        return {
            "epoch": self.steering.epoch, "changed": 0, "taken": len(done.feeds), "refused": dict(done.refused),
            "source_feeds": sum(not feed for feed in done.feeds.values()), "dry_run": True,
        }  # fmt: skip

    async def adopt(self, base_epoch: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """Take a full plan over, as far as it holds for what is the case now; sign it as a new epoch."""
        proposal = read_proposal(rows, base_epoch)
        async with self._one:
            done = await self._in_thread(self.steering.adopt, proposal)
            if isinstance(done, Stale):
                return {"stale": done.reason}
            # Everybody's permit is of the new epoch, also where nothing else has changed.
            self._permits.reached(self.steering.generation, self.steering.epoch)
            self._install(self.steering.configurations(), epoch=self.steering.epoch)
            self.last_plan.adopted(self.steering.epoch, self.steering.source_feeds_used, self.owners)
        _LOG.info("epoch", extra={"epoch": self.steering.epoch, "changed": len(done.configurations)})
        return {
            "epoch": self.steering.epoch, "changed": len(done.configurations), "taken": len(done.taken),
            "kept": len(done.kept), "rebased": len(done.rebased), "refused": dict(done.refused),
            "source_feeds": self.steering.source_feeds_used,
        }  # fmt: skip

    def _install(self, changed: Iterable[Configuration], *, but: str = "", epoch: int | None = None) -> None:
        """Sign and keep configurations, and tell the machines; ``but``: whom the answer tells. ``epoch``: is kept
        with them, for a permit counts in its epoch and the next one only."""
        found = list(changed)
        bodies = {one.subscription: self._permits.sign(one) for one in found}
        kept = [Kept(one.subscription, Version(*one.version), bodies[one.subscription]) for one in found]
        self._alone(self._keep, kept, epoch)
        self._signed |= bodies
        self._teller.push(kept)
        by_site: dict[str, list[bytes]] = {}
        for one in found:
            if one.subscription != but:
                by_site.setdefault(one.site, []).append(bodies[one.subscription])
        for site, signed in by_site.items():
            self._teller.tell(site, "configure", signed)

    def _keep(self, kept: Sequence[Kept], epoch: int | None) -> None:
        with self._log.transaction():
            self._log.put_configurations(kept)
            if epoch is not None:
                self._log.put_state("epoch", str(epoch).encode())

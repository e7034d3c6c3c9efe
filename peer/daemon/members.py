"""Who the members are, at the source: invited, admitted, renewed, revoked; and how each stands when it greets.

A source that was restored from a backup has forgotten what came after: numbers it gave, lists it signed,
subscriptions it took. What machines say when they greet brings it back as far as it can be: lists are merged, and
subscriptions announced again. Numbers are safe in another way (``restoring_home``): a generation begins above all
that were given. Where that does not hold, because files were put back by hand, the machine is refused and the
operator told: to go on would lose documents silently.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
import trio

from overlay.identity import decode_list_untrusted
from overlay.identity.certificates import verify_chain_at_any_time
from peer.daemon.admissions import Admissions
from peer.daemon.departed import REVOKED, Departed
from peer.daemon.questions import NoAnswer
from peer.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from overlay.identity import Address, Application, Authority, Enroller, Member, RevocationList
    from peer.daemon.catalog import Catalog
    from peer.daemon.links import Links
    from peer.daemon.log_view import LogView
    from peer.daemon.one_writer import OneWriter
    from peer.daemon.own_identity import OwnIdentity
    from peer.daemon.requests import Greet, Renew
    from peer.storage.source_log import SourceLog

_LOG: Final = logging.getLogger("distributary.source")
_LIST: Final = "revocations"
_FAREWELL_S: Final = 2.0
_MACHINES_TOLD: Final = 16
_LONGEST_HOURS: Final = 365 * 24
RESTORED: Final = "restored"
"""The state that says what a restore has left behind: a ``Restored``."""


class Restored(msgspec.Struct, frozen=True):
    """The last restore. Numbers of the log up to ``base`` belong to generations before it; lists of the revoked
    with numbers above ``list_kept`` and below ``list_base`` were signed by a source that is lost."""

    base: int
    list_kept: int
    list_base: int


class Port(Protocol):
    """How members are told and asked."""

    def tell(self, site: str, what: str, body: Any) -> None:
        """Tell a machine something if it is connected; else it learns of it when it greets."""

    async def ask(self, site: str, what: str, body: Any) -> Any:
        """Ask a machine; ``NoAnswer`` where there is none."""


class Members:
    """The source's side of identity."""

    def __init__(
        self, log: SourceLog, alone: OneWriter, identity: OwnIdentity, authority: Authority, links: Links,
        catalog: Catalog, view: LogView, port: Port,
    ) -> None:  # fmt: skip
        self._log, self._alone, self._identity, self._authority = log, alone, identity, authority
        self._links, self._catalog, self._view, self._port = links, catalog, view, port
        self._admissions = Admissions(log, authority, alone)
        self.departed = Departed(log, alone)
        kept = log.get_state(RESTORED)
        self._restored = Restored(0, 0, 0) if kept is None else msgspec.json.decode(kept, type=Restored)

    # In and out.

    def invite(self, site: str, roles: Sequence[str], hours: float, address: Address) -> dict[str, Any]:
        """Invite a machine to join at an address; return the token."""
        if not 0 < hours <= _LONGEST_HOURS:
            raise NoAnswer(
                f"a token that is good for {hours:g} hours; expected more than 0, at most {_LONGEST_HOURS:,}"
            )
        is_revoked = site in self._links.revocations.sites
        is_member = site in self._catalog.sites and not is_revoked and not self._admissions.has_ended(site)
        if site == self._identity.credential.member.site or is_member:
            raise NoAnswer(f"{site} is a member already; choose another name, or revoke it first")
        token = self._admissions.invite(site, roles, hours, address, self._links.revocations.number)
        return {"site": site, "token": token}

    async def admit(self, enroller: Enroller, application: Application) -> bytes:
        """Return the last answer to who joins."""
        chain = self._admissions.admit(application)
        self.departed.returned(verify_chain_at_any_time(chain, self._authority.root).site)
        settings = self._identity.credential.settings
        return enroller.admit(chain, settings, max(self._links.revocations.number, 0))

    def renew(self, member: Member, asked: Renew) -> tuple[bytes, bytes]:
        """Return a member's next certificates."""
        return self._admissions.renew(member, asked, self._links.revocations)

    async def revoke(self, site: str) -> dict[str, Any]:
        """Cut a machine off, everywhere."""
        if site == self._identity.credential.member.site:
            raise NoAnswer("the source cannot be revoked")
        told = self.let_go(site)
        await self._enforce(self._links.revocations, [site])
        return told

    def check_known(self, site: str) -> None:
        """Raise ``NoAnswer`` for a machine that was never invited here: a name that was mistyped, most likely."""
        if site not in self._catalog.sites and not self._admissions.knows(site):
            raise NoAnswer(
                f"there is no machine {site}; 'distributary status' lists them. With --force the name is revoked "
                f"all the same (a restored source may not know a machine that joined after the backup)"
            )

    def let_go(self, site: str, how: str = REVOKED) -> dict[str, Any]:
        """Strike a machine out: from now on it makes no new link. ``farewell`` ends those it has. ``how``: it was
        revoked, or has left."""
        self._admissions.withdraw(site)
        found = self._links.revocations.extended(
            self._authority.intermediate, self._identity.now(), sites=[site],
            dht_key=self._identity.rotate_dht_key().number,
        )  # fmt: skip
        self._alone(self._log.put_state, _LIST, found.encoded)
        self._links.revocations = found
        self.departed.went([site], how)
        return {"site": site, "list": found.number}

    async def farewell(self, site: str) -> None:
        """End what a machine that leaves still has, once it has heard the answer."""
        with trio.move_on_after(_FAREWELL_S):
            while site in self._links.sites:  # noqa: ASYNC110  # nobody is told when a link has gone but one listener
                await trio.sleep(_FAREWELL_S / 20)
        try:
            await self._enforce(self._links.revocations, [site])
        except StorageError as exc:  # ``let_go`` has kept the list
            _LOG.error("not kept again", extra={"site": site, "reason": str(exc)})
            self._links.revoked(self._links.revocations)

    async def _enforce(self, found: RevocationList, sites: Iterable[str]) -> None:
        """Keep a list, end what it ends, and tell the others. ``sites``: who is revoked newly."""
        gone = set(sites)
        self._alone(self._log.put_state, _LIST, found.encoded)
        self._links.revoked(found)
        for other in self._links.sites:
            if other not in gone:  # its connection is being ended
                self._port.tell(other, "revocations", found.encoded)
                self._port.tell(other, "dht_key", self.dht_key())
        for site in sorted(gone):
            for name in self._catalog.owned_by(site):
                await self._catalog.withdraw(name)

    def dht_key(self) -> dict[str, Any]:
        """Return the DHT's key, as members are told it."""
        key = self._identity.credential.settings.dht_keys.current
        return {"number": key.number, "secret": key.secret}

    # Greetings.

    async def greeted(self, member: Member, asked: Greet) -> dict[str, Any]:
        """Compare what a machine has with what the source has; say what is in force."""
        self._check_log(member.site, asked)
        await self._learn_list(member.site, asked.revocations)
        if self._links.revocations.is_revoked(member):
            raise NoAnswer(f"{member.site} is revoked")
        every = self._catalog.greeted(member, asked)
        if asked.is_first:
            await self._catalog.take_back(member.site)
        ended, unknown = self._catalog.compared(member.site, asked.subscriptions)
        return {
            "generation": self._view.generation,
            "source": [str(one) for one in self._identity.credential.settings.source],
            "revocations": self._links.revocations.encoded,
            "dht_key": self.dht_key(),
            "machines": self._catalog.neighbours(member.site, _MACHINES_TOLD),
            **(self._catalog.configurations_of(member.site) if asked.in_parts else {"configurations": every}),
            "ended": ended,
            "unknown": unknown,
        }

    def _check_log(self, site: str, asked: Greet) -> None:
        """Refuse a machine that has seen more of the log than there is: it would miss documents silently."""
        generation, last, base = self._view.generation, self._view.last, self._restored.base
        wrong = ""
        if asked.generation > generation:
            wrong = f"it has seen generation {asked.generation} of the log, and here it is {generation}"
        elif asked.generation == generation and asked.frontier > last:
            wrong = f"it has document {asked.frontier:,} of this generation, and here the last is {last:,}"
        elif asked.generation < generation and asked.frontier > base:
            wrong = f"it has document {asked.frontier:,} of before the restore, which counted on from {base:,}"
        if wrong:
            _LOG.error("this source is older than what a machine has seen", extra={"site": site, "reason": wrong})
            raise NoAnswer(
                f"{wrong}: the source's files are an older copy; make a new home from a backup with "
                f"'distributary network restore FILE --home NEW --above {asked.frontier}'"
            )

    async def _learn_list(self, site: str, number: int) -> None:
        """Take over a list that the lost source signed after the backup was made."""
        known = self._links.revocations
        if not self._restored.list_kept < number < self._restored.list_base:
            return
        lost = await self._port.ask(site, "your_revocations", None)
        found = decode_list_untrusted(lost, self._identity.credential.root, self._identity.now())
        news = [one for one, entry in found.sites.items() if known.sites.get(one) != entry]
        if not news and found.serials.keys() <= known.serials.keys():
            return
        _LOG.warning("revocations of before the restore", extra={"sites": news, "told_by": site})
        self.departed.went(news, REVOKED)
        dht_key = self._identity.rotate_dht_key()
        merged = known.merged(found, self._authority.intermediate, dht_key=dht_key.number)
        await self._enforce(merged, news)

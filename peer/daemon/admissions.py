"""Who is let into the network: invitations, kept before they are shown or redeemed, and certificates."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from overlay.identity import Invitations, Role, invite
from overlay.identity.certificates import verify_chain_at_any_time
from overlay.identity.renewal import check_renewal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overlay.identity import Address, Application, Authority, Member, RevocationList
    from peer.daemon.one_writer import OneWriter
    from peer.daemon.requests import Renew
    from peer.storage.source_log import SourceLog

_LOG: Final = logging.getLogger("distributary.source")
_STATE: Final = "invitations"
_ENDS: Final = "certificate_ends"


class Admissions:
    """The source's invitations; every change is on disk before anybody learns of it."""

    def __init__(self, log: SourceLog, authority: Authority, alone: OneWriter) -> None:
        self._log, self._authority, self._alone = log, authority, alone
        kept = log.get_state(_STATE)
        self._ends: dict[str, float] = msgspec.json.decode(log.get_state(_ENDS) or b"{}")
        self._invitations = Invitations() if kept is None else Invitations.restored(msgspec.json.decode(kept))

    def invite(self, site: str, roles: Sequence[str], hours: float, address: Address, since: int) -> str:
        """Invite a machine and return the token; ``since``: the number of the revocation list in force."""
        token = invite(
            self._invitations, site, [Role(role) for role in roles], datetime.now(UTC),
            ttl=timedelta(hours=hours), root=self._authority.root, addresses=(address,), since=since,
        )  # fmt: skip
        self._keep()
        return token

    def withdraw(self, site: str) -> None:
        """Forget the invitations for a machine."""
        self._invitations.withdraw(site)
        self._keep()

    def admit(self, application: Application) -> tuple[bytes, bytes]:
        """Redeem an invitation and return the certificates; ``InvitationRefused`` if there is none to redeem."""
        now = datetime.now(UTC)
        admission = self._invitations.redeem(application.secret, application.public_key, now)
        self._keep()
        chain = self._authority.issue(
            application.public_key, admission.site, admission.roles, now, since=admission.since
        )
        self._keep_end(admission.site, chain)
        return chain

    def renew(self, member: Member, asked: Renew, revocations: RevocationList) -> tuple[bytes, bytes]:
        """Return the next certificates of the member at the other end of a link: same site, same roles."""
        check_renewal(member, asked.public_key, asked.proof)
        chain = self._authority.renew(member, asked.public_key, datetime.now(UTC), revocations)
        self._keep_end(member.site, chain)
        _LOG.info("renewed", extra={"site": member.site})
        return chain

    def knows(self, site: str) -> bool:
        """Whether a machine was ever invited here, or let in."""
        return site in self._ends or site in self._invitations

    def has_ended(self, site: str) -> bool:
        """Whether a machine's last certificate has ended, so that it can only be let in anew."""
        return datetime.now(UTC).timestamp() >= self._ends.get(site, float("inf"))

    def _keep_end(self, site: str, chain: tuple[bytes, bytes]) -> None:
        self._ends[site] = verify_chain_at_any_time(chain, self._authority.root).not_after.timestamp()
        self._alone(self._log.put_state, _ENDS, msgspec.json.encode(self._ends))

    def _keep(self) -> None:
        self._alone(self._log.put_state, _STATE, msgspec.json.encode(self._invitations.export()))

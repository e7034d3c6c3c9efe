"""Who is let into the network: invitations, kept before they are shown or redeemed, and certificates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from overlay.identity import Invitations, Role, invite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overlay.identity import Address, Application, Authority
    from peer.daemon.one_writer import OneWriter
    from peer.storage.source_log import SourceLog

_STATE = "invitations"


class Admissions:
    """The source's invitations; every change is on disk before anybody learns of it."""

    def __init__(self, log: SourceLog, authority: Authority, alone: OneWriter) -> None:
        self._log, self._authority, self._alone = log, authority, alone
        kept = log.get_state(_STATE)
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
        return self._authority.issue(
            application.public_key, admission.site, admission.roles, now, since=admission.since
        )

    def _keep(self) -> None:
        self._alone(self._log.put_state, _STATE, msgspec.json.encode(self._invitations.export()))

"""This machine's identity while its daemon runs: certificates are renewed, DHT keys change, and users hear of it.

TLS contexts are made anew from the identity folder when the certificate is, so a new one counts for new links at
once; links that stand go on until the certificate they were made with has ended.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from random import SystemRandom
from typing import TYPE_CHECKING, Any, Final

import trio

from overlay.identity import BadCredential, DhtKey, IdentityError, NotPermitted, Role
from overlay.identity.renewal import ask_renewal, renew_source, renewal_due, take_renewal
from peer.daemon.questions import NoAnswer
from peer.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from overlay.identity import Address, Authority, Credential, NetworkSettings

_LOG: Final = logging.getLogger("distributary.identity")
# How often the wall clock is looked at: it may be set, and a machine may sleep, while timers stand still.
_LOOK_S: Final = 600.0
_AGAIN_S: Final = 300.0


def current_time() -> datetime:
    """Return the time of the wall clock."""
    return datetime.now(UTC)


@dataclass(eq=False)
class OwnIdentity:
    """The credential of this machine, and who uses it. ``now`` is the wall clock."""

    credential: Credential
    now: Callable[[], datetime] = current_time
    users: list[Callable[[Credential], None]] = field(default_factory=list)

    def replaced_by(self, credential: Credential) -> None:
        """Go on with another credential, which is on disk."""
        self.credential = credential
        for use in self.users:
            use(credential)

    def check_not_ended(self) -> None:
        """Raise ``BadCredential`` if the certificate has ended: nobody would talk to this machine."""
        member = self.credential.member
        if self.credential.is_expired(self.now()):
            raise BadCredential(
                self.credential.folder / "chain.pem", f"the certificate ended on {ending(self.credential)}",
                f"at the source run 'distributary network invite {member.site}', and here 'distributary network "
                f"join TOKEN'; what is stored here stays",
            )  # fmt: skip

    def check_not_source(self) -> None:
        """Raise ``BadCredential`` if this is the source's: a peer would write into its files."""
        if Role.SOURCE in self.credential.member.roles:
            raise BadCredential(
                self.credential.folder.parent, "this is the source's folder",
                "run 'distributary source run' here, or name another folder with --home",
            )  # fmt: skip

    def take_dht_key(self, number: int, secret: bytes) -> None:
        """Use a newer DHT key of the source; ``NotPermitted`` for an older one, which somebody repeats. Under the
        same number it replaces what a neighbour may have said."""
        settings = self.credential.settings
        known = settings.dht_keys.current
        if number < known.number:
            raise NotPermitted("source", f"the DHT key {number} is older than {known.number}, which is in use")
        told = DhtKey(number, secret)
        keys = (
            replace(settings.dht_keys, current=told)
            if number == known.number
            else (settings.dht_keys.succeeded_by(told, self.now()))
        )
        if keys != settings.dht_keys:
            _LOG.info("DHT key", extra={"number": number})
            self._learnt(replace(settings, dht_keys=keys))

    def rotate_dht_key(self) -> DhtKey:
        """Make a new DHT key, as the source does when somebody is not a member any more."""
        settings = self.credential.settings
        keys = settings.dht_keys.rotated(self.now())
        self.replaced_by(self.credential.with_settings(replace(settings, dht_keys=keys)))
        return keys.current

    def keep_source_at(self, addresses: tuple[Address, ...]) -> None:
        """Remember where the source is."""
        settings = self.credential.settings
        if addresses and settings.source != addresses:
            self._learnt(replace(settings, source=addresses))

    def _learnt(self, settings: NetworkSettings) -> None:
        """Go on with settings that the source tells again: without room on the disk they count for this run."""
        try:
            self.replaced_by(self.credential.with_settings(settings))
        except OSError as exc:
            _LOG.warning("not remembered", extra={"file": "network.json", "reason": str(exc)})
            self.replaced_by(replace(self.credential, settings=settings))

    async def keep_renewed(self, renew: Callable[[], Awaitable[None]]) -> None:
        """Renew whenever it is time, until cancelled; what goes wrong is logged, and tried again."""
        jitter = SystemRandom().random()
        while True:
            left = (renewal_due(self.credential.member, jitter) - self.now()).total_seconds()
            if left > 0:
                await trio.sleep(min(left, _LOOK_S))
                continue
            try:
                await renew()
            except (NoAnswer, IdentityError, StorageError, OSError, TypeError) as exc:
                ends = ending(self.credential)
                _LOG.warning("certificate not renewed", extra={"reason": str(exc), "ends": ends})
                await trio.sleep(_AGAIN_S * (0.5 + SystemRandom().random()))
                continue
            jitter = SystemRandom().random()
            _LOG.info("certificate renewed", extra={"ends": ending(self.credential)})

    async def renew_by(self, ask_source: Callable[[str, Any], Awaitable[Any]]) -> None:
        """Renew a member's certificate: the source is asked for it."""
        public_key, proof = ask_renewal(self.credential)
        chain = await ask_source("renew", {"public_key": public_key, "proof": proof})
        self.replaced_by(take_renewal(self.credential, chain, self.now()))

    def renew_as_source(self, authority: Authority) -> None:
        """Renew the source's own certificate."""
        self.replaced_by(renew_source(self.credential, authority, self.now()))
        if authority.intermediate_needs_renewal(self.now()):
            _LOG.error(
                "the authority's intermediate certificate ends soon",
                extra={"ends": f"{authority.intermediate.certificate.not_valid_after_utc:%Y-%m-%d}"},
            )


def ending(credential: Credential) -> str:
    """Return when a certificate ends, to the second and for people."""
    return f"{credential.member.not_after.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"

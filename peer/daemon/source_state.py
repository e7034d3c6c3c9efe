"""What the source remembers besides its log: the revoked, and who is fed by whom."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from overlay.content.journal import number_in
from overlay.identity import Address, IdentityError, RevocationList, first_list, read_own_list
from overlay.wire.connection import Patience
from peer.hosting.configuration import MalformedConfiguration
from peer.steering.entries import Entry, SiteEntry
from peer.steering.steering import Steering
from peer.storage.earlier_spaces import take_over
from peer.storage.log_values import Missing, Retention
from peer.storage.source_log import SourceLog

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from overlay.identity import Authority, Credential
    from peer.daemon.permits import Permits
    from peer.hosting.configuration import Configuration


_LOG: Final = logging.getLogger("distributary.source")


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """Where the source listens for members and for those who join, how others reach it (where it listens, if not
    said), how many feeds it bears, what it keeps, and after how long it plans around a machine that stays away."""

    host: str = "127.0.0.1"
    port: int = 0
    enrolment_port: int = 0
    feeds: int | None = None
    addresses: tuple[Address, ...] = ()
    retention: Retention = field(default_factory=Retention)
    patience: Patience = field(default_factory=Patience)
    away_s: float = 60.0

    def reached_at(self, port: int) -> tuple[Address, ...]:
        """Where members reach the source that listens on a port."""
        return self.addresses or (Address(self.host, port),)

    def joined_at(self, port: int) -> Address:
        """Where machines join: on another port of the first address."""
        return Address(self.addresses[0].host if self.addresses else self.host, port)


def opened_log(home: Path, retention: Retention) -> SourceLog:
    """Open the log in a home; spaces that were kept beside it before are taken over."""
    log = SourceLog.open(home / "source.sqlite", limits=retention)
    take_over(log, home / "spaces.sqlite", number_in)
    return log


def known_revocations(log: SourceLog, credential: Credential, authority: Authority) -> RevocationList:
    """Read the list of the revoked, or make the first; one that an earlier intermediate signed is signed again."""
    kept = log.get_state("revocations")
    if kept is not None:
        known = read_own_list(kept, credential.root)
        found = known.signed_again(authority.intermediate)
        if found.encoded != known.encoded:
            log.put_state("revocations", found.encoded)
        return found
    dht_key = credential.settings.dht_keys.current.number
    found = first_list(credential.root.network, authority.intermediate, dht_key=dht_key)
    log.put_state("revocations", found.encoded)
    return found


def restored_steering(
    log: SourceLog, permits: Permits, source: str, feeds: int | None, down: Collection[str] = ()
) -> tuple[Steering, list[Configuration]]:
    """Make the steering again from the catalog; also the configurations that had to change. ``down``: machines
    that feed nobody."""
    return Steering.restored(
        source,
        feeds,
        sites=[SiteEntry(site.name, site.capacity, site.name in down) for site in log.sites()],
        entries=[Entry(one.id, one.pattern, one.site, one.limit, one.start) for one in log.subscriptions()],
        configurations=_opened(log, permits),
        generation=log.generation,
        epoch=int(log.get_state("epoch") or b"0"),
    )


def snapshot_of(steering: Steering, log: SourceLog, feeds: int | None, documents: int) -> dict[str, Any]:
    """Return what a full plan starts from: the catalog, the machines, and the newest documents as a sample.

    A machine that is away or set aside feeds nobody, but its subscriptions are fed: it has the limit 0."""
    extent = log.extent()
    newest = log.documents(max(extent.last - 4 * documents, extent.lowest), extent.last, 64 << 20)
    sample = [one.body for one in newest if not isinstance(one, Missing)][-documents:]
    return {
        "epoch": steering.epoch,
        "source_feeds": feeds,
        "sites": [[site.name, 0 if site.is_down else site.limit] for site in steering.sites()],
        "subscriptions": [[e.subscription, e.pattern, e.site, e.limit] for e in steering.entries()],
        "documents": sample,
    }


def _opened(log: SourceLog, permits: Permits) -> list[Configuration]:
    """Open the configurations that were kept; one that cannot be opened is made anew."""
    found = []
    for one in log.configurations():
        try:
            found.append(permits.open_kept(one.body))
        except (IdentityError, MalformedConfiguration) as exc:
            _LOG.warning("not kept", extra={"subscription": one.subscription, "reason": str(exc)})
    return found

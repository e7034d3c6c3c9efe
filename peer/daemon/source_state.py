"""What the source remembers besides its log: invitations, the revoked, and who is fed by whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from overlay.identity import Invitations, RevocationList, first_list, read_own_list
from peer.steering.entries import Entry, SiteEntry
from peer.steering.steering import Steering

if TYPE_CHECKING:
    from overlay.identity import Authority, Credential
    from peer.daemon.permits import Permits
    from peer.hosting.configuration import Configuration
    from peer.storage.source_log import SourceLog


def known_invitations(log: SourceLog) -> Invitations:
    """Read the invitations that are open."""
    kept = log.get_state("invitations")
    return Invitations() if kept is None else Invitations.restored(msgspec.json.decode(kept))


def known_revocations(log: SourceLog, credential: Credential, authority: Authority) -> RevocationList:
    """Read the list of the revoked, or make the first."""
    kept = log.get_state("revocations")
    if kept is not None:
        return read_own_list(kept, credential.root)
    dht_key = credential.settings.dht_keys.current.number
    found = first_list(credential.root.network, authority.intermediate, dht_key=dht_key)
    log.put_state("revocations", found.encoded)
    return found


def restored_steering(
    log: SourceLog, permits: Permits, source: str, feeds: int | None
) -> tuple[Steering, list[Configuration]]:
    """Make the steering again from the catalog; also the configurations that had to change."""
    return Steering.restored(
        source,
        feeds,
        sites=[SiteEntry(site.name, site.capacity) for site in log.sites()],
        entries=[Entry(one.id, one.pattern, one.site, one.limit, one.start) for one in log.subscriptions()],
        configurations=[permits.open(one.body) for one in log.configurations()],
        generation=log.generation,
        epoch=int(log.get_state("epoch") or b"0"),
    )

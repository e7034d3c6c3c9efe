"""The network's authority, at the source: who may become a member, and as what.

    authority/root.key  authority/root.pem  authority/intermediate.key  authority/intermediate.pem

``root.key`` should be moved offline as soon as the network is made: who has it can make a network that every
member takes for this one. Nothing here needs it but ``renew_intermediate``, once in two years. The
intermediate's key stays, and issues and renews the certificates of sites and signs revocation lists.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import load_pem_x509_certificate

from overlay.identity.certificates import Root, verify_intermediate
from overlay.identity.credential import Credential, install, prepare_key
from overlay.identity.dht_keys import DhtKeys, fresh_dht_key
from overlay.identity.errors import BadCredential, NotPermitted, Untrusted
from overlay.identity.issuing import Issuer, make_intermediate, make_root, make_site
from overlay.identity.keys import KeyPlace, fresh_key, load_key, public_bytes, save_key
from overlay.identity.member import Role, check_name
from overlay.identity.private_files import make_private_folder, read_public, sync_folder, write_private
from overlay.identity.settings import NetworkSettings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime
    from pathlib import Path

    from overlay.identity.address import Address
    from overlay.identity.member import Member
    from overlay.identity.revocation import RevocationList

_REMEDY: Final = "restore the folder 'authority' from a backup"
_BRING_ROOT: Final = "bring root.key back from where it is kept offline, and renew the intermediate"
# So early that the sites' own certificates are not cut short by the intermediate's end.
_RENEW_BEFORE: Final = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class Authority:
    """The right to issue a network's certificates."""

    folder: Path
    root: Root
    intermediate: Issuer

    @classmethod
    def load(cls, folder: Path) -> Authority:
        """Read the authority, or raise ``BadCredential``; ``root.key`` need not be there."""
        try:
            certificate = load_pem_x509_certificate(read_public(folder / "root.pem", _REMEDY))
            root = Root.from_der(certificate.public_bytes(Encoding.DER))
            key, (intermediate, *_) = _intermediate_place(folder).load(_REMEDY)
            verify_intermediate(intermediate.public_bytes(Encoding.DER), root)
        except (ValueError, Untrusted) as exc:
            raise BadCredential(folder, str(exc), _REMEDY) from exc
        return cls(folder, root, Issuer(intermediate, key))

    def issue(
        self, public_key: bytes, site: str, roles: Collection[Role], now: datetime, *, since: int
    ) -> tuple[bytes, bytes]:
        """Issue a certificate to the holder of a key, who has proved to hold it; return its chain.

        ``since`` comes with the invitation. The role of the source is not given here: there is one source.
        """
        if Role.SOURCE in roles:
            raise NotPermitted(site, "a network has one source; see issue_to_source")
        return self._issue(public_key, site, roles, now, since)

    def issue_to_source(
        self, public_key: bytes, site: str, now: datetime, *, since: int = 0
    ) -> tuple[bytes, bytes]:
        """Issue the source's own certificate, first or anew; return its chain."""
        return self._issue(public_key, site, {Role.SOURCE}, now, since)

    def renew(
        self, member: Member, public_key: bytes, now: datetime, revocations: RevocationList
    ) -> tuple[bytes, bytes]:
        """Issue a new certificate to a verified member: same site, same roles; return its chain.

        The key may be new. Raises ``NotPermitted`` for the revoked, ``Untrusted`` for the expired and strangers.
        """
        if member.network != self.root.network:
            raise Untrusted(f"certificate of {member.site}", f"it is not of the network {self.root.network}")
        member.check_time(now)
        if revocations.is_revoked(member):
            raise NotPermitted(member.site, "it is revoked; a new invitation lets it join again")
        return self._issue(public_key, member.site, member.roles, now, member.since)

    def intermediate_needs_renewal(self, now: datetime) -> bool:
        """Tell whether it is time to fetch ``root.key`` from where it is kept."""
        return now >= self.intermediate.certificate.not_valid_after_utc - _RENEW_BEFORE

    def renew_intermediate(self, now: datetime) -> Authority:
        """Replace the intermediate, durably; needs ``root.key``. Chains under the old one stay valid."""
        root_key = load_key(self.folder / "root.key", _BRING_ROOT)
        if root_key.public_key() != self.root.certificate.public_key():
            raise BadCredential(self.folder / "root.key", "it is not this network's", _BRING_ROOT)
        place = _intermediate_place(self.folder)
        key = place.prepare()
        root = Issuer(self.root.certificate, root_key)
        certificate = make_intermediate(key.public_key(), root, self.root.network, now)
        place.commit(certificate.public_bytes(Encoding.PEM))
        return Authority.load(self.folder)

    def _issue(
        self, public_key: bytes, site: str, roles: Collection[Role], now: datetime, since: int
    ) -> tuple[bytes, bytes]:
        if now >= self.intermediate.certificate.not_valid_after_utc:
            raise BadCredential(self.folder / "intermediate.pem", "the certificate has ended", _BRING_ROOT)
        return make_site(
            public_key, self.intermediate, now, network=self.root.network, site=site, roles=roles, since=since
        )


@dataclass(frozen=True, slots=True)
class NewNetwork:
    """A network just made: its authority, and the source's own credential."""

    authority: Authority
    credential: Credential

    @property
    def advice(self) -> str:
        """What the user has to do now, in one line."""
        key = self.authority.folder / "root.key"
        end = self.authority.intermediate.certificate.not_valid_after_utc - _RENEW_BEFORE
        return (
            f"Move {key} to a place that is not on any network, and keep it: only renewing the intermediate "
            f"certificate needs it, from {end:%Y-%m-%d} on"
        )


def create_network(
    home: Path, name: str, now: datetime, *, site: str = "source", addresses: Iterable[Address] = ()
) -> NewNetwork:
    """Make a network in a folder: the authority, then the source's credential; finishes what a crash cut short.

    Raises ``BadCredential`` if the folder has a network or a membership already.
    """
    check_name("network", name)
    check_name("site", site)
    folder, identity = home / "authority", home / "identity"
    if (identity / "chain.pem").exists():
        raise BadCredential(home, "this machine is a member of a network already", "choose another folder")
    if not folder.exists():
        _create_authority(folder, name, now)
    authority = Authority.load(folder)
    if authority.root.network != name:
        raise BadCredential(folder, f"it is the authority of {authority.root.network}", "choose another folder")
    chain = authority.issue_to_source(public_bytes(prepare_key(identity)), site, now)
    settings = NetworkSettings(name, tuple(addresses), DhtKeys(fresh_dht_key(1)))
    return NewNetwork(authority, install(identity, authority.root, settings, chain))


def _create_authority(folder: Path, name: str, now: datetime) -> None:
    # All or nothing: the folder gets its name when it is complete.
    partial = folder.with_name(folder.name + ".partial")
    if partial.exists():
        shutil.rmtree(partial)
    make_private_folder(partial)
    root, issuer = make_root(fresh_key(), name, now)
    key = fresh_key()
    intermediate = make_intermediate(key.public_key(), issuer, name, now)
    save_key(partial / "root.key", issuer.key)
    save_key(_intermediate_place(partial).key, key)
    write_private(partial / "root.pem", root.certificate.public_bytes(Encoding.PEM))
    write_private(_intermediate_place(partial).certificates, intermediate.public_bytes(Encoding.PEM))
    partial.rename(folder)
    sync_folder(folder.parent)


def _intermediate_place(folder: Path) -> KeyPlace:
    return KeyPlace(folder / "intermediate.key", folder / "intermediate.pem")

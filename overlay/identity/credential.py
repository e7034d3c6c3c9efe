"""What a site is on disk: its key, its chain, the root it trusts, and what it knows of its network.

    identity/key.pem  identity/chain.pem  identity/root.pem  identity/network.json

The root and the settings are written first and the chain last: a site is a member from the instant its chain is in
place (``keys`` tells how the key changes with it). Joining and renewing go alike: ``prepare_key``, show the public
key to the source, ``install`` what it answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import load_der_x509_certificate, load_pem_x509_certificate

from overlay.identity import tls
from overlay.identity.certificates import Root, member_of_tls_peer, verify_chain_at_any_time
from overlay.identity.errors import BadCredential, NotPermitted, Untrusted
from overlay.identity.keys import KeyPlace, public_bytes
from overlay.identity.private_files import make_private_folder, read_public, write_private
from overlay.identity.settings import NetworkSettings

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from overlay.identity.member import Member
    from overlay.identity.revocation import RevocationList

_REMEDY: Final = "restore it from a backup, or join the network again"


@dataclass(frozen=True, slots=True)
class Signer:
    """A member with its chain and its private key."""

    member: Member
    chain: tuple[bytes, bytes]
    key: Ed25519PrivateKey = field(repr=False, compare=False)  # equal certificates have equal keys

    @classmethod
    def of(cls, key: Ed25519PrivateKey, chain: Sequence[bytes], root: Root) -> Signer:
        """Make a signer, or raise ``Untrusted`` if the chain is not the network's or not this key's."""
        member = verify_chain_at_any_time(chain, root)
        if public_bytes(key) != member.public_key:
            raise Untrusted(f"certificate of {member.site}", "it is not for the key that was made for it")
        return cls(member, (chain[0], chain[1]), key)


@dataclass(frozen=True, slots=True)
class Credential:
    """A site's identity as it lies in a folder."""

    folder: Path
    signer: Signer
    root: Root
    settings: NetworkSettings

    @classmethod
    def load(cls, folder: Path) -> Credential:
        """Read a credential, expired or not, or raise ``BadCredential``."""
        if not (folder / "chain.pem").exists():
            raise BadCredential(
                folder, "this machine is not a member of a network", "run: distributary network join"
            )
        key, certificates = key_place(folder).load(_REMEDY)
        try:
            root = _read_root(folder)
            signer = Signer.of(key, [cert.public_bytes(Encoding.DER) for cert in certificates], root)
        except Untrusted as exc:
            raise BadCredential(folder / "chain.pem", str(exc), _REMEDY) from exc
        settings = NetworkSettings.load(folder / "network.json")
        if settings.network != root.network:
            raise BadCredential(folder / "network.json", f"it is not of the network {root.network}", _REMEDY)
        return cls(folder, signer, root, settings)

    @property
    def member(self) -> Member:
        """Who the site is."""
        return self.signer.member

    def needs_renewal(self, now: datetime) -> bool:
        """Tell whether a third of the certificate's lifetime or less is left."""
        return now >= self.member.not_after - (self.member.not_after - self.member.not_before) / 3

    def is_expired(self, now: datetime) -> bool:
        """Tell whether the certificate has ended: only a new invitation helps."""
        return now >= self.member.not_after

    def with_settings(self, settings: NetworkSettings) -> Credential:
        """Replace the settings, durably."""
        settings.save(self.folder / "network.json")
        return replace(self, settings=settings)

    def server_context(self) -> ssl.SSLContext:
        """Return the TLS context that accepts links from members only; make a new one after renewing."""
        return tls.member_server_context(key_place(self.folder), self.folder / "root.pem")

    def client_context(self) -> ssl.SSLContext:
        """Return the TLS context that opens links to members only; make a new one after renewing."""
        return tls.member_client_context(key_place(self.folder), self.folder / "root.pem")

    def enrolment_context(self) -> ssl.SSLContext:
        """Return the source's TLS context for those who join; ``Enroller`` takes the signer of this credential."""
        return tls.enrolment_server_context(key_place(self.folder))

    def peer(self, leaf_der: bytes, now: datetime, revocations: RevocationList) -> Member:
        """Return who is at the other end of a link made with these contexts, from its leaf certificate.

        Raises ``Untrusted``, or ``NotPermitted`` for the revoked.
        """
        member = member_of_tls_peer(leaf_der, self.root, now)
        if revocations.is_revoked(member):
            raise NotPermitted(member.site, "it is revoked")
        return member


def key_place(folder: Path) -> KeyPlace:
    """Return where a credential's key and chain lie."""
    return KeyPlace(folder / "key.pem", folder / "chain.pem")


def prepare_key(folder: Path) -> Ed25519PrivateKey:
    """Return the key to join or renew with; the same one until it is installed, so a retry shows the same."""
    make_private_folder(folder)
    return key_place(folder).prepare()


def install(folder: Path, root: Root, settings: NetworkSettings, chain: Sequence[bytes]) -> Credential:
    """Save what the source answered for the prepared key, durably, and return the credential.

    Raises ``Untrusted`` if the chain is not for that key, ``BadCredential`` if the folder is another network's.
    """
    if (folder / "root.pem").exists() and (folder / "chain.pem").exists() and _read_root(folder) != root:
        raise BadCredential(folder, "it belongs to another network", "choose another folder, or remove this one")
    Signer.of(prepare_key(folder), chain, root)
    write_private(folder / "root.pem", root.certificate.public_bytes(Encoding.PEM))
    settings.save(folder / "network.json")
    pem = b"".join(load_der_x509_certificate(der).public_bytes(Encoding.PEM) for der in chain)
    key_place(folder).commit(pem)
    return Credential.load(folder)


def _read_root(folder: Path) -> Root:
    path = folder / "root.pem"
    try:
        certificate = load_pem_x509_certificate(read_public(path, _REMEDY))
    except ValueError as exc:
        raise BadCredential(path, "it holds no certificate that can be read", _REMEDY) from exc
    return Root.from_der(certificate.public_bytes(Encoding.DER))

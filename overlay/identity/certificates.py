"""Certificates: what each kind says, and how a chain of them is checked.

A network has one root, which signs intermediates, which sign sites; all keys are Ed25519. Each certificate names
its network, a site's also the roles and ``since`` (see ``Member``), as URIs among its alternative names:

    distributary:network:N    distributary:role:R    distributary:since:K

A chain is exactly (site, intermediate). Signatures are checked before anything that a certificate says is read.
Roles and URIs unknown here are passed over: they grant nothing, and newer versions may add some.
"""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.utils import CryptographyDeprecationWarning
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID, NameOID

from overlay.identity.errors import BadName, Untrusted
from overlay.identity.keys import public_bytes
from overlay.identity.member import Member, Role, check_name, check_validity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

NETWORK: Final = "distributary:network:"
ROLE: Final = "distributary:role:"
SINCE: Final = "distributary:since:"
LARGEST_CERTIFICATE: Final = 2048
MOST_SINCE: Final = 10**15

_UNDERSTOOD: Final = {ExtensionOID.BASIC_CONSTRAINTS, ExtensionOID.KEY_USAGE, ExtensionOID.EXTENDED_KEY_USAGE}
_FOREIGN: Final = (
    CryptographyDeprecationWarning,
    ValueError,
    TypeError,
    InvalidSignature,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.ExtensionNotFound,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)


@dataclass(frozen=True, slots=True)
class Root:
    """The certificate that a network's trust begins with; made only from one that is sound in itself."""

    certificate: x509.Certificate
    network: str

    @classmethod
    def from_der(cls, der: bytes) -> Root:
        """Read a root certificate, or raise ``Untrusted``; whether it is the right one the caller has to know."""
        what = "root certificate"
        certificate = _read(der, what)
        _check_issued(certificate, certificate, what)
        _check_authority(certificate, 1, what)
        return cls(certificate, _network(certificate, what))

    @property
    def der(self) -> bytes:
        """The certificate as bytes."""
        return self.certificate.public_bytes(Encoding.DER)

    @property
    def fingerprint(self) -> bytes:
        """The SHA-256 of the certificate: who knows it can tell this root from any other."""
        return hashlib.sha256(self.der).digest()


def verify_chain(chain_der: Sequence[bytes], root: Root, now: datetime) -> Member:
    """Return the member that a chain (site, intermediate) proves, or raise ``Untrusted``.

    The caller still has to see whether the member is revoked.
    """
    member = verify_chain_at_any_time(chain_der, root)
    _check_intermediate_time(chain_der[1], root, now)
    member.check_time(now)
    return member


def verify_chain_at_any_time(chain_der: Sequence[bytes], root: Root) -> Member:
    """Return the member of a chain that may have ended: for what lies on one's own disk."""
    if len(chain_der) != 2:
        raise Untrusted(
            "certificate chain", f"it has {len(chain_der)} certificates; a site sends its own and one more"
        )
    intermediate = verify_intermediate(chain_der[1], root)
    certificate = _read(chain_der[0], "certificate")
    _check_issued(certificate, intermediate, "certificate")
    return _member(certificate, root)


def verify_intermediate(der: bytes, root: Root, now: datetime | None = None) -> x509.Certificate:
    """Return an intermediate that the root signed, or raise ``Untrusted``; without ``now`` at any time."""
    what = "intermediate certificate"
    certificate = _read(der, what)
    _check_issued(certificate, root.certificate, what)
    _check_authority(certificate, 0, what)
    if _network(certificate, what) != root.network:
        raise Untrusted(what, f"it is not of the network {root.network}")
    if now is not None:
        _check_intermediate_time(der, root, now)
    return certificate


def member_of_tls_peer(leaf_der: bytes, root: Root, now: datetime) -> Member:
    """Return the member behind a TLS link whose handshake has verified the chain to this root, and only then.

    Python tells the leaf of such a chain alone, so the signatures are taken as verified.
    """
    member = _member(_read(leaf_der, "certificate"), root)
    member.check_time(now)
    return member


def _check_intermediate_time(der: bytes, root: Root, now: datetime) -> None:
    for what, certificate in (
        ("root", root.certificate),
        ("intermediate", _read(der, "intermediate certificate")),
    ):
        begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        check_validity(f"{what} certificate", begin, end, now)


def _read(der: bytes, what: str) -> x509.Certificate:
    if len(der) > LARGEST_CERTIFICATE:
        raise Untrusted(what, f"it has {len(der):,} bytes, and at most {LARGEST_CERTIFICATE:,} are taken")
    with _untrusted(what), warnings.catch_warnings():
        warnings.simplefilter("error", CryptographyDeprecationWarning)  # of a serial number that is not positive
        return x509.load_der_x509_certificate(der)


def _check_issued(certificate: x509.Certificate, issuer: x509.Certificate, what: str) -> None:
    with _untrusted(what, "it was not issued by this network's authority"):
        if not isinstance(issuer.public_key(), Ed25519PublicKey):
            raise Untrusted(what, "its issuer's key is not an Ed25519 key")
        certificate.verify_directly_issued_by(issuer)


def _check_authority(certificate: x509.Certificate, path_length: int, what: str) -> None:
    with _untrusted(what):
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
        usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
        if not (constraints.ca and constraints.path_length == path_length and usage.key_cert_sign):
            raise Untrusted(what, "it may not issue the certificates that it would have to")
    _check_critical(certificate, what)


def _check_critical(certificate: x509.Certificate, what: str) -> None:
    with _untrusted(what):
        unknown = [e.oid.dotted_string for e in certificate.extensions if e.critical and e.oid not in _UNDERSTOOD]
    if unknown:
        raise Untrusted(what, f"it depends on {unknown[0]}, which is not understood here")


def _member(certificate: x509.Certificate, root: Root) -> Member:
    what = "certificate"
    with _untrusted(what):
        extensions = certificate.extensions
        if extensions.get_extension_for_class(x509.BasicConstraints).value.ca:
            raise Untrusted(what, "it is an authority's, not a site's")
        usages = set(extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
        if not {ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH} <= usages:
            raise Untrusted(what, "it is not for both ends of a link")
        key = certificate.public_key()
        names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if not isinstance(key, Ed25519PublicKey) or len(names) != 1:
        raise Untrusted(what, "a site has one name and an Ed25519 key")
    _check_critical(certificate, what)
    if _network(certificate, what) != root.network:
        raise Untrusted(what, f"it is not of the network {root.network}")
    known = {role.value: role for role in Role}
    return Member(
        network=root.network,
        site=_name("site", str(names[0].value), what),
        roles=frozenset(known[name] for name in _uris(certificate, ROLE, what) if name in known),
        serial=certificate.serial_number,
        public_key=public_bytes(key),
        since=_since(certificate, what),
        not_before=certificate.not_valid_before_utc,
        not_after=certificate.not_valid_after_utc,
    )


def _network(certificate: x509.Certificate, what: str) -> str:
    found = _uris(certificate, NETWORK, what)
    if len(found) != 1:
        raise Untrusted(what, "it does not name one network")
    return _name("network", found[0], what)


def _since(certificate: x509.Certificate, what: str) -> int:
    found = _uris(certificate, SINCE, what)
    if len(found) != 1 or not (found[0].isascii() and found[0].isdecimal()) or len(found[0]) > 16:
        raise Untrusted(what, "it does not say since when its site is a member")
    return int(found[0])


def _uris(certificate: x509.Certificate, prefix: str, what: str) -> list[str]:
    with _untrusted(what):
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    return [uri.removeprefix(prefix) for uri in uris if uri.startswith(prefix)]


def _name(kind: str, name: str, what: str) -> str:
    try:
        return check_name(kind, name)
    except BadName as exc:
        raise Untrusted(what, str(exc)) from exc


@contextlib.contextmanager
def _untrusted(what: str, reason: str = "it cannot be read") -> Iterator[None]:
    """Translate the X.509 library's errors."""
    try:
        yield
    except _FOREIGN as exc:
        raise Untrusted(what, reason) from exc

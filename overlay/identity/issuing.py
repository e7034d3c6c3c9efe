"""Making certificates: a root, intermediates, and the certificates of sites.

Validity begins ``SKEW`` before the moment of issue, for machines whose clock is behind, and never outlasts the
issuer's. ``certificates`` says what the parts mean.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from overlay.identity.certificates import MOST_SINCE, NETWORK, ROLE, SINCE, Root
from overlay.identity.errors import BadName
from overlay.identity.member import SKEW, Role, check_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

# Shorter ones end a stolen key's use sooner, and must be renewed more often: a site that is away longer than its
# certificate lives has to be invited again.
SITE_LIFETIME: Final = timedelta(days=30)
INTERMEDIATE_LIFETIME: Final = timedelta(days=730)
ROOT_LIFETIME: Final = timedelta(days=3650)

_NO_USE: Final = dict.fromkeys(
    (
        "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
        "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
    ),
    False,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Issuer:
    """A certificate that may sign others, with its key."""

    certificate: x509.Certificate
    key: Ed25519PrivateKey = field(repr=False, compare=False)  # equal certificates have equal keys

    @property
    def der(self) -> bytes:
        """The certificate as bytes."""
        return self.certificate.public_bytes(Encoding.DER)


def make_root(key: Ed25519PrivateKey, network: str, now: datetime) -> tuple[Root, Issuer]:
    """Make a network's root certificate, which signs itself."""
    check_name("network", network)
    name = _subject(network, "root", authority=True)
    builder = _begin(name, name, key.public_key(), now, now + ROOT_LIFETIME)
    certificate = _finish_authority(builder, key.public_key(), key, network, 1)
    return Root.from_der(certificate.public_bytes(Encoding.DER)), Issuer(certificate, key)


def make_intermediate(public_key: Ed25519PublicKey, root: Issuer, network: str, now: datetime) -> x509.Certificate:
    """Make the certificate of an intermediate, which signs sites only."""
    until = min(now + INTERMEDIATE_LIFETIME, root.certificate.not_valid_after_utc)
    name = _subject(network, "intermediate", authority=True)
    builder = _begin(name, root.certificate.subject, public_key, now, until)
    return _finish_authority(builder, public_key, root.key, network, 0)


def make_site(
    public_key: bytes, issuer: Issuer, now: datetime, *, network: str, site: str, roles: Collection[Role],
    since: int, lifetime: timedelta = SITE_LIFETIME,
) -> tuple[bytes, bytes]:  # fmt: skip
    """Make a site's certificate; return its chain."""
    check_name("site", site)
    if not roles:
        raise BadName("role", "", "a site has at least one role")
    if not 0 <= since <= MOST_SINCE:
        raise ValueError(f"since is {since}; it is the number of a revocation list")
    until = min(now + lifetime, issuer.certificate.not_valid_after_utc)
    key = Ed25519PublicKey.from_public_bytes(public_key)
    said = [NETWORK + network, *sorted(ROLE + role.value for role in roles), f"{SINCE}{since}"]
    builder = (
        _begin(_subject(network, site, authority=False), issuer.certificate.subject, key, now, until)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(**{**_NO_USE, "digital_signature": True}), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
            critical=False,
        )
    )
    certificate = _sign(builder, key, issuer.key, said)
    return certificate.public_bytes(Encoding.DER), issuer.der


def _subject(network: str, name: str, *, authority: bool) -> x509.Name:
    # The unit keeps a site that calls itself "root" apart from the root.
    unit = [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "authority")] if authority else []
    organization = x509.NameAttribute(NameOID.ORGANIZATION_NAME, network)
    return x509.Name([organization, *unit, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _begin(
    subject: x509.Name, issuer: x509.Name, public_key: Ed25519PublicKey, now: datetime, until: datetime
) -> x509.CertificateBuilder:
    if now.tzinfo is None:
        raise ValueError("the time of issue has no time zone")
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before((now - SKEW).replace(microsecond=0))
        .not_valid_after(until.replace(microsecond=0))
    )


def _finish_authority(
    builder: x509.CertificateBuilder, public_key: Ed25519PublicKey, signer: Ed25519PrivateKey, network: str,
    path_length: int,
) -> x509.Certificate:  # fmt: skip
    usage = x509.KeyUsage(**{**_NO_USE, "key_cert_sign": True, "crl_sign": True, "digital_signature": True})
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=path_length), critical=True)
    return _sign(builder.add_extension(usage, critical=True), public_key, signer, [NETWORK + network])


def _sign(
    builder: x509.CertificateBuilder, public_key: Ed25519PublicKey, signer: Ed25519PrivateKey, said: Iterable[str]
) -> x509.Certificate:
    # OpenSSL's strict checks want both key identifiers; they also tell intermediates of equal name apart.
    return (
        builder.add_extension(
            x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri) for uri in said]), critical=False
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .sign(signer, algorithm=None)
    )

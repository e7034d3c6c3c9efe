"""How a member gets its next certificate before the present one ends.

It asks over a link on which it has shown its present certificate. The question holds a new public key and a
signature by that key over who asks, and nothing else: neither a site nor roles, so nobody can ask for another's.
The source issues for the member of the link (``Authority.renew``). The key is on disk before it is shown
(``prepare_key``): after a crash or a lost answer the same question is asked again.

A certificate is renewed when two thirds of its life are over, with some jitter: machines that joined together do
not all ask together, and a source that is away for days harms nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overlay.identity.certificates import verify_chain
from overlay.identity.credential import install, prepare_key
from overlay.identity.domains import text_to_sign
from overlay.identity.errors import Untrusted
from overlay.identity.keys import is_signed, public_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from overlay.identity.authority import Authority
    from overlay.identity.credential import Credential
    from overlay.identity.member import Member

_SERIAL_BYTES: Final = 20
# Of the life of a certificate. Larger: questions are spread wider; smaller: more time is left to try again.
_JITTER: Final = 1 / 12


def renewal_due(member: Member, jitter: float) -> datetime:
    """Return when to renew; ``jitter`` is at least 0 and below 1."""
    life = member.not_after - member.not_before
    return member.not_before + life * (2 / 3 + _JITTER * jitter)


def ask_renewal(credential: Credential) -> tuple[bytes, bytes]:
    """Return a new public key, saved, and the proof that this machine holds it."""
    key = prepare_key(credential.folder)
    return public_bytes(key), key.sign(_text(credential.member, public_bytes(key)))


def check_renewal(member: Member, public_key: bytes, proof: bytes) -> None:
    """Raise ``Untrusted`` unless who asks holds the key; ``member`` is who the link's certificate names."""
    if not is_signed(public_key, proof, _text(member, public_key)):
        raise Untrusted(f"renewal for {member.site}", "it does not hold the key that it wants a certificate for")


def take_renewal(credential: Credential, chain: Sequence[bytes], now: datetime) -> Credential:
    """Install what the source answered, durably; ``Untrusted`` if it is not this member's next certificate."""
    found, own = verify_chain(chain, credential.root, now), credential.member
    if (found.site, found.roles, found.since) != (own.site, own.roles, own.since):
        raise Untrusted(f"certificate of {found.site}", "it is not for the site and the roles that were renewed")
    if found.not_after <= own.not_after:
        raise Untrusted(f"certificate of {found.site}", "it ends no later than the one it should replace")
    return install(credential.folder, credential.root, credential.settings, chain)


def renew_source(credential: Credential, authority: Authority, now: datetime) -> Credential:
    """Renew the source's own certificate, ended or not: it has the authority at hand."""
    public_key, _ = ask_renewal(credential)
    member = credential.member
    chain = authority.issue_to_source(public_key, member.site, now, since=member.since)
    return install(credential.folder, credential.root, credential.settings, chain)


def _text(member: Member, public_key: bytes) -> bytes:
    # The serial ties the proof to the certificate that is renewed: an old proof is good for nothing afterwards.
    serial = member.serial.to_bytes(_SERIAL_BYTES, "big")
    return text_to_sign("renewal", member.network.encode(), member.site.encode(), serial, public_key)

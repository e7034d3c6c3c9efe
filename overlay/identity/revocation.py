"""Who is no longer a member: a numbered list that the source signs and that only ever moves forward.

A *site* is revoked together with a number: that of the list it appears in first. Every certificate carries
``since``, the number of the list in force when its site was invited; renewing keeps it. A certificate is revoked
if its ``since`` is below its site's number in the list. So one entry ends all certificates a site has or had,
and all invitations made for it before; and a site that is invited again, under the list that revoked it or a
later one, is accepted. No clock decides. Single certificates, of a key that was stolen, are revoked by *serial*.

The revoked cannot renew, so an entry is needed only until the last certificate it could mean has ended; then the
source leaves it out, and the list stays short. A list names the DHT key in use: at each revocation it changes.

An encoded list holds the signed text, the intermediate that signed it, and the signature, so that it can be
passed on and checked by whoever knows the root.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from overlay.identity.certificates import LARGEST_CERTIFICATE, MOST_SINCE, verify_intermediate
from overlay.identity.domains import text_to_sign
from overlay.identity.errors import MalformedFrame, StaleList, Untrusted
from overlay.identity.issuing import SITE_LIFETIME
from overlay.identity.keys import SIGNATURE_BYTES, is_signed, public_bytes
from overlay.identity.member import LONGEST_NAME, SKEW, check_name
from overlay.identity.untrusted import decode_untrusted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from overlay.identity.certificates import Root
    from overlay.identity.issuing import Issuer
    from overlay.identity.member import Member

LARGEST_LIST: Final = 1 << 20
SERIAL_BYTES: Final = 20

_PURPOSE: Final = "revocation list"
_REMEMBER: Final = SITE_LIFETIME + SKEW + timedelta(days=1)
_Number = Annotated[int, msgspec.Meta(ge=0, le=MOST_SINCE)]
_Serial = Annotated[bytes, msgspec.Meta(min_length=SERIAL_BYTES, max_length=SERIAL_BYTES)]
_Name = Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)]


class _Said(msgspec.Struct, frozen=True, array_like=True, tag="revocations-1"):
    network: _Name
    number: _Number
    dht_key: _Number
    sites: list[tuple[_Name, _Number, int]]  # site, number, needed until (Unix time)
    serials: list[tuple[_Serial, int]]  # serial, needed until (Unix time)


class _Signed(msgspec.Struct, frozen=True, array_like=True):
    said: bytes
    intermediate: Annotated[bytes, msgspec.Meta(max_length=LARGEST_CERTIFICATE)]
    signature: Annotated[bytes, msgspec.Meta(min_length=SIGNATURE_BYTES, max_length=SIGNATURE_BYTES)]


_SAID: Final = msgspec.msgpack.Decoder(_Said)
_SIGNED: Final = msgspec.msgpack.Decoder(_Signed)


@dataclass(frozen=True, slots=True)
class RevokedSite:
    """A site whose certificates with ``since`` below ``number`` count no longer; needed until then (Unix time)."""

    number: int
    needed_until_s: int


@dataclass(frozen=True, slots=True)
class RevocationList:
    """A verified list; ``serials`` maps to how long each is needed; ``encoded`` is what to keep and to pass on."""

    network: str
    number: int
    sites: dict[str, RevokedSite]
    serials: dict[int, int]
    dht_key: int
    encoded: bytes = field(repr=False)

    def is_revoked(self, member: Member) -> bool:
        """Tell whether the member's certificate counts no longer."""
        site = self.sites.get(member.site)
        return member.serial in self.serials or (site is not None and member.since < site.number)

    def replaced_by(self, other: RevocationList) -> RevocationList:
        """Return the other list, or raise ``StaleList`` if it is older, ``Untrusted`` if it contradicts this."""
        if other.network != self.network:
            raise Untrusted("revocation list", f"it is not of the network {self.network}")
        if other.number < self.number:
            raise StaleList(self.number, other.number)
        if other.number == self.number and other.said != self.said:
            raise Untrusted("revocation list", f"there are two different lists with the number {self.number}")
        return other

    @property
    def said(self) -> bytes:
        """The text that was signed, by whichever intermediate."""
        return _SIGNED.decode(self.encoded).said

    def extended(
        self,
        signer: Issuer,
        now: datetime,
        *,
        dht_key: int,
        sites: Iterable[str] = (),
        serials: Iterable[int] = (),
    ) -> RevocationList:
        """Revoke sites and single certificates: the next list, signed, without entries no longer needed."""
        number, today = self.number + 1, now.timestamp()
        needed_until_s = int((now + _REMEMBER).timestamp())
        revoked = {site: entry for site, entry in self.sites.items() if entry.needed_until_s > today}
        revoked |= {check_name("site", site): RevokedSite(number, needed_until_s) for site in sites}
        single = {serial: end for serial, end in self.serials.items() if end > today}
        single |= dict.fromkeys(serials, needed_until_s)
        return self._with(revoked, single, number=number, dht_key=dht_key, signer=signer)

    def renumbered(self, number: int, signer: Issuer, *, dht_key: int) -> RevocationList:
        """Return the same entries under a higher number: what a restored source begins with."""
        if number <= self.number:
            raise ValueError(f"list {number} would not be newer than {self.number}")
        return self._with(self.sites, self.serials, number=number, dht_key=dht_key, signer=signer)

    def merged(self, other: RevocationList, signer: Issuer, *, dht_key: int) -> RevocationList:
        """Return the next list, with the entries of both: nobody is forgotten whom a lost source has revoked."""
        sites = dict(self.sites)
        for site, entry in other.sites.items():
            known = sites.get(site, entry)
            sites[site] = max(known, entry, key=lambda one: (one.number, one.needed_until_s))
        serials = {
            serial: max(other.serials.get(serial, 0), self.serials.get(serial, 0))
            for serial in self.serials.keys() | other.serials.keys()
        }
        number = max(self.number, other.number) + 1
        return self._with(sites, serials, number=number, dht_key=dht_key, signer=signer)

    def _with(
        self, sites: Mapping[str, RevokedSite], serials: Mapping[int, int], *, number: int, dht_key: int,
        signer: Issuer,
    ) -> RevocationList:  # fmt: skip
        entries = [(site, entry.number, entry.needed_until_s) for site, entry in sorted(sites.items())]
        certificates = [(serial.to_bytes(SERIAL_BYTES, "big"), end) for serial, end in sorted(serials.items())]
        return _sign(_Said(self.network, number, dht_key, entries, certificates), signer)

    def signed_again(self, signer: Issuer) -> RevocationList:
        """Return the same list under another intermediate, for when the first one's certificate ends."""
        return _sign(_SAID.decode(self.said), signer)


def first_list(network: str, signer: Issuer, *, dht_key: int) -> RevocationList:
    """Return list number 0, which revokes nobody."""
    return _sign(_Said(network, 0, dht_key, [], []), signer)


def decode_list_untrusted(data: bytes, root: Root, now: datetime) -> RevocationList:
    """Read and verify a list from elsewhere; ``MalformedFrame`` or ``Untrusted`` if it is none of this network."""
    return _decode(data, root, now)


def read_own_list(data: bytes, root: Root) -> RevocationList:
    """Read and verify the list that was kept here.

    Its signer's certificate may have ended meanwhile: to forget who is revoked would be worse.
    """
    return _decode(data, root, None)


def _sign(said: _Said, signer: Issuer) -> RevocationList:
    text = msgspec.msgpack.encode(said)
    signature = signer.key.sign(text_to_sign(_PURPOSE, said.network.encode(), text))
    return _list(said, msgspec.msgpack.encode(_Signed(text, signer.der, signature)))


def _decode(data: bytes, root: Root, now: datetime | None) -> RevocationList:
    what = "revocation list"
    signed = decode_untrusted(_SIGNED, data, what=what, most_bytes=LARGEST_LIST)
    key = verify_intermediate(signed.intermediate, root, now).public_key()
    text = text_to_sign(_PURPOSE, root.network.encode(), signed.said)
    if not isinstance(key, Ed25519PublicKey) or not is_signed(public_bytes(key), signed.signature, text):
        raise Untrusted(what, "its signature is not the authority's")
    said = decode_untrusted(_SAID, signed.said, what=what, most_bytes=LARGEST_LIST)
    if said.network != root.network:
        raise MalformedFrame(what, f"it is signed for {root.network} and names another network")
    return _list(said, data)


def _list(said: _Said, encoded: bytes) -> RevocationList:
    return RevocationList(
        network=said.network,
        number=said.number,
        sites={site: RevokedSite(number, end) for site, number, end in said.sites},
        serials={int.from_bytes(serial, "big"): end for serial, end in said.serials},
        dht_key=said.dht_key,
        encoded=encoded,
    )

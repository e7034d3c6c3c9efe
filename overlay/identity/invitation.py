"""Invitations: what lets a machine become a member, once.

The *token* is a word that an operator pastes on the joining machine. It tells where to enrol, how to recognise the
network (the root's fingerprint), and a secret. The source keeps a hash of the secret only, with the site and roles
it stands for: whoever reads the source's disk cannot join with it.

A token is base32 in small letters: nothing in it needs quoting, a double click selects it, and case or line breaks
lost on the way do no harm. A checksum tells a token that was cut off from one that is refused.

Redeeming ties an invitation to a public key. The answer may be lost, so the same key may redeem it again until it
expires; another key may not. The caller saves ``export()`` durably before it answers: then a crash of the source
never lets a second machine use an invitation.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from overlay.identity.address import LONGEST_ADDRESS, MOST_ADDRESSES, Address, parse_addresses
from overlay.identity.domains import digest
from overlay.identity.errors import BadName, BadToken, InvitationRefused, MalformedFrame, NotPermitted, Refusal
from overlay.identity.keys import fresh_bytes
from overlay.identity.member import LONGEST_NAME, Role, check_name, roles_named
from overlay.identity.untrusted import decode_untrusted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from overlay.identity.certificates import Root

SECRET_BYTES: Final = 20
LONGEST_TOKEN: Final = 4096
MOST_INVITATIONS: Final = 10_000
# An expired invitation is remembered this long, so that who comes late is told why it is refused.
REMEMBERED: Final = timedelta(days=7)

_CHECKSUM_BYTES: Final = 4
_PREFIX: Final = "dst1"


class _Written(msgspec.Struct, frozen=True, array_like=True):
    network: Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)]
    addresses: Annotated[
        list[Annotated[str, msgspec.Meta(max_length=LONGEST_ADDRESS)]],
        msgspec.Meta(min_length=1, max_length=MOST_ADDRESSES),
    ]
    fingerprint: Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
    secret: Annotated[bytes, msgspec.Meta(min_length=SECRET_BYTES, max_length=SECRET_BYTES)]
    site: Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)] = ""  # earlier versions did not write it


_WRITTEN: Final = msgspec.msgpack.Decoder(_Written)


@dataclass(frozen=True, slots=True)
class Token:
    """What an invited machine knows of the network before it joins. ``site``: whom it is for, so that it is not
    used up on another machine; what counts is what the source has kept."""

    network: str
    addresses: tuple[Address, ...]
    fingerprint: bytes
    secret: bytes = field(repr=False)
    site: str = ""

    def text(self) -> str:
        """Return the token as one word."""
        addresses = [str(a) for a in self.addresses]
        written = _Written(self.network, addresses, self.fingerprint, self.secret, self.site)
        data = msgspec.msgpack.encode(written)
        return _PREFIX + base64.b32encode(data + _checksum(data)).decode().rstrip("=").lower()

    @classmethod
    def parse(cls, text: str) -> Token:
        """Read a token, or raise ``BadToken``; white space and case do not matter."""
        if len(text) > LONGEST_TOKEN:
            raise BadToken("it is too long")
        word = "".join(text.split()).lower()
        if not word.startswith(_PREFIX):
            raise BadToken(f"it does not begin with {_PREFIX}, or is of another version")
        word = word.removeprefix(_PREFIX).upper()
        try:
            data = base64.b32decode(word + "=" * (-len(word) % 8))
        except ValueError as exc:
            raise BadToken("it has letters or a length that no invitation has") from exc
        data, checksum = data[:-_CHECKSUM_BYTES], data[-_CHECKSUM_BYTES:]
        if _checksum(data) != checksum:
            raise BadToken("a part of it is missing or wrong")
        try:
            written = decode_untrusted(_WRITTEN, data, what="token", most_bytes=LONGEST_TOKEN)
            network = check_name("network", written.network)
            site = check_name("site", written.site) if written.site else ""
            return cls(network, parse_addresses(written.addresses), written.fingerprint, written.secret, site)
        except (MalformedFrame, BadName) as exc:
            raise BadToken(str(exc)) from exc


@dataclass(frozen=True, slots=True)
class Admission:
    """What an invitation admits its bearer to; ``since`` is for the certificate (see ``Member``)."""

    site: str
    roles: frozenset[Role]
    since: int


class _Invitation(msgspec.Struct, frozen=True):
    secret_hash: str
    site: str
    roles: list[str]
    since: int
    expires_s: int
    redeemed_by: str | None = None


class Invitations:
    """The invitations a source has given."""

    def __init__(self) -> None:
        self._all: list[_Invitation] = []

    @classmethod
    def restored(cls, exported: Iterable[dict[str, Any]]) -> Invitations:
        """Return the invitations that were exported; ``msgspec.ValidationError`` if it is no such data."""
        invitations = cls()
        invitations._all = msgspec.convert(list(exported), list[_Invitation])
        return invitations

    def export(self) -> list[dict[str, Any]]:
        """Return plain data, fit for JSON, with no secret in it."""
        return [msgspec.to_builtins(invitation) for invitation in self._all]

    def __contains__(self, site: object) -> bool:
        return any(invitation.site == site for invitation in self._all)

    def add(self, secret: bytes, admission: Admission, now: datetime, ttl: timedelta) -> None:
        """Remember an invitation; forgets those that have long expired."""
        self._all = [i for i in self._all if now < _time(i.expires_s) + REMEMBERED]
        if len(self._all) >= MOST_INVITATIONS:
            raise NotPermitted(admission.site, f"{MOST_INVITATIONS:,} invitations are open; withdraw some")
        roles = sorted(role.value for role in admission.roles)
        expires_s = int((now + ttl).timestamp())
        self._all.append(_Invitation(_hash(secret), admission.site, roles, admission.since, expires_s))

    def redeem(self, secret: bytes, public_key: bytes, now: datetime) -> Admission:
        """Tie an invitation to a key, or raise ``InvitationRefused``; save ``export()`` before answering."""
        wanted = _hash(secret)
        # Every one is compared, in constant time: how long it takes says nothing about what is close.
        places = [i for i, kept in enumerate(self._all) if hmac.compare_digest(kept.secret_hash, wanted)]
        if not places:
            raise InvitationRefused(Refusal.UNKNOWN)
        found = self._all[places[0]]
        if found.redeemed_by is not None and not hmac.compare_digest(found.redeemed_by, public_key.hex()):
            raise InvitationRefused(Refusal.USED)
        if now >= _time(found.expires_s):
            raise InvitationRefused(Refusal.EXPIRED)
        self._all[places[0]] = msgspec.structs.replace(found, redeemed_by=public_key.hex())
        return Admission(found.site, roles_named(found.roles), found.since)

    def withdraw(self, site: str) -> int:
        """Forget all invitations for a site, as at its revocation; return how many."""
        before = len(self._all)
        self._all = [invitation for invitation in self._all if invitation.site != site]
        return before - len(self._all)


def invite(
    invitations: Invitations, site: str, roles: Collection[Role], now: datetime, *, ttl: timedelta, root: Root,
    addresses: tuple[Address, ...], since: int,
) -> str:  # fmt: skip
    """Invite a site and return its token; ``since`` is the number of the revocation list in force.

    ``addresses`` say where the source enrols. Save the invitations before the token is shown.
    """
    check_name("site", site)
    if not roles or Role.SOURCE in roles:
        raise BadName("role", "source" if roles else "", "a site is invited as publisher, subscriber or planner")
    if not 1 <= len(addresses) <= MOST_ADDRESSES:
        raise BadName("address", "", f"an invitation names 1 to {MOST_ADDRESSES} addresses")
    secret = fresh_bytes(SECRET_BYTES)
    invitations.add(secret, Admission(site, frozenset(roles), since), now, ttl)
    return Token(root.network, addresses, root.fingerprint, secret, site).text()


def _hash(secret: bytes) -> str:
    # A plain hash will do: the secret is random and long, nobody can guess it.
    return digest("invitation", secret).hex()


def _checksum(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:_CHECKSUM_BYTES]


def _time(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)

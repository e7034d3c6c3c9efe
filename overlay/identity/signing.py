"""Signed envelopes: who said this, for what purpose, in which network.

An envelope holds the payload, the signature, and either the signer's chain or, in the compact form, only the
serial number of its certificate; the compact form adds under 100 bytes, which is for DHT records, and is opened
by who can look the certificate up. What is signed: the network, the *kind* (the reader says which kind it
expects, so an envelope of one kind is never taken for another), the serial, and the payload. An envelope says
nothing of *when*: payloads that can become stale carry a number of their own.

Revocation and expiry are judged when an envelope is opened, so one that was good may cease to be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from overlay.identity.certificates import LARGEST_CERTIFICATE, verify_chain, verify_chain_at_any_time
from overlay.identity.domains import text_to_sign
from overlay.identity.errors import NotPermitted, UnknownSigner, Untrusted
from overlay.identity.keys import SIGNATURE_BYTES, is_signed
from overlay.identity.revocation import SERIAL_BYTES
from overlay.identity.untrusted import decode_untrusted

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from overlay.identity.certificates import Root
    from overlay.identity.credential import Signer
    from overlay.identity.member import Member, Role
    from overlay.identity.revocation import RevocationList

LARGEST_ENVELOPE: Final = 1 << 24

_Certificate = Annotated[bytes, msgspec.Meta(max_length=LARGEST_CERTIFICATE)]
_Serial = Annotated[bytes, msgspec.Meta(min_length=SERIAL_BYTES, max_length=SERIAL_BYTES)]
_Signature = Annotated[bytes, msgspec.Meta(min_length=SIGNATURE_BYTES, max_length=SIGNATURE_BYTES)]


class _Full(msgspec.Struct, frozen=True, array_like=True, tag=1):
    chain: tuple[_Certificate, _Certificate]
    signature: _Signature
    payload: bytes


class _Compact(msgspec.Struct, frozen=True, array_like=True, tag=2):
    serial: _Serial
    signature: _Signature
    payload: bytes


_ENVELOPE: Final[msgspec.msgpack.Decoder[_Full | _Compact]] = msgspec.msgpack.Decoder(_Full | _Compact)


@dataclass(frozen=True, slots=True)
class Signed:
    """What an envelope proved: that the member said the payload."""

    member: Member
    payload: bytes


def sign(signer: Signer, kind: str, payload: bytes) -> bytes:
    """Return an envelope that anybody who knows the root can open."""
    return msgspec.msgpack.encode(_Full(signer.chain, _signature(signer, kind, payload), payload))


def sign_compact(signer: Signer, kind: str, payload: bytes) -> bytes:
    """Return a small envelope, for those who know the signer's certificate."""
    serial = signer.member.serial.to_bytes(SERIAL_BYTES, "big")
    return msgspec.msgpack.encode(_Compact(serial, _signature(signer, kind, payload), payload))


def open_signed(
    data: bytes, kind: str, *, root: Root, now: datetime | None, required_role: Role, revocations: RevocationList,
    lookup: Callable[[int], Member | None] | None = None, most_bytes: int = LARGEST_ENVELOPE,
) -> Signed:  # fmt: skip
    """Return who signed what, or raise. Without ``now`` the signer's certificate may have ended: for what was
    opened before, and lies on one's own disk since.

    ``lookup`` finds the verified member with a serial number, for compact envelopes. Raises ``MalformedFrame``;
    ``UnknownSigner`` if the lookup finds nobody; ``Untrusted`` if the signature or the signer's certificate is not
    good, or not good any more; ``NotPermitted`` if the signer is revoked or lacks the role.
    """
    envelope = decode_untrusted(_ENVELOPE, data, what="signed envelope", most_bytes=most_bytes)
    match envelope:
        case _Full():
            chain = envelope.chain
            member = verify_chain_at_any_time(chain, root) if now is None else verify_chain(chain, root, now)
        case _Compact():
            member = _looked_up(int.from_bytes(envelope.serial, "big"), root, now, lookup)
    if not is_signed(member.public_key, envelope.signature, _text(member, kind, envelope.payload)):
        raise Untrusted("signature", f"it is not that of {member.site} for the kind {kind}")
    if revocations.is_revoked(member):
        raise NotPermitted(member.site, "it is revoked")
    member.require(required_role)
    return Signed(member, envelope.payload)


def _looked_up(
    serial: int, root: Root, now: datetime | None, lookup: Callable[[int], Member | None] | None
) -> Member:
    member = None if lookup is None else lookup(serial)
    if member is None:
        raise UnknownSigner(serial)
    if member.serial != serial or member.network != root.network:
        raise Untrusted("signature", f"the certificate that was looked up is not {serial:x} of {root.network}")
    if now is not None:
        member.check_time(now)
    return member


def _signature(signer: Signer, kind: str, payload: bytes) -> bytes:
    return signer.key.sign(_text(signer.member, kind, payload))


def _text(member: Member, kind: str, payload: bytes) -> bytes:
    # The serial is signed too: what a key signed under one of its certificates does not count under another.
    serial = member.serial.to_bytes(SERIAL_BYTES, "big")
    return text_to_sign("envelope", member.network.encode(), kind.encode(), serial, payload)

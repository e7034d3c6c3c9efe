"""The records of the directory: how they prove who wrote them.

A node that is asked to hold a record, or finds one, has to judge it at once and with nothing but the record and
the root certificate. So each record brings the whole proof along:

    payload    deflated [site certificate, intermediate certificate, sizes, value]
    signature  a compact envelope around the SHA-256 of what the record's signature has to cover

The two certificates have about 1,000 bytes, up to 1,450 with the longest names, and a record has 1,330 in all.
Deflated with the root certificate as the dictionary they have 500 at most, and a value that contains the same
certificates, as a signed configuration does, costs hardly more than its own text. So an address record, and most
configurations, are one record; there is no other record to look a signer up in, which a node could lack just when
it is asked to store.

A value that does not fit is split into chunks and its manifest takes its place; ``sizes`` has the size of what was
split, twice if the manifest had to be split again.

Who may write: ``site/<name>`` the site of that name; ``configuration/<name>``, ``zone/<space>/<prefix>`` and
``epoch/current`` the source. All other kinds are refused. Expiry and revocation of the signer are judged at each
look.

Records live for a week and are signed again before. The successor needs a higher version though its value is the
same; so below the revision, the version says on which day the record was signed. Whoever signs the same value
twice on one day makes the same bytes, so a restart of the source looks like a repetition.
"""

from __future__ import annotations

import logging
import zlib
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from overlay.dht import LocalBadRecord, MalformedRecord, Record, Version, decode_record_untrusted, split
from overlay.dht.records import (
    CHUNK,
    MOST_PAYLOAD,
    MOST_RECORD,
    MOST_SIGNATURE,
    encode_record,
    is_valid,
    make_chunk,
    signed_bytes,
)
from overlay.identity import (
    IdentityError,
    MalformedFrame,
    NotPermitted,
    Role,
    open_signed,
    sign_compact,
    verify_chain,
)
from overlay.identity.certificates import LARGEST_CERTIFICATE
from overlay.identity.untrusted import decode_untrusted
from overlay.zones.records import KIND as ZONE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from overlay.identity import Credential, Member, RevocationList

_LOG: Final = logging.getLogger("distributary.directory")
SITE: Final = "site"
CONFIGURATION: Final = "configuration"
EPOCH: Final = "epoch"
CURRENT: Final = "current"
_PURPOSE: Final = "dht record"
_DAY_S: Final = 86400
_LIFE_DAYS: Final = 8  # from the beginning of the day; nodes hold records for 14 days at most
_DAY_BITS: Final = 16
_MOST_SEALED: Final = 16 << 10
_AROUND: Final = 200  # what a record has besides its name and its payload, at most
_MOST_SPLITS: Final = 2
_MOST_MEMBERS: Final = 4096
_RECHECK_S: Final = 3600
_BLANK: Final = Record("a", "a", Version(0, 0, 0), 0, b"")
_PREFIX_BYTES: Final = len(signed_bytes(_BLANK)) - len(encode_record(_BLANK))
_Certificate = Annotated[bytes, msgspec.Meta(max_length=LARGEST_CERTIFICATE)]


class Sealed(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a record's payload holds: the signer's chain, and the value or its manifest."""

    leaf: _Certificate
    intermediate: _Certificate
    sizes: Annotated[tuple[int, ...], msgspec.Meta(max_length=_MOST_SPLITS)]
    value: bytes


_SEALED: Final = msgspec.msgpack.Decoder(Sealed)


def dated(version: Version, now: datetime) -> Version:
    """Return a version as records have it, with the day of signing.

    >>> dated(Version(1, 2, 3), datetime(1970, 1, 5, tzinfo=UTC))
    Version(generation=1, epoch=2, revision=196612)
    """
    revision = version.revision << _DAY_BITS | int(now.timestamp()) // _DAY_S
    return Version(version.generation, version.epoch, revision)


def undated(version: Version) -> Version:
    """Return the version that was dated."""
    return Version(version.generation, version.epoch, version.revision >> _DAY_BITS)


@dataclass(slots=True)
class Pieces:
    """The chunks of which values: a chunk that values share is put once, and forgotten with the last of them.

    >>> pieces = Pieces()
    >>> [sorted(fresh) for fresh, _ in (pieces.use("a", ["1", "2"]), pieces.use("b", ["2"]))]
    [['1', '2'], []]
    >>> pieces.use("a", []), pieces.use("b", [])
    ((set(), {'1'}), (set(), {'2'}))
    """

    _of: dict[str, frozenset[str]] = field(default_factory=dict)
    _uses: Counter[str] = field(default_factory=Counter)

    def use(self, name: str, chunks: Iterable[str]) -> tuple[set[str], set[str]]:
        """Note a value's chunks; return those that nobody used before, and those that nobody uses now."""
        before, now = self._of.pop(name, frozenset()), frozenset(chunks)
        fresh = {chunk for chunk in now if not self._uses[chunk]}
        self._uses.update(now)
        self._uses.subtract(before)
        stale = {chunk for chunk in before if not self._uses[chunk]}
        for chunk in stale:
            del self._uses[chunk]
        if now:
            self._of[name] = now
        return fresh, stale


class Notary:
    """Signs the records of one member, and judges those of all."""

    def __init__(self, credential: Credential, revocations: Callable[[], RevocationList]) -> None:
        self.credential = credential
        self.refused = 0
        self.revocations = revocations
        self._members: dict[tuple[bytes, bytes, int], Member] = {}

    def make(self, kind: str, name: str, version: Version, value: bytes) -> tuple[Record, tuple[Record, ...]]:
        """Make the record of a value, and the chunks to put before it; ``DhtError`` if it is too large."""
        now = datetime.now(UTC)
        sizes: tuple[int, ...] = ()
        chunks: tuple[Record, ...] = ()
        while (record := self._signed(kind, name, version, sizes, value, now)) is None:
            if len(sizes) == _MOST_SPLITS:
                raise LocalBadRecord(f"{kind}/{name}", "there is no room for its value")
            large = split(value, _expiry(now))
            sizes, chunks, value = (*sizes, len(value)), (*chunks, *large.chunks), large.manifest
        return record, chunks

    def renew(self, record: Record) -> Record | None:
        """Sign an own record again, for a later expiry; None if it cannot be done."""
        now = datetime.now(UTC)
        if record.kind == CHUNK:
            return make_chunk(record.payload, _expiry(now))
        try:
            sealed = self._unsealed(record.payload)
        except MalformedFrame:
            return None
        if record.kind == SITE:
            version = Version(0, 0, max(record.version.revision + 1, int(now.timestamp() * 1000)))
        else:
            version = dated(undated(record.version), now)
        return self._signed(record.kind, record.name, version, sealed.sizes, sealed.value, now)

    def read(self, record: Record) -> Sealed | None:
        """Read a record that was found; None if it may not be believed, or not any more."""
        # The node takes what it holds itself for good, though the signer may be revoked since.
        return self._unsealed(record.payload) if is_valid(record, self.verify) else None

    def verify(self, kind: str, name: str, signed: bytes, signature: bytes, /) -> bool:
        """Whether a record was signed by somebody who may write this kind and name."""
        try:
            self._check(kind, name, signed, signature)
        except (IdentityError, MalformedRecord) as exc:
            self.refused += 1
            _LOG.info("record refused", extra={"kind": kind, "record": name, "reason": str(exc)})
            return False
        return True

    def _check(self, kind: str, name: str, signed: bytes, signature: bytes) -> None:
        now = datetime.now(UTC)
        sealed = self._unsealed(decode_record_untrusted(signed[_PREFIX_BYTES:]).payload)
        member = self._member(sealed, now)
        if kind == SITE:
            if member.site != name or not member.roles:
                raise NotPermitted(member.site, f"it may not write for the site {name}")
            role = min(member.roles, key=lambda role: role.value)  # any will do
        elif kind in (CONFIGURATION, ZONE) or (kind, name) == (EPOCH, CURRENT):
            role = Role.SOURCE
        else:
            raise NotPermitted(member.site, "nobody writes records of this kind and name")
        said = open_signed(
            signature, _PURPOSE, root=self.credential.root, now=now, required_role=role,
            revocations=self.revocations(), lookup=lambda _: member, most_bytes=MOST_SIGNATURE,
        )  # fmt: skip
        if said.payload != sha256(signed).digest():
            raise MalformedFrame(_PURPOSE, "the signature is that of another record")

    def _member(self, sealed: Sealed, now: datetime) -> Member:
        """Return who a chain proves. Its signatures are checked once an hour, its own validity each time."""
        key = (sealed.leaf, sealed.intermediate, int(now.timestamp()) // _RECHECK_S)
        member = self._members.get(key)
        if member is None:
            member = verify_chain(key[:2], self.credential.root, now)
            if len(self._members) >= _MOST_MEMBERS:
                self._members.clear()
            self._members[key] = member
        return member

    def _signed(
        self, kind: str, name: str, version: Version, sizes: tuple[int, ...], value: bytes, now: datetime
    ) -> Record | None:
        """Make a record, or None if the value does not fit it."""
        signer = self.credential.signer
        sealed = msgspec.msgpack.encode(Sealed(*signer.chain, sizes, value))
        deflate = zlib.compressobj(9, wbits=-zlib.MAX_WBITS, zdict=self.credential.root.der)
        payload = deflate.compress(sealed) + deflate.flush()
        room = min(MOST_PAYLOAD, MOST_RECORD - _AROUND - len(name.encode()))
        if len(sealed) > _MOST_SEALED or len(payload) > room:
            return None
        record = Record(kind, name, version, _expiry(now), payload)
        signature = sign_compact(signer, _PURPOSE, sha256(signed_bytes(record)).digest())
        return msgspec.structs.replace(record, signature=signature)

    def _unsealed(self, payload: bytes) -> Sealed:
        inflate = zlib.decompressobj(wbits=-zlib.MAX_WBITS, zdict=self.credential.root.der)
        try:
            sealed = inflate.decompress(payload, _MOST_SEALED)
        except zlib.error as exc:
            raise MalformedFrame(_PURPOSE, str(exc)) from exc
        if not inflate.eof or inflate.unused_data:
            raise MalformedFrame(_PURPOSE, "its payload does not end where it should")
        return decode_untrusted(_SEALED, sealed, what=_PURPOSE, most_bytes=_MOST_SEALED)


def _expiry(now: datetime) -> int:
    return (int(now.timestamp()) // _DAY_S + _LIFE_DAYS) * _DAY_S

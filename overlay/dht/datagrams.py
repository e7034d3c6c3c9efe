"""Datagrams that only members of the network can make: sealed under the network's DHT key.

Layout, big-endian: version (1 byte), key id (4), the sender's random instance id (8), time in seconds (4), number
(8), payload, MAC (16). The MAC is keyed BLAKE2b over everything before it. A datagram is opened in this order, so
that outsiders reach as little code as possible: size and version, key id, MAC, time, number. It is authenticated,
not encrypted.

Keys rotate. For a grace time the previous key is accepted too. A member that has not heard of the new key cannot
open what is sealed under it, so answers are sealed under the key of the question, and a question that stays
unanswered is repeated under both. A key of which it is known that another has replaced it is *retired*: it is
accepted for the grace time only, though the other is not here yet.
"""

from __future__ import annotations

import enum
import hmac
import math
import struct
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Final

from overlay.dht.replay import ReplayWindows

MOST_DATAGRAM: Final = 8192
MOST_SKEW_S: Final = 300.0
INSTANCE_BYTES: Final = 8
_VERSION: Final = 1
_HEADER: Final = struct.Struct(">B4s8sIQ")
_MAC_BYTES: Final = 16
_FEWEST_KEY_BYTES: Final = 16
_MOST_KEY_BYTES: Final = 64
OVERHEAD: Final = _HEADER.size + _MAC_BYTES


class Refusal(enum.Enum):
    """Why a datagram had no effect."""

    MALFORMED = "malformed"
    WRONG_KEY = "wrong key"
    FORGED = "forged"
    STALE = "stale"
    REPLAYED = "replayed"
    BAD_MESSAGE = "bad message"
    UNASKED = "unasked answer"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class NetworkKey:
    """A DHT key and the id by which datagrams name it; ``of`` makes one."""

    secret: bytes = field(repr=False)
    id: bytes

    @classmethod
    def of(cls, secret: bytes) -> NetworkKey:
        """Make a key from a secret of 16 to 64 bytes."""
        if not _FEWEST_KEY_BYTES <= len(secret) <= _MOST_KEY_BYTES:
            raise ValueError(f"a DHT key has {_FEWEST_KEY_BYTES} to {_MOST_KEY_BYTES} bytes, not {len(secret)}")
        return cls(secret, blake2b(b"id", key=secret, digest_size=4, person=b"distributary-id").digest())

    def mac(self, data: bytes) -> bytes:
        """Authenticate data."""
        return blake2b(data, key=self.secret, digest_size=_MAC_BYTES, person=b"distributary-dht").digest()


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The key in use and, until a moment, the one before."""

    current: NetworkKey
    previous: NetworkKey | None = None
    previous_until: float = 0.0
    current_until: float = math.inf

    def rotated(self, key: NetworkKey, *, now: float, grace_s: float) -> KeyRing:
        """Take a new key into use; the key already in use changes nothing."""
        return self if key == self.current else KeyRing(key, self.current, min(now + grace_s, self.current_until))

    def retired(self, *, now: float, grace_s: float) -> KeyRing:
        """Use the key for the grace time only: another has replaced it, which is not here."""
        return replace(self, current_until=min(now + grace_s, self.current_until))

    def settled(self) -> KeyRing:
        """End what has a time, whatever the clock says."""
        is_retired = self.current_until < math.inf
        return KeyRing(self.current, current_until=-math.inf if is_retired else math.inf)

    def accepted(self, now: float) -> list[NetworkKey]:
        """List the keys that open datagrams, the one in use first; none if that was retired and is over."""
        current = [self.current] if now < self.current_until else []
        return current if self.previous is None or now >= self.previous_until else [*current, self.previous]


@dataclass(frozen=True, slots=True)
class Opened:
    """What a datagram held, and the key it was sealed under."""

    payload: bytes
    key: NetworkKey


@dataclass(slots=True)
class Seal:
    """Seals and opens one node's datagrams. ``instance`` is random and new with each start of the node."""

    keys: KeyRing
    instance: bytes
    most_skew_s: float = MOST_SKEW_S
    windows: ReplayWindows = field(default_factory=ReplayWindows)
    _number: int = 0

    def __post_init__(self) -> None:
        if len(self.instance) != INSTANCE_BYTES:
            raise ValueError(f"an instance id has {INSTANCE_BYTES} bytes, not {len(self.instance)}")

    def seal(self, payload: bytes, *, now: float, key: NetworkKey | None = None) -> bytes:
        """Make a datagram, under the key in use unless another is given."""
        if len(payload) > MOST_DATAGRAM - OVERHEAD:
            raise ValueError(f"a payload has up to {MOST_DATAGRAM - OVERHEAD} bytes, not {len(payload)}")
        key = key or self.keys.current
        self._number += 1
        data = _HEADER.pack(_VERSION, key.id, self.instance, int(now), self._number) + payload
        return data + key.mac(data)

    def open_untrusted(self, datagram: bytes, *, now: float) -> Opened | Refusal:
        """Open a datagram from anywhere, or say why not; never raises. A datagram opens once."""
        if not OVERHEAD <= len(datagram) <= MOST_DATAGRAM or datagram[0] != _VERSION:
            return Refusal.MALFORMED
        _, key_id, sender, seconds, number = _HEADER.unpack_from(datagram)
        key = next((key for key in self.keys.accepted(now) if key.id == key_id), None)
        if key is None:
            return Refusal.WRONG_KEY
        if not hmac.compare_digest(key.mac(datagram[:-_MAC_BYTES]), datagram[-_MAC_BYTES:]):
            return Refusal.FORGED
        if abs(now - seconds) > self.most_skew_s:
            return Refusal.STALE
        # What comes back from ourselves was reflected by somebody.
        if sender == self.instance or not self.windows.takes(sender, number):
            return Refusal.REPLAYED
        return Opened(datagram[_HEADER.size : -_MAC_BYTES], key)

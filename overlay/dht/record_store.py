"""The records that one node holds for the network, within bounds.

A record comes in only if it is valid, not expired, and newer than what is held of its key. When there is no room,
expired records make way and nothing else does: the newcomer is refused, and whoever stores hears it.
"""

from __future__ import annotations

import enum
import heapq
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from overlay.dht.errors import MalformedRecord
from overlay.dht.records import Record, Verify, decode_record_untrusted, is_valid

if TYPE_CHECKING:
    from collections.abc import Mapping


class Verdict(enum.Enum):
    """What became of an offered record."""

    KEPT = "kept"
    SAME = "already held"
    OLDER = "not newer than what is held"
    INVALID = "invalid"
    EXPIRED = "expired"
    FULL = "no room"

    @property
    def is_held(self) -> bool:
        """Whether the node now holds the record."""
        return self in (Verdict.KEPT, Verdict.SAME)


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """How much one node holds. Higher: fewer refusals in a small network; lower: less memory.

    ``per_kind`` overrides ``each_kind``, so that no kind crowds out the others. A record that claims to live
    longer than ``longest_life_s`` is refused: nothing but its expiry would ever clear it.
    """

    records: int = 50_000
    bytes: int = 64 << 20
    each_kind: int = 30_000
    per_kind: Mapping[str, int] = field(default_factory=dict)
    longest_life_s: float = 14 * 86400.0

    def of_kind(self, kind: str) -> int:
        """How many records of a kind are held at most."""
        return self.per_kind.get(kind, self.each_kind)


@dataclass(slots=True)
class Held:
    """A record that is held, its bytes, and when somebody last stored it here."""

    record: Record
    encoded: bytes
    heard_at: float


@dataclass(slots=True)
class RecordStore:
    """Records by key. Owner: the node's event loop."""

    verify: Verify
    limits: StoreLimits = field(default_factory=StoreLimits)
    size_bytes: int = 0
    _held: dict[bytes, Held] = field(default_factory=dict)
    _kinds: Counter[str] = field(default_factory=Counter)
    _expiry: list[tuple[int, bytes]] = field(default_factory=list)

    @property
    def records(self) -> int:
        """How many records are held."""
        return len(self._held)

    def keys(self) -> list[bytes]:
        """List the keys of all records, expired ones included until something clears them."""
        return list(self._held)

    def find(self, key: bytes, *, now: float) -> Held | None:
        """Find the record of a key, unless it expired."""
        held = self._held.get(key)
        return held if held and now < held.record.expires_at else None

    def not_heard_since(self, moment: float, *, now: float) -> list[Held]:
        """List the records that nobody stored here since a moment."""
        self.expire(now)
        return [held for held in self._held.values() if held.heard_at < moment]

    def offer(self, encoded: bytes, *, now: float) -> Verdict:
        """Take in a record from anywhere if there is nothing against it."""
        try:
            record = decode_record_untrusted(encoded)
        except MalformedRecord:
            return Verdict.INVALID
        key = record.key
        old = self.find(key, now=now)
        if old and old.encoded == encoded:
            old.heard_at = now
            return Verdict.SAME
        if old and record.version <= old.record.version:
            return Verdict.OLDER
        if now >= record.expires_at:
            return Verdict.EXPIRED
        if record.expires_at > now + self.limits.longest_life_s:
            return Verdict.INVALID
        if not self._has_room(record, encoded, now):
            return Verdict.FULL
        # Last, because a signature costs more than all else here together.
        if not is_valid(record, self.verify):
            return Verdict.INVALID
        self._drop(key)
        self._hold(key, Held(record, encoded, now))
        return Verdict.KEPT

    def expire(self, now: float) -> None:
        """Drop what expired."""
        while self._expiry and self._expiry[0][0] <= now:
            _, key = heapq.heappop(self._expiry)
            held = self._held.get(key)
            if held and held.record.expires_at <= now:
                self._drop(key)

    def _has_room(self, record: Record, encoded: bytes, now: float) -> bool:
        if not self._fits(record, encoded):
            self.expire(now)
        return self._fits(record, encoded)

    def _fits(self, record: Record, encoded: bytes) -> bool:
        old = self._held.get(record.key)
        more = 0 if old else 1
        return (
            len(self._held) + more <= self.limits.records
            and self._kinds[record.kind] + more <= self.limits.of_kind(record.kind)
            and self.size_bytes + len(encoded) - (len(old.encoded) if old else 0) <= self.limits.bytes
        )

    def _hold(self, key: bytes, held: Held) -> None:
        self._held[key] = held
        self._kinds[held.record.kind] += 1
        self.size_bytes += len(held.encoded)
        heapq.heappush(self._expiry, (held.record.expires_at, key))
        # Each newer version leaves an entry behind; without this a key that changes often would grow the heap.
        if len(self._expiry) > 2 * len(self._held) + 64:
            self._expiry = [(held.record.expires_at, key) for key, held in self._held.items()]
            heapq.heapify(self._expiry)

    def _drop(self, key: bytes) -> None:
        held = self._held.pop(key, None)
        if held:
            self._kinds[held.record.kind] -= 1
            if not self._kinds[held.record.kind]:
                del self._kinds[held.record.kind]  # kinds come from outside: no entry stays without a record
            self.size_bytes -= len(held.encoded)

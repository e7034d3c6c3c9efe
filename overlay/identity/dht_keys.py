"""The secret that all members share, so that datagrams of outsiders never enter a routing table.

It is given at joining and replaced at every revocation. For a grace time the previous key is accepted too, since
not everybody hears of the new one at once; for as long the revoked still look like insiders to the DHT, where
they can disturb but not lie, since records are signed besides. Who gets the new key later is not found in the DHT
until then, and finds nothing there: it asks the source.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from overlay.identity.keys import fresh_bytes

if TYPE_CHECKING:
    from datetime import datetime

DHT_KEY_BYTES: Final = 32
# Longer spares members that hear of the new key late a visit to the source; shorter ends what the revoked can see.
# Members that are connected hear of it at once, and at the latest by the next sign of life, 5 s later.
DHT_GRACE: Final = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class DhtKey:
    """A key and its number; a newer key has a larger one."""

    number: int
    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if self.number < 1 or len(self.secret) != DHT_KEY_BYTES:
            raise ValueError(f"a DHT key has a number from 1 on and {DHT_KEY_BYTES} bytes")


def fresh_dht_key(number: int) -> DhtKey:
    """Make a key, from the operating system's randomness."""
    return DhtKey(number, fresh_bytes(DHT_KEY_BYTES))


@dataclass(frozen=True, slots=True)
class DhtKeys:
    """The key in use, and the one before it until it is no longer accepted."""

    current: DhtKey
    previous: DhtKey | None = None
    previous_until: datetime | None = None

    def succeeded_by(self, key: DhtKey, now: datetime, grace: timedelta = DHT_GRACE) -> DhtKeys:
        """Take a newer key into use; one that is not newer changes nothing."""
        if key.number <= self.current.number:
            return self
        return replace(self, current=key, previous=self.current, previous_until=now + grace)

    def rotated(self, now: datetime, grace: timedelta = DHT_GRACE) -> DhtKeys:
        """Make a new key and take it into use: what the source does at a revocation."""
        return self.succeeded_by(fresh_dht_key(self.current.number + 1), now, grace)

    def accepted(self, number: int, now: datetime) -> DhtKey | None:
        """Return the key with a number if datagrams under it are accepted now."""
        if number == self.current.number:
            return self.current
        if self.previous is None or self.previous_until is None or number != self.previous.number:
            return None
        return self.previous if now < self.previous_until else None

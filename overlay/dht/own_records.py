"""The records that this node put and keeps putting: which are due again, and which are over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from overlay.dht.errors import LocalTooMany

if TYPE_CHECKING:
    from collections.abc import Callable

    from overlay.dht.records import Record

    Renew = Callable[[Record], Record | None]


@dataclass(slots=True)
class _Own:
    record: Record
    due_at: float


@dataclass(slots=True)
class OwnRecords:
    """Own records by key, the newest version of each.

    A record is put again every ``every_s``, and as soon as may be if the last put reached nobody. From
    ``renew_before_s`` before its expiry on, ``renew`` is asked for a successor (a higher version with a later
    expiry); without one, the record ends with its expiry.
    """

    every_s: float
    renew_before_s: float
    most: int
    renew: Renew | None = None
    _own: dict[bytes, _Own] = field(default_factory=dict)

    @property
    def records(self) -> int:
        """How many records there are."""
        return len(self._own)

    def add(self, record: Record, *, now: float) -> None:
        """Take in a record, unless a newer one of its key is there; ``LocalTooMany`` if there is no room."""
        known = self._own.get(record.key)
        if known is None and len(self._own) >= self.most:
            raise LocalTooMany("own records", self.most)
        if known is None or record.version > known.record.version:
            self._own[record.key] = _Own(record, now + self.every_s)

    def note_put(self, record: Record, replicas: int, *, now: float) -> None:
        """Note that a record was put, and on how many nodes."""
        own = self._own.get(record.key)
        if own is not None and own.record == record:
            own.due_at = now + self.every_s if replicas else now

    def forget(self, key: bytes) -> None:
        """Stop putting a record; it ends with its expiry."""
        self._own.pop(key, None)

    def due(self, now: float) -> list[Record]:
        """List what is to be put now, renewed where its time has come; what expired is forgotten."""
        due = []
        for key, own in list(self._own.items()):
            if self.renew is not None and now >= own.record.expires_at - self.renew_before_s:
                renewed = self.renew(own.record)
                if renewed is not None and renewed.key == key and renewed.version > own.record.version:
                    own.record, own.due_at = renewed, now
            if now >= own.record.expires_at:
                del self._own[key]
            elif now >= own.due_at:
                due.append(own.record)
        return due

"""The map of a space in the directory: what is put there when it changes, and how it is put together from there.

Theory of operation. There is a record for every zone, and for every prefix that was split (``records``). A change
of the map changes the records of the zones that it splits and grants, and the head, which is put last. Whoever
looks begins at the head and goes down where prefixes are split. The directory may omit: a record that is found may
be an older one, of before a zone was split or granted anew. So what was put together counts only if its hash is
what the head says. Then it is the map as the catalog had it in the head's version, every grant with its fencing
number.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec

from overlay.zones.errors import MalformedZone, ZoneError
from overlay.zones.records import HASH_BYTES, ZoneRecord, decode_zone_untrusted
from overlay.zones.tree import Split
from overlay.zones.zone_map import MAX_ZONES, Grant, ZoneMap

if TYPE_CHECKING:
    from collections.abc import Iterable

    from overlay.zones.zone_map import Change


def digest_of(known: ZoneMap) -> bytes:
    """Return the hash of a map: its version, splits and grants."""
    # Bounds that users declare may be integers; records have floats.
    splits = [(prefix, at.axis, float(at.value)) for prefix, at in sorted(known.tree.splits.items())]
    grants = [(prefix, *grant) for prefix, grant in sorted(known.grants.items())]
    return blake2b(msgspec.msgpack.encode([known.version, splits, grants]), digest_size=HASH_BYTES).digest()


def changed_records(known: ZoneMap, steps: Iterable[Change]) -> dict[str, ZoneRecord]:
    """Take steps, and return the records that change with them by prefix, the head last.

    >>> from overlay.zones.zone_map import Change
    >>> known = ZoneMap(1)
    >>> first = changed_records(known, [Change(1, (), (("", "a"),)), Change(2, (("", 0, 5.0),), (("1", "b"),))])
    >>> list(first), first["1"].owner, first["0"].fence, first[""].axis
    (['0', '1', ''], 'b', 1, 0)
    >>> list(changed_records(known, [Change(3, (), (("1", "a"),))]))
    ['1', '']
    """
    changed: set[str] = set()
    for step in steps:
        known.apply(step)
        for prefix, _, _ in step.splits:
            changed |= {prefix, prefix + "0", prefix + "1"}
        changed |= {prefix for prefix, _ in step.grants}
    if not changed:
        return {}
    records = {prefix: _record(known, prefix) for prefix in sorted(changed - {""})}
    head = msgspec.structs.replace(_record(known, ""), digest=digest_of(known))
    return records | {"": head}


def _record(known: ZoneMap, prefix: str) -> ZoneRecord:
    at, grant = known.tree.splits.get(prefix), known.grants.get(prefix)
    owner, fence = ("", 0) if grant is None else grant
    axis, value = (-1, 0.0) if at is None else at
    return ZoneRecord(known.version, axis, value, owner, fence)


class MapWalk:
    """Puts a map together: look ``wanted`` up, and give what was found to ``take``, until nothing is wanted.

    ``after``: a map of this version is of no use. ``MalformedZone`` if a record is none, or is not there.
    """

    def __init__(self, axes: int, after: int) -> None:
        self.wanted = {""}
        self._after, self._found, self._head = after, ZoneMap(axes), b""

    def take(self, prefix: str, payload: bytes | None) -> None:
        """Take in what was found under a prefix that was wanted."""
        if payload is None:
            raise MalformedZone(f"there is no record of {prefix or 'the whole space'!r}")
        record = decode_zone_untrusted(payload)
        self.wanted.remove(prefix)
        if not prefix:
            self._head, self._found.version = record.digest, record.version
            if record.version <= self._after:
                self.wanted.clear()
                return
        if not record.is_split:
            if record.owner:
                self._found.give(prefix, Grant(record.owner, record.fence))
            return
        if len(self._found.tree.splits) >= MAX_ZONES:
            raise MalformedZone("more zones than a space has")
        try:
            self._found.tree.split(prefix, Split(record.axis, record.value))
        except ZoneError as exc:
            raise MalformedZone(str(exc)) from None
        self.wanted |= {prefix + "0", prefix + "1"}

    @property
    def outcome(self) -> ZoneMap | None:
        """The map, once nothing is wanted; None if it is not newer, or some record in it is an older one."""
        is_right = not self.wanted and self._found.version > self._after and digest_of(self._found) == self._head
        return self._found if is_right else None

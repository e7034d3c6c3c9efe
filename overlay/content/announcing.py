"""A published message as it goes out: its bulky attributes parted from it, and what it covers said where its
attributes do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overlay.content import frames
from overlay.payloads.payload import payload_id, take_out

if TYPE_CHECKING:
    from overlay.content.journal import Published
    from rewriting.filters.space import Space


def message_of(entry: Published, space: Space, source: str) -> frames.Message:
    """Return what goes out of a publication; ``source``: who has its payload."""
    rest, bulky, key = dict(entry.attributes), None, b""
    covered = frames.unpack_region(entry.region) if entry.region else space.region(entry.attributes)
    if entry.payload:
        rest, bulky = take_out(entry.attributes, entry.payload)
        key = payload_id(bulky)
    # The attributes that stay in the message say what it covers, unless somebody said otherwise.
    says_itself = not entry.region and not {one.attribute for one in space.dimensions} & set(entry.payload)
    packed = () if says_itself else frames.pack_region(covered)
    return frames.Message(entry.number, 0, 0, rest, packed, entry.payload, key, source if key else "", bulky)

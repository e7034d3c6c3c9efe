"""Items as they travel, entries as they are stored, and what a user is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from overlay.feeds.items import Item, Kind
from peer.hosting.rows import rows_of
from peer.storage.result_values import Entry
from peer.storage.result_values import Kind as Stored

if TYPE_CHECKING:
    from xmlmatch import Pattern

_STORED: Final = {Kind.RESULTS: Stored.BATCH, Kind.ERROR: Stored.ERROR, Kind.GAP: Stored.GAP}
_READ: Final = {stored: kind for kind, stored in _STORED.items()} | {Stored.TRIMMED: Kind.GAP}
_MOST_ROWS: Final = 1_000_000


def entry_of(item: Item) -> Entry:
    """Return what is stored of an item."""
    after = item.after if item.kind is Kind.GAP else None
    return Entry(item.number, _STORED[item.kind], item.name, item.data, after)


def item_of(entry: Entry) -> Item:
    """Return what travels of an entry."""
    after = -1 if entry.after is None else entry.after
    return Item(entry.number, _READ[entry.kind], entry.data, after, entry.name)


def told_of(pattern: Pattern, entry: Entry) -> list[dict[str, Any]]:
    """Return what a user is told of an entry: its rows, or what is wrong or missing."""
    if entry.kind is Stored.BATCH:
        about = {"document": entry.number, "name": entry.name}
        return [about | {"row": row} for row in rows_of(pattern, entry.data, _MOST_ROWS)]
    if entry.kind is Stored.ERROR:
        return [{"document": entry.number, "name": entry.name, "error": entry.data.decode()}]
    return [{"gap": [entry.after, entry.number]}]

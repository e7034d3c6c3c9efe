"""Items as they travel, entries as they are stored, and what a user is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from overlay.feeds.items import Item, Kind
from peer.hosting.relay import resolved_reference
from peer.hosting.rows import rows_of
from peer.storage.result_values import Entry
from peer.storage.result_values import Kind as Stored
from xmlmatch.errors import XmlMatchError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xmlmatch import Pattern

_STORED: Final = {
    Kind.RESULTS: Stored.BATCH, Kind.ERROR: Stored.ERROR, Kind.GAP: Stored.GAP, Kind.REFERENCE: Stored.REFERENCE
}  # fmt: skip
_READ: Final = {stored: kind for kind, stored in _STORED.items()} | {Stored.TRIMMED: Kind.GAP}
_MOST_ROWS: Final = 1_000_000


def entry_of(item: Item) -> Entry:
    """Return what is stored of an item."""
    after = item.after if item.kind is Kind.GAP else None
    return Entry(item.number, _STORED[item.kind], item.name, item.data, after)


def item_of(pattern: Pattern, entry: Entry) -> Item:
    """Return what travels of an entry that was read; of a reference, the results that it means."""
    if entry.kind is Stored.REFERENCE:
        return resolved_reference(pattern, Item(entry.number, Kind.RESULTS, entry.data, name=entry.name))
    after = -1 if entry.after is None else entry.after
    return Item(entry.number, _READ[entry.kind], entry.data, after, entry.name)


def whole_entry(pattern: Pattern, entry: Entry) -> Entry:
    """Return an entry that was read, with the results themselves where it refers to them."""
    return entry_of(item_of(pattern, entry)) if entry.kind is Stored.REFERENCE else entry


def told_of(pattern: Pattern, entry: Entry) -> Iterator[dict[str, Any]]:
    """Yield what a user is told of a whole entry: its rows, or what is wrong or missing."""
    about = {"document": entry.number, "name": entry.name}
    if entry.kind is Stored.BATCH:
        try:
            for row in rows_of(pattern, entry.data, _MOST_ROWS):
                yield about | {"row": row}
        except XmlMatchError as exc:
            # Too many rows, say: whoever reads must be able to get past it.
            yield about | {"error": " ".join(str(exc).split())}
    elif entry.kind is Stored.ERROR:
        yield about | {"error": entry.data.decode()}
    else:
        yield {"gap": [entry.after, entry.number]}

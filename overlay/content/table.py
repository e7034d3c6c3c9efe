"""The subscriptions of a zone, and which of them a message satisfies.

Entries are merged by the number of the log that made them: a page of the catalog that comes late never undoes a
newer change, so pages and changes may come in any order, and twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from rewriting.filters.disjunction import Disjunction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from overlay.content.frames import Entry
    from rewriting.filters.region import Region

Key = tuple[str, int]


class Matching(Protocol):
    """What finds the filters that a message satisfies; ``quick`` has one for many."""

    def insert(self, key: Key, wanted: Disjunction) -> None:
        """Take a filter in."""

    def delete(self, key: Key) -> None:
        """Drop a filter."""

    def match(self, attributes: Mapping[str, str]) -> Iterable[Key]:
        """List the filters that are satisfied."""


class PlainLoop:
    """Looks at every filter; the obvious matcher."""

    def __init__(self) -> None:
        self._filters: dict[Key, Disjunction] = {}

    def insert(self, key: Key, wanted: Disjunction) -> None:
        """Take a filter in."""
        self._filters[key] = wanted

    def delete(self, key: Key) -> None:
        """Drop a filter."""
        del self._filters[key]

    def match(self, attributes: Mapping[str, str]) -> Iterator[Key]:
        """List the filters that are satisfied."""
        return (key for key, wanted in self._filters.items() if wanted.matches(attributes))


class ZoneTable:
    """The subscriptions of one zone, under the grant with this fencing number. ``is_loaded``: all of them are
    here."""

    def __init__(self, fence: int, make_matcher: Callable[[], Matching] = PlainLoop) -> None:
        self.fence = fence
        self.is_loaded = False
        self.loaded_upto: Key = ("", 0)
        self.entries: dict[Key, Entry] = {}
        self._ended: dict[Key, int] = {}
        self._matcher = make_matcher()

    def merge(self, entry: Entry) -> None:
        """Take an entry in, unless a newer one is here."""
        before = self.entries.get(entry.key)
        if before is not None and before.number >= entry.number:
            return
        self.entries[entry.key] = entry
        if entry.end >= 0:
            self._ended[entry.key] = entry.end
        if before is None and entry.filter:
            self._matcher.insert(entry.key, Disjunction.parse(entry.filter))

    def forget(self, frontier: int) -> None:
        """Drop what has ended, and had everything."""
        for key in [key for key, end in self._ended.items() if end <= frontier]:
            del self._ended[key]
            if self.entries.pop(key).filter:
                self._matcher.delete(key)

    def matching(self, number: int, region: Region, attributes: Mapping[str, str]) -> list[Entry]:
        """List the subscriptions that a message satisfies, and that are owed it."""
        found = [self.entries[key] for key in self._matcher.match(attributes)]
        found += [entry for entry in self.entries.values() if not entry.filter]
        return [entry for entry in found if entry.owes(number) and region.contains(entry.point)]

    def may_match(self, number: int, region: Region) -> bool:
        """Say whether anybody could be owed a message, by its region alone."""
        return any(entry.owes(number) and region.contains(entry.point) for entry in self.entries.values())

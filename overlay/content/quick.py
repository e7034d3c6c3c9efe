"""The quick matcher of a zone, for many subscriptions: ``overlay.matching`` behind what zones ask for.

A plain loop is as good up to some hundred filters, and has nothing to compile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from overlay.matching import Matcher

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from overlay.content.table import Key
    from rewriting.filters import Disjunction


class QuickMatching:
    """Subscriptions by key, and a matcher that knows them by number.

    >>> from rewriting.filters import Disjunction
    >>> quick = QuickMatching()
    >>> quick.insert(("s", 1), Disjunction.parse("price < 50 or topic = 'sport'"))
    >>> list(quick.match({"price": "20"}))
    [('s', 1)]
    """

    def __init__(self) -> None:
        self._matcher = Matcher()
        self._numbers: dict[Key, int] = {}
        self._keys: dict[int, Key] = {}

    def insert(self, key: Key, wanted: Disjunction) -> None:
        """Take a filter in."""
        self._numbers[key] = number = self._matcher.insert(wanted)
        self._keys[number] = key

    def delete(self, key: Key) -> None:
        """Drop a filter."""
        number = self._numbers.pop(key)
        del self._keys[number]
        self._matcher.delete(number)

    def match(self, attributes: Mapping[str, str]) -> Iterator[Key]:
        """List the filters that are satisfied."""
        return (self._keys[number] for number in self._matcher.match(attributes).tolist())

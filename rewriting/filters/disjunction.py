"""Subscriptions in disjunctive normal form: any of several filters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rewriting.filters.errors import FilterError
from rewriting.filters.filter import Filter, check_text
from rewriting.filters.reading import FilterReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rewriting.filters.values import Value

MAX_FILTERS: Final = 64


@dataclass(frozen=True, slots=True)
class Disjunction:
    """Filters of which one must match, sorted, each once.

    >>> wanted = Disjunction.parse("topic = 'sport' and price < 50 or topic in ('news', 'art')")
    >>> wanted.matches({"topic": "art"}), wanted.matches({"topic": "sport", "price": 60})
    (True, False)
    >>> str(wanted)
    "price < 50 and topic = 'sport' or topic in ('art', 'news')"
    """

    filters: tuple[Filter, ...]

    def __post_init__(self) -> None:
        if not 0 < len(self.filters) <= MAX_FILTERS:
            raise FilterError(f"'or' joins 1 to {MAX_FILTERS} filters", 0)
        object.__setattr__(self, "filters", tuple(sorted(set(self.filters), key=repr)))

    @classmethod
    def parse(cls, text: str, *, select: Iterable[str] = (), whole: bool = False) -> Disjunction:
        """Read conditions joined by ``and``, and conjunctions of them joined by ``or``."""
        check_text(text, select)
        asked = FilterReader(text).disjunction() if text.strip() else [[]]
        names = tuple(select)
        return cls(tuple(Filter(tuple(conditions), names, whole) for conditions in asked))

    def __str__(self) -> str:
        return " or ".join(map(str, self.filters))

    def matches(self, message: Mapping[str, Value]) -> bool:
        """Say whether a message satisfies one of the filters."""
        return any(f.matches(message) for f in self.filters)

"""What a filter can ask of one attribute: a comparison, membership in a list, or a beginning."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from rewriting.filters.errors import FilterError
from rewriting.filters.values import number_of, text_of
from xmlmatch.predicates import Operator, Predicate, representatives, satisfiable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rewriting.filters.values import Value

MAX_CHOICES: Final = 1_000


@dataclass(frozen=True, slots=True)
class OneOf:
    """Equality with one of some constants; strings compare as text, numbers as numbers.

    >>> wanted = OneOf(("sport", 5.0))
    >>> wanted.holds("sport"), wanted.holds("05"), wanted.holds("news"), str(wanted)
    (True, True, False, "in ('sport', 5)")
    """

    constants: tuple[str | float, ...]

    def __post_init__(self) -> None:
        if not 0 < len(self.constants) <= MAX_CHOICES:
            raise ValueError(f"'in' takes 1 to {MAX_CHOICES:,} constants")
        equals = {Predicate(Operator.EQ, _constant(c)) for c in self.constants}
        texts = sorted(p.constant for p in equals if isinstance(p.constant, str))
        numbers = sorted(p.constant for p in equals if not isinstance(p.constant, str))
        object.__setattr__(self, "constants", (*texts, *numbers))

    def __str__(self) -> str:
        return f"in ({', '.join(str(p)[1:] for p in self.equalities())})"

    def equalities(self) -> list[Predicate]:
        """List the comparisons of which one must hold."""
        return [Predicate(Operator.EQ, c) for c in self.constants]

    def holds(self, value: str) -> bool:
        """Say whether a text is one of the constants."""
        return any(p.holds(value) for p in self.equalities())


@dataclass(frozen=True, slots=True)
class Prefix:
    """How a value begins, as text.

    >>> Prefix("Row").holds("Rowing"), Prefix("Row").holds("row"), str(Prefix("Row"))
    (True, False, "prefix 'Row'")
    """

    beginning: str

    def __post_init__(self) -> None:
        Predicate(Operator.EQ, self.beginning)  # it can be written in quotes

    def __str__(self) -> str:
        return f"prefix {str(Predicate(Operator.EQ, self.beginning))[1:]}"

    def holds(self, value: str) -> bool:
        """Say whether a text begins so."""
        return value.startswith(self.beginning)


Test: TypeAlias = Predicate | OneOf | Prefix


@dataclass(frozen=True, slots=True)
class Condition:
    """What one attribute must satisfy; ``in`` with one constant becomes equality, integers become doubles."""

    attribute: str
    predicate: Test

    def __post_init__(self) -> None:
        asked = self.predicate
        if isinstance(asked, OneOf) and len(asked.constants) == 1:
            object.__setattr__(self, "predicate", asked.equalities()[0])
        elif isinstance(asked, Predicate) and isinstance(asked.constant, int):
            object.__setattr__(self, "predicate", Predicate(asked.operator, _constant(asked.constant)))

    def __str__(self) -> str:
        text = str(self.predicate)
        if not isinstance(self.predicate, Predicate):
            return f"{self.attribute} {text}"
        operator = self.predicate.operator.value
        return f"{self.attribute} {operator} {text.removeprefix(operator)}"

    def holds(self, value: Value) -> bool:
        """Say whether a value satisfies it."""
        return self.predicate.holds(text_of(value))


def _constant(constant: str | float) -> str | float:
    if isinstance(constant, str):
        return constant
    if isinstance(constant, bool) or not math.isfinite(found := number_of(constant)):
        raise FilterError(f"{constant!r:.40} is no constant: use text or a finite number", 0)
    return found + 0.0  # -0 equals 0


def can_hold(tests: Iterable[Test]) -> bool:
    """Say whether some value may satisfy all; beginnings that meet comparisons of numbers are taken for possible.

    >>> can_hold([OneOf(("a", "b")), Predicate(Operator.NE, "a")]), can_hold([Prefix("a"), Prefix("b")])
    (True, False)
    """
    asked = list(tests)
    comparisons = [t for t in asked if isinstance(t, Predicate)]
    lists = [t for t in asked if isinstance(t, OneOf)]
    beginnings = [t for t in asked if isinstance(t, Prefix)]
    exact = [p for p in comparisons if p.operator is Operator.EQ and isinstance(p.constant, str)]
    if beginnings and not exact:
        return _compatible(beginnings) and (not lists or _among(lists[0], [*lists, *beginnings]))
    if not (lists or beginnings):
        return satisfiable(comparisons)
    known = [*comparisons, *(p for t in lists for p in t.equalities())]
    return any(all(t.holds(value) for t in asked) for value in representatives(known))


def _compatible(beginnings: Sequence[Prefix]) -> bool:
    longest = max((t.beginning for t in beginnings), key=len)
    return all(longest.startswith(t.beginning) for t in beginnings)


def _among(first: OneOf, tests: Sequence[Test]) -> bool:
    """Say whether a text of a list may satisfy all; a number has more spellings than can be tried."""
    return any(not isinstance(c, str) or all(t.holds(c) for t in tests) for c in first.constants)

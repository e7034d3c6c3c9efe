"""Value predicates, and what a set of them can be told by.

Whether predicates hold together is decided on *representative values*: each string
constant; for each numeric constant another spelling of it; a point between neighbours and beyond both ends;
and one string that is no number. Any value of a document behaves like one of them.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from xmlmatch.numerals import number, spell

if TYPE_CHECKING:
    from collections.abc import Iterable


class Operator(enum.Enum):
    """The comparisons of the language."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


@dataclass(frozen=True, slots=True)
class Predicate:
    """``operator constant`` on a node's string value: a string constant compares as text, a number as numbers.

    >>> Predicate(Operator.GE, 40.0).holds(" 4e1 "), Predicate(Operator.EQ, "40").holds(" 4e1 ")
    (True, False)
    """

    operator: Operator
    constant: str | float

    def __post_init__(self) -> None:
        if isinstance(self.constant, str):
            if self.operator not in (Operator.EQ, Operator.NE):
                raise ValueError("a string compares only by = and !=")
            if "'" in self.constant and '"' in self.constant:
                raise ValueError("a string constant cannot hold both kinds of quotes")
        elif not math.isfinite(self.constant):
            raise ValueError("a number must be finite")

    def __str__(self) -> str:
        if isinstance(self.constant, str):
            quote = '"' if "'" in self.constant else "'"
            return f"{self.operator.value}{quote}{self.constant}{quote}"
        return f"{self.operator.value}{spell(self.constant)}"

    def holds(self, value: str) -> bool:
        """Say whether a node with this string value satisfies the predicate."""
        if isinstance(self.constant, str):
            return (value == self.constant) == (self.operator is Operator.EQ)
        return _compare(number(value), self.operator, self.constant)


def _compare(value: float, operator: Operator, constant: float) -> bool:
    match operator:
        case Operator.EQ:
            return value == constant
        case Operator.NE:
            return value != constant  # also for NaN
        case Operator.LT:
            return value < constant
        case Operator.LE:
            return value <= constant
        case Operator.GT:
            return value > constant
        case Operator.GE:
            return value >= constant


def representatives(predicates: Iterable[Predicate]) -> list[str]:
    """List values among which every distinction that the predicates can make shows.

    >>> representatives([Predicate(Operator.EQ, 5.0), Predicate(Operator.NE, "a")])
    ['a', '5', '05', '4', '6', 'aa']
    """
    constants = [p.constant for p in predicates]
    strings = sorted({c for c in constants if isinstance(c, str)})
    numbers = sorted({c for c in constants if not isinstance(c, str)} | _finite(strings))
    values = list(strings)
    for n in numbers:
        values += _spellings(n, set(strings))
    if numbers:
        between = [a / 2 + b / 2 if a < 0 < b else a + (b - a) / 2 for a, b in pairwise(numbers)]
        ends = [_below(numbers[0]), _above(numbers[-1])]
        values += [v for p in ends + between for v in _spellings(p, set(strings))[:1] if p not in numbers]
    return [*values, _no_number(strings)]


def _finite(strings: Iterable[str]) -> set[float]:
    return {n for n in map(number, strings) if math.isfinite(n)}


def _spellings(value: float, taken: set[str]) -> list[str]:
    """Spell a number in two ways that no string constant uses."""
    text = spell(value)
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    found = [s for k in range(len(taken) + 2) if (s := sign + "0" * k + digits) not in taken]
    return found[:2]


def _below(value: float) -> float:
    return value - 1 if value - 1 < value else math.nextafter(value, -math.inf)


def _above(value: float) -> float:
    return value + 1 if value + 1 > value else math.nextafter(value, math.inf)


def _no_number(strings: list[str]) -> str:
    """Make a string that equals no constant and is no number."""
    return "a" * (1 + max(map(len, strings), default=0))


def satisfiable(predicates: Iterable[Predicate]) -> bool:
    """Say whether some value satisfies all the predicates.

    >>> satisfiable([Predicate(Operator.EQ, "1"), Predicate(Operator.EQ, "2")])
    False
    """
    wanted = list(predicates)
    return any(all(p.holds(value) for p in wanted) for value in representatives(wanted))

"""Reads filters from text: conditions joined by ``and``, conjunctions of them joined by ``or``."""

from __future__ import annotations

import re
from typing import Final

from rewriting.filters.condition import MAX_CHOICES, Condition, OneOf, Prefix
from rewriting.filters.errors import FilterError
from xmlmatch.numerals import NUMERAL, number
from xmlmatch.predicates import Operator, Predicate

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_SPACE: Final = re.compile(r"\s*")
_OPERATOR: Final = re.compile(r"!=|<=|>=|=|<|>|in\b|prefix\b")
_STRING: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
_AND: Final = re.compile(r"and\b")
_OR: Final = re.compile(r"or\b")
_LIST_SIGN: Final = {"(": re.compile(r"\("), ", or )": re.compile(r"[,)]")}


class FilterReader:
    """Reads one text; ``FilterError`` with the column and what was expected."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def conjunction(self) -> list[Condition]:
        """Read conditions joined by ``and`` to the end."""
        found = self._conditions()
        if self._rest():
            raise FilterError("expected 'and' and another condition", self._at)
        return found

    def disjunction(self) -> list[list[Condition]]:
        """Read conjunctions joined by ``or`` to the end."""
        found = [self._conditions()]
        while self._rest():
            self._take(_OR, "'and' or 'or' and another condition")
            found.append(self._conditions())
        return found

    def _conditions(self) -> list[Condition]:
        found = [self._condition()]
        while self._rest() and (more := _AND.match(self._text, self._at)) is not None:
            self._at = more.end()
            found.append(self._condition())
        return found

    def _rest(self) -> bool:
        self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]  # it matches everything
        return self._at < len(self._text)

    def _take(self, what: re.Pattern[str], name: str) -> str:
        self._rest()
        found = what.match(self._text, self._at)
        if found is None:
            raise FilterError(f"expected {name}", self._at)
        self._at = found.end()
        return found[0]

    def _condition(self) -> Condition:
        attribute = self._take(NAME, "an attribute name")
        operator = self._take(_OPERATOR, "= != < <= > >= in or prefix")
        self._rest()
        start = self._at
        try:
            if operator == "in":
                return Condition(attribute, OneOf(self._constants()))
            if operator == "prefix":
                return Condition(attribute, Prefix(self._take(_STRING, "a quoted string")[1:-1]))
            return Condition(attribute, Predicate(Operator(operator), self._constant()))
        except ValueError as exc:
            raise FilterError(str(exc), start) from None

    def _constants(self) -> tuple[str | float, ...]:
        self._take(_LIST_SIGN["("], "'(' and constants")
        found = [self._constant()]
        while self._take(_LIST_SIGN[", or )"], "',' or ')'") == ",":
            if len(found) == MAX_CHOICES:
                raise FilterError(f"more than {MAX_CHOICES:,} constants", self._at)
            found.append(self._constant())
        return tuple(found)

    def _constant(self) -> str | float:
        self._rest()
        if (quoted := _STRING.match(self._text, self._at)) is not None:
            self._at = quoted.end()
            return quoted[0][1:-1]
        return number(self._take(NUMERAL, "a quoted string or a number"))

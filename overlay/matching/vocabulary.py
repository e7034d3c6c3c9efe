"""Numbers for names: attributes, texts that predicates mention, and lists of constants.

Texts and lists are counted and forgotten when no predicate mentions them. Attributes stay: there are few.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from overlay.matching import codes
from overlay.matching.batch import Batch
from overlay.matching.counted import Counted
from overlay.matching.errors import BadBatch, MatcherFull, WrongType
from rewriting.filters import Condition, Filter, OneOf, Operator, Predicate, Prefix, Test, number_of, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from overlay.matching.pending import Written
    from rewriting.filters import Value

MAX_ATTRIBUTES: Final = 10_000
_COMPARISONS: Final = {
    Operator.EQ: codes.EQ, Operator.NE: codes.NE, Operator.LT: codes.LT, Operator.LE: codes.LE,
    Operator.GT: codes.GT, Operator.GE: codes.GE,
}  # fmt: skip
_OPERATORS: Final = {code: operator for operator, code in _COMPARISONS.items()}
_TEXT_MATTERS: Final = [codes.EQ_TEXT, codes.NE_TEXT, codes.PREFIX, codes.IN]


class ValueType(enum.Enum):
    """What the values of a declared attribute are."""

    NUMBER = "number"
    TEXT = "text"


class Event(NamedTuple):
    """A message as arrays: its attributes that anybody asks about, and per attribute number and text."""

    attributes: NDArray[np.int64]
    numbers: NDArray[np.float64]
    texts: NDArray[np.int64]
    prefixes: NDArray[np.int64]
    """Pairs: attribute, and the number of a text with which its value begins."""


_NO_PREFIXES: Final[NDArray[np.int64]] = np.zeros((0, 2), np.int64)


class Vocabulary:
    """What the numbers in predicates mean."""

    def __init__(self, types: Mapping[str, ValueType] | None = None) -> None:
        self.types = dict(types or {})
        self.attributes: dict[str, int] = {}
        self.names: list[str] = []
        self._asks_text: list[bool] = []
        self._prefix_lengths: dict[int, dict[int, int]] = {}
        self._texts = Counted[str]()
        self._lists = Counted[tuple[str | float, ...]]()

    @property
    def size_bytes(self) -> int:
        """Roughly how much memory texts and lists take."""
        return self._texts.size_bytes + self._lists.size_bytes

    def attribute(self, name: str) -> int:
        """Return the number of an attribute, a new one if need be."""
        found = self.attributes.get(name)
        if found is None:
            if len(self.names) == MAX_ATTRIBUTES:
                raise MatcherFull("attributes", MAX_ATTRIBUTES)
            found = self.attributes[name] = len(self.names)
            self.names.append(name)
            self._asks_text.append(False)
        return found

    def text(self, text: str) -> int:
        """Return the number of a text."""
        return self._texts.number(text)

    def one_of(self, test: OneOf) -> int:
        """Return the number of a list of constants."""
        return self._lists.number(test.constants)

    def keep_text(self, number: int, prefix_of: int | None) -> None:
        """A predicate mentions a text: for its beginning, if an attribute is given."""
        length = len(self._texts.keep(number))
        if prefix_of is not None:
            lengths = self._prefix_lengths.setdefault(prefix_of, {})
            lengths[length] = lengths.get(length, 0) + 1

    def drop_text(self, number: int, prefix_of: int | None) -> None:
        """A predicate that mentioned a text is gone."""
        length = len(self._texts.drop(number))
        if prefix_of is not None:
            lengths = self._prefix_lengths[prefix_of]
            lengths[length] -= 1
            if not lengths[length]:
                del lengths[length]

    def equalities(self, number: int, attribute: int) -> Batch:
        """Return the equalities of a list that a predicate mentions from now on, as one conjunction."""
        constants = self._lists.keep(number)
        encoded = [self._compared(codes.EQ, codes.EQ_TEXT, c) for c in constants]
        values = [value for _, value in encoded]
        return Batch.trusted([0, len(encoded)], [attribute] * len(encoded), [code for code, _ in encoded], values)

    def drop_list(self, number: int) -> None:
        """A predicate that mentioned a list is gone."""
        self._lists.drop(number)

    def encode(self, filters: Sequence[Filter]) -> list[list[Written]]:
        """Write filters as numbers; ``WrongType`` if one goes against declared types."""
        if self.types:
            for condition in (c for wanted in filters for c in wanted.conditions):
                self._check_condition(condition)
        return [self._written(wanted) for wanted in filters]

    def _written(self, wanted: Filter) -> list[Written]:
        found: list[Written] = []
        for condition in wanted.conditions:
            test, attribute = condition.predicate, self.attribute(condition.attribute)
            if type(test) is Predicate and type(test.constant) is float:
                found.append((attribute, _COMPARISONS[test.operator], test.constant))
                continue
            code, value = self._encoded(test)
            if code in _TEXT_MATTERS:
                self._asks_text[attribute] = True
            found.append((attribute, code, value))
        return found + [(self.attribute(name), codes.PRESENT, 0.0) for name in wanted.select]

    def note_texts(self, batch: Batch) -> None:
        """Remember for which attributes an event's text matters."""
        for attribute in np.unique(batch.attributes[np.isin(batch.operators, _TEXT_MATTERS)]):
            self._asks_text[attribute] = True

    def check(self, batch: Batch) -> None:
        """Refuse a batch that mentions what is unknown, or types that attributes do not have."""
        if len(batch.attributes) and not 0 <= batch.attributes.min() <= batch.attributes.max() < len(self.names):
            raise BadBatch("an attribute number is unknown; get it from Matcher.attribute")
        for operators, known in ((sorted(codes.TEXTUAL), self._texts), ([codes.IN], self._lists)):
            for value in np.unique(batch.values[np.isin(batch.operators, operators)]):
                if not known.has(value):
                    raise BadBatch(f"{value} is no number of a text or list; use Matcher.text and Matcher.one_of")
        if self.types:
            pairs = np.unique(np.stack([batch.attributes, batch.operators.astype(np.int32)]), axis=1)
            for attribute, operator in pairs.T:
                wrong = {ValueType.NUMBER: codes.TEXTUAL, ValueType.TEXT: codes.NUMERIC}
                declared = self.types.get(self.names[attribute])
                if declared is not None and int(operator) in wrong[declared]:
                    raise WrongType(self.names[attribute], declared.value, "what a subscription compares it with")

    def event(self, message: Mapping[str, Value]) -> Event:
        """Write a message as arrays; ``WrongType`` where it is not what is declared."""
        if self.types:
            self._check_message(message)
        attributes, numbers, texts, prefixes = [], [], [], []
        known, asks_text = self.attributes, self._asks_text
        for name, value in message.items():
            attribute = known.get(name)
            if attribute is None:
                if type(value) is not str:
                    text_of(value)  # refuses what is no value
                continue
            attributes.append(attribute)
            numbers.append(value if type(value) is float else number_of(value))
            if asks_text[attribute]:
                text = text_of(value)
                texts.append(self._texts.find(text))
                prefixes += self._beginnings(attribute, text)
            else:
                texts.append(-1)
        return Event(
            np.array(attributes, np.int64), np.array(numbers, np.float64), np.array(texts, np.int64),
            np.array(prefixes, np.int64) if prefixes else _NO_PREFIXES,
        )  # fmt: skip

    def _beginnings(self, attribute: int, text: str) -> list[tuple[int, int]]:
        """List the texts that something asks for at the beginning of this one."""
        lengths = self._prefix_lengths.get(attribute, ())
        found = [self._texts.find(text[:length]) for length in lengths if length <= len(text)]
        return [(attribute, number) for number in found if number >= 0]

    def condition(self, attribute: int, operator: int, value: float) -> Condition | None:
        """Return what a predicate asks; None for mere presence."""
        name = self.names[attribute]
        match operator:
            case codes.PRESENT:
                return None
            case codes.PREFIX:
                return Condition(name, Prefix(self._texts[int(value)]))
            case codes.IN:
                return Condition(name, OneOf(self._lists[int(value)]))
            case codes.EQ_TEXT | codes.NE_TEXT:
                found = Operator.EQ if operator == codes.EQ_TEXT else Operator.NE
                return Condition(name, Predicate(found, self._texts[int(value)]))
            case _:
                return Condition(name, Predicate(_OPERATORS[operator], value))

    def _encoded(self, test: Test) -> tuple[int, float]:
        if isinstance(test, OneOf):
            return codes.IN, self.one_of(test)
        if isinstance(test, Prefix):
            return codes.PREFIX, self.text(test.beginning)
        text_code = codes.EQ_TEXT if test.operator is Operator.EQ else codes.NE_TEXT
        return self._compared(_COMPARISONS[test.operator], text_code, test.constant)

    def _compared(self, number_code: int, text_code: int, constant: str | float) -> tuple[int, float]:
        if isinstance(constant, str):
            return text_code, self.text(constant)
        return number_code, constant

    def _check_condition(self, condition: Condition) -> None:
        declared = self.types.get(condition.attribute)
        if declared is None:
            return
        test = condition.predicate
        constants = test.constants if isinstance(test, OneOf) else [
            test.beginning if isinstance(test, Prefix) else test.constant
        ]  # fmt: skip
        for constant in constants:
            if isinstance(constant, str) == (declared is ValueType.NUMBER):
                raise WrongType(condition.attribute, declared.value, f"compared with {constant!r:.60}")

    def _check_message(self, message: Mapping[str, Value]) -> None:
        for name, declared in self.types.items():
            if name not in message:
                continue
            value = message[name]
            is_text = isinstance(value, str)
            if declared is ValueType.TEXT and not is_text:
                raise WrongType(name, declared.value, f"{value!r:.60}")
            number = number_of(value)
            if declared is ValueType.NUMBER and is_text and number != number:
                raise WrongType(name, declared.value, f"{value!r:.60}")

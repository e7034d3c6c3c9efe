"""What sets of predicates say about a value, as numbers; and which set implies which.

The values that satisfy a set are one of these: none; one string (an ``=`` with a string constant); or all
strings whose number lies in a closed interval, and perhaps those that are no number, less some numbers and some
strings. Open ends are closed by stepping to the next double, so an interval says exactly which numbers it holds.
A number has endlessly many spellings, so an interval that holds any is never inside one string.

This is the only implication in the system: embeddings, covers and feeding all ask ``implied``. It is transitive,
for it is inclusion of sets; the network's freedom from cycles hangs on that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rewriting.growing import grown_rows
from rewriting.kernels import kernel
from xmlmatch.numerals import number
from xmlmatch.pointers import float64_at, int64_at
from xmlmatch.predicates import Operator, Predicate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

NO_CONDITION: Final = 0
_EQUAL, _NAN_OK, _EMPTY, _NUMBERS, _NUMBERS_END, _STRINGS, _STRINGS_END, _INTS = range(8)
_LOW, _HIGH, _EQUAL_NUMBER, _FLOATS = range(4)


@dataclass(slots=True)
class _Region:
    """The values that satisfy a set of predicates."""

    low: float = -math.inf
    high: float = math.inf
    nan_ok: bool = True
    equal: str | None = None
    empty: bool = False
    numbers: tuple[float, ...] = ()
    strings: tuple[str, ...] = ()


def _region(predicates: Iterable[Predicate]) -> _Region:
    found = _Region()
    wanted = list(predicates)
    for p in wanted:
        if isinstance(p.constant, str):
            if p.operator is Operator.NE:
                found.strings += (p.constant,)
            else:
                found.equal = p.constant
        elif p.operator is Operator.NE:
            found.numbers += (p.constant,)
        else:
            _narrow(found, p.operator, p.constant)
    if found.equal is not None:
        found.empty = not all(p.holds(found.equal) for p in wanted)
        return found
    while found.low in found.numbers:
        found.low = math.nextafter(found.low, math.inf)
    while found.high in found.numbers:
        found.high = math.nextafter(found.high, -math.inf)
    found.empty = found.low > found.high and not found.nan_ok
    return found


def _narrow(region: _Region, operator: Operator, constant: float) -> None:
    region.nan_ok = False
    if operator in (Operator.EQ, Operator.GE):
        region.low = max(region.low, constant)
    if operator in (Operator.EQ, Operator.LE):
        region.high = min(region.high, constant)
    if operator is Operator.GT:
        region.low = max(region.low, math.nextafter(constant, math.inf))
    if operator is Operator.LT:
        region.high = min(region.high, math.nextafter(constant, -math.inf))


class Conditions:
    """Every distinct set of predicates as a number; 0 is the empty set.

    >>> conditions = Conditions()
    >>> small, tiny = (conditions.add((Predicate(Operator.LT, n),)) for n in (5.0, 3.0))
    >>> conditions.implied(tiny, small), conditions.implied(small, tiny)
    (True, False)
    """

    def __init__(self) -> None:
        self._ids: dict[tuple[tuple[str, str | float], ...], int] = {(): NO_CONDITION}
        self._strings: dict[str, int] = {}
        self._ints = np.zeros((64, _INTS), np.int64)
        self._floats = np.zeros((64, _FLOATS))
        self._numbers = np.zeros(64)
        self._excluded = np.zeros((64, 2))  # number of the string, its value
        self._used = [1, 0, 0]
        self._new: list[_Region] = []

    def __len__(self) -> int:
        return self._used[0] + len(self._new)

    def add(self, predicates: tuple[Predicate, ...]) -> int:
        """Return the number of a set, which may be new."""
        # Enums hash slowly; their values do not.
        key = tuple((p.operator._value_, p.constant) for p in predicates)
        found = self._ids.get(key)
        if found is None:
            found = self._ids[key] = len(self)
            self._new.append(_region(predicates))
        return found

    def fixed(self) -> NDArray[np.bool_]:
        """Say of each condition whether it names the one string a value can be."""
        fixed: NDArray[np.bool_] = self.arrays[0][: len(self), _EQUAL] >= 0
        fixed[NO_CONDITION] = False
        return fixed

    def implied(self, stronger: int, weaker: int) -> bool:
        """Say whether every value that satisfies ``stronger`` satisfies ``weaker``."""
        return bool(_implied_in(self.arrays, stronger, weaker))

    @property
    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """What ``pointers_to`` reads; valid until the next ``add``."""
        if self._new:
            self._store(self._new)
            self._new = []
        return self._ints, self._floats, self._numbers, self._excluded

    def _store(self, regions: Sequence[_Region]) -> None:
        """Append conditions to the arrays, all at once."""
        at, numbers, strings = self._used
        number_ends = numbers + np.cumsum([len(r.numbers) for r in regions])
        string_ends = strings + np.cumsum([len(r.strings) for r in regions])
        end = at + len(regions)
        self._ints, self._floats = grown_rows(self._ints, end), grown_rows(self._floats, end)
        self._numbers = grown_rows(self._numbers, int(number_ends[-1]))
        self._excluded = grown_rows(self._excluded, int(string_ends[-1]))
        equal = [-1 if r.equal is None else self._string(r.equal) for r in regions]
        flags = [(r.nan_ok, r.empty) for r in regions]
        counts = np.array([(len(r.numbers), len(r.strings)) for r in regions])
        ends = np.column_stack((number_ends, string_ends))
        bounds = np.stack((ends - counts, ends), axis=2).reshape(len(regions), 4)
        self._ints[at:end] = np.column_stack((equal, flags, bounds))
        self._floats[at:end] = [(r.low, r.high, math.nan if r.equal is None else number(r.equal)) for r in regions]
        self._numbers[numbers : number_ends[-1]] = [n for r in regions for n in r.numbers]
        excluded = [(self._string(text), number(text)) for r in regions for text in r.strings]
        self._excluded[strings : string_ends[-1]] = np.array(excluded, np.float64).reshape(-1, 2)
        self._used = [end, int(number_ends[-1]), int(string_ends[-1])]

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))


@lru_cache(maxsize=65_536)
def implies(stronger: tuple[Predicate, ...], weaker: tuple[Predicate, ...]) -> bool:
    """``implied`` for two sets of predicates, remembered: the same few are compared over and over."""
    if not weaker or stronger == weaker:
        return True
    conditions = Conditions()
    return conditions.implied(conditions.add(stronger), conditions.add(weaker))


@kernel
def pointers_to(arrays: Any) -> Any:
    """Turn ``Conditions.arrays`` into plain pointers: handing arrays on would cost more than the comparison."""
    ints, floats, numbers, strings = arrays
    return (
        int64_at(ints.ctypes.data),
        float64_at(floats.ctypes.data),
        float64_at(numbers.ctypes.data),
        float64_at(strings.ctypes.data),
    )


@kernel
def _implied_in(arrays: Any, stronger: int, weaker: int) -> bool:
    return bool(implied(pointers_to(arrays), stronger, weaker))


@kernel
def implied(conditions: Any, stronger: int, weaker: int) -> bool:
    """Say whether the values of one condition are among those of another."""
    if stronger == weaker or weaker == NO_CONDITION:
        return True
    if stronger == NO_CONDITION:
        return False
    ints, floats, numbers, strings = conditions
    if ints[_INTS * stronger + _EMPTY]:
        return True
    if ints[_INTS * weaker + _EMPTY]:
        return False
    if ints[_INTS * stronger + _EQUAL] >= 0:
        return _holds(
            ints,
            floats,
            numbers,
            strings,
            weaker,
            ints[_INTS * stronger + _EQUAL],
            floats[_FLOATS * stronger + _EQUAL_NUMBER],
        )
    if ints[_INTS * weaker + _EQUAL] >= 0 or (
        ints[_INTS * stronger + _NAN_OK] and not ints[_INTS * weaker + _NAN_OK]
    ):
        return False
    if (
        floats[_FLOATS * stronger + _LOW] < floats[_FLOATS * weaker + _LOW]
        or floats[_FLOATS * stronger + _HIGH] > floats[_FLOATS * weaker + _HIGH]
    ):
        return False
    for i in range(ints[_INTS * weaker + _NUMBERS], ints[_INTS * weaker + _NUMBERS_END]):
        if _has_number(ints, floats, numbers, stronger, numbers[i]):
            return False
    for i in range(ints[_INTS * weaker + _STRINGS], ints[_INTS * weaker + _STRINGS_END]):
        if _holds(ints, floats, numbers, strings, stronger, np.int64(strings[2 * i]), strings[2 * i + 1]):
            return False
    return True


@kernel
def is_fixed(conditions: Any, condition: int) -> bool:
    """Say whether a condition names the one string a value can be."""
    return bool(condition != NO_CONDITION and conditions[0][_INTS * condition + _EQUAL] >= 0)


@kernel
def _has_number(ints: Any, floats: Any, numbers: Any, condition: int, value: float) -> bool:
    """Say whether the interval holds a number and does not exclude it."""
    if not floats[_FLOATS * condition + _LOW] <= value <= floats[_FLOATS * condition + _HIGH]:
        return False
    for i in range(ints[_INTS * condition + _NUMBERS], ints[_INTS * condition + _NUMBERS_END]):
        if numbers[i] == value:
            return False
    return True


@kernel
def _holds(
    ints: Any, floats: Any, numbers: Any, strings: Any, condition: int, text: Any, value: float
) -> bool:  # fmt: skip
    """Say whether a string, given by its number and its numeric value, satisfies a condition."""
    if ints[_INTS * condition + _EQUAL] >= 0:
        return bool(ints[_INTS * condition + _EQUAL] == text)
    for i in range(ints[_INTS * condition + _STRINGS], ints[_INTS * condition + _STRINGS_END]):
        if strings[2 * i] == text:
            return False
    if math.isnan(value):
        return bool(ints[_INTS * condition + _NAN_OK])
    return _has_number(ints, floats, numbers, condition, value)

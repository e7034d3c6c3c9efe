"""Predicates: what holds, and what holds together."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles.numbers import compare
from tests.strategies import VALUES
from xmlmatch import Operator, Predicate
from xmlmatch.predicates import representatives, satisfiable

STRINGS = ["5", "05", "5.0", " 5 ", "4", "6", "40", "4e1", "a", "aa", "", "NaN", "1e999", "-0", "0", "1e400"]
CONSTANTS = [5.0, 4.0, 6.0, 40.0, 0.0, -1.0, 4.5, 5e-324, 1.7976931348623157e308, -1.7976931348623157e308]
STRING_PREDICATES = st.builds(Predicate, st.sampled_from([Operator.EQ, Operator.NE]), st.sampled_from(STRINGS))
NUMBER_PREDICATES = st.builds(Predicate, st.sampled_from(Operator), st.sampled_from(CONSTANTS))
PREDICATES = st.lists(st.one_of(STRING_PREDICATES, NUMBER_PREDICATES), max_size=4)

# Every constant, other spellings of it, its neighbours and points in between, and things that are no number.
_NUMBERS = sorted(
    {n for c in CONSTANTS for n in (c, math.nextafter(c, -math.inf), math.nextafter(c, math.inf), c / 2, c + 1)}
    | {-math.inf, math.inf, 0.0, 1e300, -1e300, 39.0, 1e17}
)
_SPELLED = ["1e999" if n == math.inf else "-1e999" if n == -math.inf else repr(n) for n in _NUMBERS]
UNIVERSE = [
    *STRINGS,
    *_SPELLED,
    *(s.replace("-", "-00") if s.startswith("-") else f"00{s}" for s in _SPELLED),
    *VALUES,
    "zzz",
    "something else",
]


@settings(max_examples=300)
@given(st.one_of(STRING_PREDICATES, NUMBER_PREDICATES), st.sampled_from(UNIVERSE))
def test_a_predicate_holds_by_the_rules_of_the_language(predicate, value):
    assert predicate.holds(value) == compare(value, predicate.operator.value, predicate.constant)


def all_hold(predicates, value):
    return all(compare(value, p.operator.value, p.constant) for p in predicates)


@settings(max_examples=400)
@given(PREDICATES)
def test_predicates_are_satisfiable_when_some_value_satisfies_them(predicates):
    assert satisfiable(predicates) == any(all_hold(predicates, value) for value in UNIVERSE)


@pytest.mark.parametrize("big", [1.7e308, 1.7976931348623157e308, 9e307])
def test_a_point_is_found_between_constants_however_far_apart(big):
    between = [Predicate(Operator.GT, -big), Predicate(Operator.LT, big)]
    assert satisfiable(between)


@pytest.mark.parametrize("low", [1.0, 0.0, 5e-324, -5e-324, 1e308, -1.0, 1e15, 1e16])
def test_no_value_lies_between_neighbouring_doubles(low):
    high = math.nextafter(low, math.inf)
    assert not satisfiable([Predicate(Operator.GT, low), Predicate(Operator.LT, high)])
    assert satisfiable([Predicate(Operator.GE, low), Predicate(Operator.LT, high)])


@given(PREDICATES)
def test_representatives_include_a_string_that_is_no_number_and_no_constant(predicates):
    values = representatives(predicates)
    strings = {p.constant for p in predicates if isinstance(p.constant, str)}
    assert any(value not in strings and math.isnan(_number(value)) for value in values)


def _number(value):
    from tests.oracles.numbers import to_number

    return to_number(value)


@pytest.mark.parametrize(
    ("operator", "constant", "words"),
    [
        (Operator.LT, "a", "="),
        (Operator.GE, "5", "="),
        (Operator.EQ, "'\"", "quotes"),
        (Operator.EQ, math.nan, "finite"),
        (Operator.EQ, math.inf, "finite"),
    ],
)
def test_a_predicate_that_the_language_cannot_spell_is_refused(operator, constant, words):
    with pytest.raises(ValueError, match=words):
        Predicate(operator, constant)

"""One implication: against all values, against representative values, and transitive."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewriting.conditions import Conditions, implies
from tests.oracles.implication import implies_by_representatives
from tests.xmlmatch.test_predicates import PREDICATES, UNIVERSE, all_hold
from xmlmatch import Operator, Predicate


def implied(stronger, weaker):
    return implies(tuple(stronger), tuple(weaker))


@settings(max_examples=600)
@given(PREDICATES, PREDICATES)
def test_implication_is_that_over_all_values(stronger, weaker):
    expected = all(all_hold(weaker, value) for value in UNIVERSE if all_hold(stronger, value))
    assert implied(stronger, weaker) == expected


@settings(max_examples=600)
@given(PREDICATES, PREDICATES, PREDICATES)
def test_implication_is_transitive(first, second, third):
    if implied(first, second) and implied(second, third):
        assert implied(first, third)


@settings(max_examples=300)
@given(PREDICATES, PREDICATES, PREDICATES)
def test_a_chain_made_of_ever_fewer_predicates_is_implied_from_end_to_end(first, second, third):
    assert implied(first + second + third, first + second)
    assert implied(first + second, first)
    assert implied(first + second + third, first)


@given(PREDICATES)
def test_everything_implies_no_predicate_and_itself(predicates):
    assert implied(predicates, [])
    assert implied(predicates, predicates)


@pytest.mark.parametrize(
    ("stronger", "weaker", "holds"),
    [
        ("!=5", "!='5'", True),
        ("!='5'", "!=5", False),
        ("=40", "='40'", False),
        ("='40'", "=40", True),
        ("='5'", ">=5", True),
        ("='a'", "!=5", True),
        ("='a'", "<5", False),
        (">5", "!=5", True),
        (">5", "!='abc'", True),
        ("!=5", ">5", False),
        ("<5", "<=5", True),
        ("<=5", "<5", False),
    ],
)
def test_implication_in_named_cases(stronger, weaker, holds):
    assert implied([read(stronger)], [read(weaker)]) is holds


def read(text):
    operator = next(o for o in ("!=", "<=", ">=", "=", "<", ">") if text.startswith(o))
    constant = text[len(operator) :]
    return Predicate(Operator(operator), constant[1:-1] if constant[0] == "'" else float(constant))


@settings(max_examples=600)
@given(PREDICATES, PREDICATES)
def test_intervals_say_the_same_as_representative_values(stronger, weaker):
    assert implied(stronger, weaker) == implies_by_representatives(stronger, weaker)


_CLOSE = [0.0, 5e-324, -5e-324, 1.0, math.nextafter(1.0, 2), math.nextafter(1.0, 0), 2.0, 1e308]


@settings(max_examples=600)
@given(*[st.lists(st.builds(Predicate, st.sampled_from(Operator), st.sampled_from(_CLOSE)), max_size=5)] * 2)
def test_neighbouring_doubles_leave_nothing_between_them(stronger, weaker):
    assert implied(stronger, weaker) == implies_by_representatives(stronger, weaker)


def test_equal_sets_have_one_number_and_the_empty_set_is_zero():
    conditions = Conditions()
    first = conditions.add((Predicate(Operator.EQ, "a"),))
    assert conditions.add((Predicate(Operator.EQ, "a"),)) == first != conditions.add(()) == 0


def test_many_conditions_are_kept_apart():
    conditions = Conditions()
    below = [conditions.add((Predicate(Operator.LT, float(n)), Predicate(Operator.NE, -1.0))) for n in range(300)]
    assert len(conditions) == 301
    assert all(conditions.implied(below[i], below[i + 1]) for i in range(299))
    assert not any(conditions.implied(below[i + 1], below[i]) for i in range(299))

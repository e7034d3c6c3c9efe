"""Random subscriptions and events in which everything occurs that can, and much of it matches."""

from hypothesis import strategies as st

from rewriting.filters import Condition, Disjunction, Filter, OneOf, Operator, Predicate, Prefix

NAMES = ("a", "b", "c", "d")
NUMBERS = (0, 1, 2, 3, -1, 0.5, 2**53, 2**53 + 1, 2**64 + 1, -(2**70), 1e300)
TEXTS = ("", "x", "xy", "xyz", "y", "1", " 1 ", "01", "2", "NaN", "é", "9007199254740993")
VALUES = (*NUMBERS, *TEXTS, float("nan"), float("inf"), -float("inf"), -0.0, 10**400, "1e400", "3.0")

names = st.sampled_from(NAMES)
texts = st.sampled_from(TEXTS)
numbers = st.sampled_from(NUMBERS)
few_numbers = st.sampled_from(NUMBERS[:4])
constants = st.one_of(texts, few_numbers, numbers)
conditions = st.one_of(
    st.tuples(names, st.just("="), constants),
    st.tuples(names, st.just("="), few_numbers),
    st.tuples(names, st.just("!="), constants),
    st.tuples(names, st.sampled_from(("<", "<=", ">", ">=")), numbers),
    st.tuples(names, st.just("in"), st.lists(constants, min_size=1, max_size=3).map(tuple)),
    st.tuples(names, st.just("prefix"), texts),
)
conjunctions = st.lists(conditions, max_size=5).map(tuple)
subscriptions = st.lists(conjunctions, min_size=1, max_size=3)
events = st.dictionaries(names, st.one_of(st.sampled_from(VALUES), few_numbers), max_size=4)


def as_filter(conditions):
    """Make the filter that plain conditions describe."""
    made = []
    for name, operator, constant in conditions:
        if operator == "in":
            made.append(Condition(name, OneOf(constant)))
        elif operator == "prefix":
            made.append(Condition(name, Prefix(constant)))
        else:
            made.append(Condition(name, Predicate(Operator(operator), constant)))
    return Filter(tuple(made), whole=True)


def as_disjunction(rows):
    return Disjunction(tuple(map(as_filter, rows)))

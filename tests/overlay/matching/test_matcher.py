"""All algorithms against a plain loop, while subscriptions come and go; and what is refused."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overlay.matching import ALGORITHMS, Matcher, UnknownSubscription, ValueType, WrongType
from overlay.matching.dynamic import Dynamic, Thresholds
from rewriting.filters import Disjunction, Filter, MessageError
from tests.oracles.filters import matching
from tests.overlay.matching import workloads

ENGINES = ALGORITHMS | {"dynamic": partial(Dynamic, thresholds=Thresholds(margin=0.01, power=0.3, benefit=2))}
every_engine = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())

steps = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), workloads.subscriptions),
        st.tuples(st.just("insert"), workloads.subscriptions),
        st.tuples(st.just("delete"), st.integers(0, 30)),
        st.tuples(st.just("match"), workloads.events),
        st.tuples(st.just("match"), workloads.events),
    ),
    max_size=30,
)


@every_engine
@given(steps, st.lists(workloads.events, min_size=3, max_size=3))
def test_it_matches_what_a_plain_loop_matches(engine, steps, events):
    matcher, model = Matcher(engine), {}
    for step, what in [*steps, *(("match", event) for event in events)]:
        if step == "insert":
            number = matcher.insert(workloads.as_disjunction(what))
            assert number not in model
            model[number] = what
        elif step == "delete" and model:
            number = sorted(model)[what % len(model)]
            matcher.delete(number)
            del model[number]
        elif step == "match":
            found = matcher.match(what).tolist()
            assert found == matching(model, what)
            for number in model:
                assert matcher.explain(what, number).matches == (number in found)
    assert len(matcher) == len(model)


@every_engine
def test_a_missing_attribute_matches_nothing_and_an_empty_filter_everything(engine):
    matcher = Matcher(engine)
    unequal = matcher.insert(Filter.parse("a != 1"))
    everything = matcher.insert(Filter.parse("", whole=True))
    present = matcher.insert(Filter.parse("", select=["b"]))
    assert matcher.match({}).tolist() == [everything]
    assert matcher.match({"b": 2}).tolist() == [everything, present]
    assert matcher.match({"a": "none"}).tolist() == [unequal, everything]


@every_engine
def test_declared_types_are_checked_in_filters_and_in_messages(engine):
    matcher = Matcher(engine, types={"price": ValueType.NUMBER, "topic": ValueType.TEXT})
    wanted = matcher.insert(Filter.parse("price < 5 and topic = 'a'"))
    assert matcher.match({"price": "4.5", "topic": "a"}).tolist() == [wanted]
    for text in ("price = 'cheap'", "topic > 5", "price in (1, 'x')", "price prefix '1'", "topic in (1, 2)"):
        with pytest.raises(WrongType, match="declared"):
            matcher.insert(Filter.parse(text))
    for message in ({"price": "cheap"}, {"topic": 5}):
        with pytest.raises(WrongType, match="declared"):
            matcher.match(message)
    assert len(matcher) == 1


def test_what_is_no_value_is_refused():
    matcher = Matcher()
    matcher.insert(Filter.parse("a = 1"))
    for value in (None, True, [1], b"1"):
        for name in ("a", "unknown"):
            with pytest.raises(MessageError, match="no value"):
                matcher.match({name: value})


def test_a_deleted_subscription_is_unknown_and_its_number_is_given_out_again():
    matcher = Matcher()
    number = matcher.insert(Filter.parse("a = 1"))
    matcher.delete(number)
    for call in (matcher.delete, lambda n: matcher.explain({}, n)):
        with pytest.raises(UnknownSubscription):
            call(number)
    with pytest.raises(UnknownSubscription):
        matcher.delete(77)
    assert matcher.insert(Filter.parse("b = 1")) == number


def test_an_explanation_names_each_predicate_that_failed():
    matcher = Matcher()
    number = matcher.insert(Disjunction.parse("a = 1 and b in ('x', 2) or c prefix 'xy'"))
    found = matcher.explain({"a": 2, "b": "z"}, number)
    assert str(found) == "a = 1: is '2', b in ('x', 2): is 'z'; or c prefix 'xy': missing"
    assert not found.matches
    assert str(matcher.explain({"c": "xyz"}, number)) == "matches"

"""Changes made one by one wait until something depends on them, and nobody can tell."""

import random

import numpy as np
import pytest

from overlay.matching import Batch, Matcher, UnknownSubscription, ValueType, WrongType, codes
from overlay.matching.pending import MOST
from rewriting.filters import Disjunction, Filter, OneOf
from tests.oracles.filters import matching
from tests.overlay.matching.test_churn import as_batch, conjunctions, every_engine
from tests.overlay.matching.workloads import as_disjunction


@every_engine
def test_very_many_changes_between_two_events_mean_what_they_mean_one_by_one(engine):
    rng, matcher, model = random.Random(7), Matcher(engine), {}
    names = ["a", "b", "c"]
    for _ in range(4):
        for _ in range(5 * MOST):
            if rng.random() < 0.4 and model:
                number = rng.choice(sorted(model))
                matcher.delete(number)
                del model[number]
                assert number not in matcher
            else:
                rows = conjunctions(rng, rng.randint(1, 3), names)
                number = matcher.insert(as_disjunction(rows))
                assert number not in model
                assert number in matcher
                model[number] = rows
        assert len(matcher) == len(model)
        for _ in range(8):
            event = {name: rng.randint(1, 6) for name in names}
            assert matcher.match(event).tolist() == matching(model, event)


@every_engine
def test_a_text_keeps_its_meaning_while_its_last_mention_goes_and_a_new_one_comes(engine):
    matcher = Matcher(engine)
    for kind in ("= 'x'", "prefix 'x'", "in ('x', 'y')", "!= 'x'"):
        number = matcher.insert(Filter.parse(f"a {kind}"))
        matcher.match({})
        matcher.delete(number)
        again = matcher.insert(Filter.parse(f"a {kind}"))
        other = matcher.insert(Filter.parse("a = 'z'"))
        value = "w" if kind == "!= 'x'" else "x"
        assert matcher.match({"a": value}).tolist() == [again]
        assert matcher.match({"a": "z"}).tolist() == sorted({other} | ({again} if kind == "!= 'x'" else set()))
        matcher.delete(again)
        matcher.delete(other)


def test_a_batch_can_name_a_text_whose_last_mention_waits_to_go():
    matcher = Matcher()
    name = matcher.attribute("a")
    for number in (matcher.insert(Filter.parse("a = 'x'")), matcher.insert(Filter.parse("a in ('x', 5)"))):
        matcher.match({})
        matcher.delete(number)
    text, listed = matcher.text("x"), matcher.one_of(OneOf(("x", 5.0)))
    operators = np.array([codes.EQ_TEXT, codes.IN])
    batch = Batch(np.arange(3), np.full(2, name), operators, np.array([text, listed]))
    numbers = matcher.insert_many(batch).tolist()
    assert matcher.match({"a": "x"}).tolist() == sorted(numbers)
    assert matcher.match({"a": 5}).tolist() == numbers[1:]


def test_a_batch_and_what_waited_before_it_are_all_there():
    rng, matcher = random.Random(8), Matcher()
    rows = conjunctions(rng, 30, ["a", "b"])
    model = {matcher.insert(as_disjunction(rows[i : i + 3])): rows[i : i + 3] for i in range(0, 15, 3)}
    kept = matcher.insert(as_disjunction(rows[:1]))
    matcher.delete(kept)
    numbers = matcher.insert_many(as_batch(matcher, rows[15:])).tolist()
    model |= {number: [row] for number, row in zip(numbers, rows[15:], strict=True)}
    event = matcher.encode({"a": 3, "b": 2})
    assert matcher.match_event(event).tolist() == matching(model, {"a": 3, "b": 2})
    assert kept in numbers


def test_what_waits_is_explained_and_weighed_and_may_be_deleted():
    matcher = Matcher()
    number = matcher.insert(Disjunction.parse("a = 1 or b = 2"))
    assert str(matcher.explain({"a": 2}, number)) == "a = 1: is '2'; or b = 2: missing"
    size = matcher.size_bytes
    other = matcher.insert(Filter.parse("c = 'something long that takes memory'"))
    assert matcher.size_bytes > size
    for one in (number, other):
        matcher.delete(one)
        with pytest.raises(UnknownSubscription):
            matcher.delete(one)
    assert matcher.match({"a": 1, "b": 2}).tolist() == []


def test_a_subscription_of_which_one_filter_is_refused_is_refused_as_a_whole():
    matcher = Matcher(types={"price": ValueType.NUMBER})
    with pytest.raises(WrongType):
        matcher.insert(Disjunction.parse("topic = 'sport' or price = 'cheap'"))
    assert len(matcher) == 0
    assert matcher.match({"topic": "sport", "price": 1}).tolist() == []
    assert matcher.insert(Filter.parse("price < 5")) == 0
    assert matcher.match({"price": 1}).tolist() == [0]

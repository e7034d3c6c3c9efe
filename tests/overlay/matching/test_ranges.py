"""Conjunctions that ask for ranges alone, and inequalities with very many constants."""

import math
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from overlay.matching import Matcher, cell_kernels
from overlay.matching.predicate_fields import ASKED, CELLS
from overlay.matching.predicate_kernels import MANY
from rewriting.filters import Filter
from tests.oracles.filters import matching
from tests.overlay.matching.test_churn import every_engine, insert_all

EDGES = (0, -1, 17.5, 500.25, 999, 1e6, -0.0, "1e400", "-1e400", "x", float("nan"), float("inf"), 10**400, " 5e2 ")
TINY = 5e-324
bounds = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-1000, 1000),
    st.integers(-3, 3).map(float),
    st.sampled_from((0.0, -TINY, TINY, 2.0**39, 2.0**15, 2.0**39 - 1, -(2.0**63), 1.7e308, -1.7e308)),
)


def ranges(rng, count, names, values=1000):
    """Draw conjunctions of one or two ranges with constants of which hardly two are the same."""
    made = []
    for _ in range(count):
        row = []
        for name in rng.sample(names, min(len(names), rng.randint(1, 2))):
            low = rng.random() * values
            row.append((name, rng.choice((">", ">=")), low))
            row.append((name, rng.choice(("<", "<=")), low + rng.random() ** 3 * values / 3))
        made.append(tuple(row))
    return made


def check(matcher, model, rng, names, events=8):
    found = 0
    for _ in range(events):
        event = {name: rng.random() * 1000 for name in names}
        matched = matcher.match(event).tolist()
        assert matched == matching(model, event)
        found += len(matched)
    assert found > 0
    for value in EDGES:
        event = dict.fromkeys(names, value)
        assert matcher.match(event).tolist() == matching(model, event)
    for name in names:  # what other events had is forgotten
        assert matcher.match({name: 400}).tolist() == matching(model, {name: 400})
    assert matcher.match({}).tolist() == matching(model, {})


def asked(matcher):
    return int(matcher._index.arrays.lists[:, ASKED].sum())


@every_engine
def test_very_many_constants_are_compared_when_asked_and_marked_again_when_few_are_left(engine):
    rng, matcher, model = random.Random(9), Matcher(engine), {}
    insert_all(matcher, model, ranges(rng, 300, ["a"]))
    assert asked(matcher) == 0
    insert_all(matcher, model, ranges(rng, 2 * MANY + 900, ["a"]))
    assert asked(matcher) > 0
    check(matcher, model, rng, ["a", "b"])
    for number in rng.sample(sorted(model), len(model) - 400):
        matcher.delete(number)
        del model[number]
    insert_all(matcher, model, ranges(rng, 100, ["a", "b"]))
    assert asked(matcher) == 0
    check(matcher, model, rng, ["a", "b"])
    for number in list(model):
        matcher.delete(number)
    assert matcher.match({"a": 500}).tolist() == []
    assert matcher._index.arrays.counters[CELLS] == 0
    assert not matcher._index.arrays.kinds.any()


@every_engine
def test_ranges_beside_everything_else_are_found_while_they_come_and_go(engine):
    rng, matcher, model = random.Random(10), Matcher(engine), {}
    names = ["a", "b", "c"]
    for round_ in range(4):
        rows = ranges(rng, 150, names)
        rows += [(("a", ">", 3), ("a", "<=", 4 + round_), ("b", "!=", 4)), (("c", ">=", 9), ("c", "<", 2))]
        rows += [(("a", ">=", 5), ("b", "<=", 600)), (("b", ">=", 7), ("b", "<=", 7)), (("a", ">=", -1e300),)]
        rows += [((*row[0],), ("b", "=", 500)) for row in rows[:20]]
        insert_all(matcher, model, rows)
        for number in rng.sample(sorted(model), 60):
            matcher.delete(number)
            del model[number]
        check(matcher, model, rng, names)
        for value in (3, 3.5, 4, 5, 7):
            event = dict.fromkeys(names, value)
            assert matcher.match(event).tolist() == matching(model, event)


def test_only_what_nothing_else_leads_to_gets_a_cell():
    matcher = Matcher()
    for text in ("a > 0 and a < 1000", "a = 5 and b > 1 and b < 2", "b >= 1", "a != 3 and b < 4"):
        matcher.insert(Filter.parse(text))
    assert matcher.match({"b": 1.5}).tolist() == [2]
    assert matcher._index.arrays.counters[CELLS] == 0
    narrow = matcher.insert(Filter.parse("a > 10 and a < 20 and a != 15"))
    assert matcher.match({"a": 12}).tolist() == [0, narrow]
    assert matcher._index.arrays.counters[CELLS] == 1
    assert str(matcher.explain({"a": 15}, narrow)) == "a != 15: is '15'"


@given(st.tuples(bounds, bounds, bounds).map(sorted))
@example([-TINY, -0.0, 1.0])
@example([2.0**39 - 1, 2.0**39, 2.0**39 + 1])
@example([5.0, 5.0, 5.0])
def test_every_number_in_a_range_lies_in_one_of_its_two_cells(numbers):
    low, inside, high = numbers
    level = cell_kernels.level_for(low, high)
    for coarser in range(level if level >= 0 else cell_kernels.LEVELS, cell_kernels.LEVELS):
        first, here = cell_kernels.cell_index(low, coarser), cell_kernels.cell_index(inside, coarser)
        assert not math.isinf(here)
        assert first in (here, here - 1)
        value = cell_kernels.cell_value(first, coarser)
        assert cell_kernels.level_of(value) == coarser
        assert cell_kernels.cell_value(first + 1, coarser) != value


@pytest.mark.parametrize("number", [float("inf"), -float("inf"), 1e300])
def test_what_is_beyond_all_cells_lies_in_none(number):
    assert math.isinf(cell_kernels.cell_index(number, 0))


def test_an_attribute_that_only_has_a_name_can_be_in_an_event():
    matcher = Matcher()
    for i in range(200):
        matcher.attribute(f"a{i}")
    assert matcher.match({f"a{i}": i for i in range(200)}).tolist() == []

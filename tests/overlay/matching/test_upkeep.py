"""What the matcher keeps about its rows stays right, and tables follow without being told to."""

import random
from collections import Counter
from functools import partial

import numpy as np
import pytest

from overlay.matching import Matcher, clustering, codes, dynamic
from overlay.matching.cell_kernels import level_of
from overlay.matching.clustering import unpack
from overlay.matching.dynamic import Dynamic, Thresholds
from overlay.matching.predicate_fields import (
    ALL_CELLS,
    ATTRIBUTE,
    CELLS,
    COUNT,
    EVENTS,
    IDLE,
    LEVEL,
    LIVE,
    USED,
    USES,
)
from overlay.matching.static import Static
from rewriting.filters import Disjunction, Filter
from tests.oracles.filters import matching
from tests.overlay.matching.test_churn import conjunctions, every_engine, insert_all
from tests.overlay.matching.test_ranges import ranges

EAGER = partial(Dynamic, thresholds=Thresholds(margin=0.5, power=5, benefit=50))


def tables_of(matcher, names):
    """Say for each table whether its attributes are among some."""
    known = {matcher.attribute(name) for name in names}
    return [{slot // 2 for slot in unpack(schema)} <= known for schema in matcher.engine.clusters.schemas]


def check_counts(matcher, rows):
    """Compare every count with counting: of uses, kinds, cells and idle inequalities."""
    index, engine = matcher._index, matcher.engine
    p, used = index.arrays, Counter(int(at) for row in rows for at in engine.predicates(row))
    used.update(int(at) for members, _ in index._members.values() for at in members)
    live = [at for at in range(int(p.counters[USED])) if p.records[at, ATTRIBUTE] >= 0]
    assert int(p.counters[LIVE]) == len(live)
    assert {at: int(p.records[at, USES]) for at in live} == {at: used[at] for at in live}
    kinds, lists = np.zeros_like(p.kinds), np.zeros_like(p.lists[:, :2])
    for at in live:
        attribute, operator, value = index.of(at)
        if operator <= codes.EQ_TEXT:
            kinds[attribute, operator] += 1
        elif operator == codes.CELL:
            kinds[attribute, [ALL_CELLS, LEVEL + level_of(value)]] += 1
        elif operator >= codes.LT:
            lists[attribute * codes.LISTS + operator - codes.LT] += 1, used[at] == 0
    assert np.array_equal(kinds, p.kinds)
    assert kinds[:, ALL_CELLS].sum() == p.counters[CELLS]
    assert np.array_equal(lists, p.lists[:, [COUNT, IDLE]])
    assert not p.satisfied.any()


@every_engine
def test_counts_are_right_after_churn(engine):
    rng, matcher, model = random.Random(11), Matcher(engine), {}
    texts = [f"a in ({i}, 'x{i % 3}') and b != 'x' or c prefix 'x{i % 4}' and b < {i}" for i in range(9)]
    for _ in range(6):
        insert_all(matcher, model, conjunctions(rng, 40, ["a", "b"]) + ranges(rng, 40, ["a", "b"], values=9))
        for text in rng.sample(texts, 4):
            model[matcher.insert(Disjunction.parse(text))] = None
        doubled = Filter.parse("b > 1 and a >= 1 and a >= 2 and a <= 3 and a <= 4", select=["b"])
        model[matcher.insert(doubled)] = None
        for number in rng.sample(sorted(model), len(model) // 2):
            matcher.delete(number)
            del model[number]
        matcher.match({"a": 2, "b": "x", "c": "x1y"})
        check_counts(matcher, [row for number in model for row in matcher._owned.rows(number)])


@every_engine
def test_of_several_lists_with_a_common_constant_each_is_found_once_and_alone(engine):
    matcher = Matcher(engine)
    numbers = [matcher.insert(Filter.parse(f"a in (1, '1', {i}, {i + 1})")) for i in range(5, 9)]
    assert matcher.match({"a": 1}).tolist() == numbers
    for place in (2, 1):
        matcher.delete(numbers.pop(place))
        assert matcher.match({"a": "1"}).tolist() == numbers
    assert matcher.match({"a": 7}).tolist() == []


def test_static_drops_the_tables_of_what_is_gone():
    rng, matcher, model = random.Random(12), Matcher(Static), {}
    insert_all(matcher, model, conjunctions(rng, 9000, ["a", "b", "c"]))
    matcher.engine.arrange()
    assert tables_of(matcher, ["a", "b", "c"])
    for number in list(model):
        matcher.delete(number)
    model.clear()
    insert_all(matcher, model, conjunctions(rng, 9000, ["x", "y", "z"]))
    matcher.engine.arrange()
    assert tables_of(matcher, ["x", "y", "z"])
    assert all(tables_of(matcher, ["x", "y", "z"]))
    event = dict.fromkeys("abcxyz", 3)
    assert matcher.match(event).tolist() == matching(model, event)


def test_dynamic_makes_and_drops_tables_while_subscriptions_change():
    rng, matcher, model = random.Random(13), Matcher(EAGER), {}
    for _ in range(4):
        insert_all(matcher, model, conjunctions(rng, 700, ["a", "b", "c"]))
    assert tables_of(matcher, ["a", "b", "c"])
    old = list(model)
    for _ in range(4):
        insert_all(matcher, model, conjunctions(rng, 700, ["x", "y", "z"]))
    for number in old:
        matcher.delete(number)
        del model[number]
    insert_all(matcher, model, conjunctions(rng, 700, ["x", "y", "z"]))
    assert tables_of(matcher, ["x", "y", "z"])
    assert all(tables_of(matcher, ["x", "y", "z"]))
    event = dict.fromkeys("abcxyz", 2)
    assert matcher.match(event).tolist() == matching(model, event)


def test_two_equalities_on_one_attribute_make_no_table():
    rng, matcher, model = random.Random(15), Matcher(EAGER), {}
    insert_all(matcher, model, [tuple(("a", "=", v) for v in rng.sample(range(1, 7), 2)) for _ in range(3000)])
    matcher.engine.settle()
    assert matcher.engine.clusters.schemas == {}
    assert matcher.match({"a": 3}).tolist() == []


def test_dynamic_looks_again_when_many_events_have_come(monkeypatch):
    monkeypatch.setattr(dynamic, "WINDOW", 400)
    rng, matcher, model = random.Random(14), Matcher(partial(Dynamic, thresholds=Thresholds(power=64))), {}
    insert_all(matcher, model, conjunctions(rng, 1500, ["a", "b", "c"], values=40))
    insert_all(matcher, model, [(("a", "=", 1 + i % 2), ("b", "=", 1 + i // 2 % 2)) for i in range(800)])
    matcher.engine.settle()
    assert matcher.engine.clusters.schemas == {}
    for _ in range(450):
        matcher.match({"a": rng.randint(1, 2), "b": rng.randint(1, 2), "c": 5})
    assert tables_of(matcher, ["a", "b"]) == [True]


@every_engine
def test_what_was_seen_long_ago_counts_less(engine, monkeypatch):
    monkeypatch.setattr(clustering, "WINDOW", 20)
    matcher = Matcher(engine)
    number = matcher.insert(Filter.parse("a = 1"))
    for _ in range(60):
        assert matcher.match({"a": 1}).tolist() == [number]
    counted = matcher._index.arrays.counters[EVENTS]
    assert counted <= (60 if type(matcher.engine).__name__ == "Counting" else 20)


@pytest.mark.parametrize("size", [1, 3, 1023, 1024, 1025, 2500])
def test_a_cluster_of_any_size_is_checked_to_its_last_row(size):
    matcher = Matcher()
    rows = [(("a", "=", 1), ("b", "!=", 7), ("c", "<", i % 5)) for i in range(size)]
    model = {}
    insert_all(matcher, model, rows)
    for event in ({"a": 1, "b": 6, "c": 2}, {"a": 1, "b": 7, "c": 0}, {"a": 1, "b": 6, "c": 3}):
        assert matcher.match(event).tolist() == matching(model, event)

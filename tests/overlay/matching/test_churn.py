"""Thousands of subscriptions come and go: tables are made and dropped, rows move, nothing is lost or kept."""

import random
from functools import partial

import numpy as np
import pytest

from overlay.matching import ALGORITHMS, BadBatch, Batch, Matcher, ValueType, WrongType, codes
from overlay.matching.clustering import unpack
from overlay.matching.dynamic import Dynamic, Thresholds
from overlay.matching.static import Static
from rewriting.filters import Filter, OneOf
from tests.oracles.filters import matching
from tests.overlay.matching.workloads import as_disjunction

ENGINES = ALGORITHMS | {"dynamic": partial(Dynamic, thresholds=Thresholds(margin=0.5, power=5, benefit=50))}
every_engine = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES.keys())
SIGNS = {"=": codes.EQ, "!=": codes.NE, "<": codes.LT, "<=": codes.LE, ">": codes.GT, ">=": codes.GE}


def conjunctions(rng, count, names, values=6):
    """Draw conjunctions: mostly equalities, and some of everything that compares numbers."""
    made = []
    for _ in range(count):
        chosen = rng.sample(names, min(len(names), rng.randint(2, 5)))
        signs = [rng.choice(("=", "=", "=", "=", *SIGNS)) for _ in chosen]
        made.append(tuple((n, s, rng.randint(1, values)) for n, s in zip(chosen, signs, strict=True)))
    return made


def as_batch(matcher, rows):
    return Batch(
        np.cumsum([0, *map(len, rows)]),
        np.array([matcher.attribute(name) for row in rows for name, _, _ in row]),
        np.array([SIGNS[sign] for row in rows for _, sign, _ in row]),
        np.array([value for row in rows for _, _, value in row], float),
    )


def insert_all(matcher, model, rows):
    numbers = matcher.insert_many(as_batch(matcher, rows)).tolist()
    model |= {number: [row] for number, row in zip(numbers, rows, strict=True)}
    return numbers


def check(matcher, model, rng, names, values=6, events=12):
    found = 0
    for _ in range(events):
        event = {name: rng.randint(1, values) for name in names if rng.random() < 0.9}
        matched = matcher.match(event).tolist()
        assert matched == matching(model, event)
        found += len(matched)
    assert found > 0
    assert len(matcher) == len(model)


@every_engine
def test_what_matches_is_right_while_subscriptions_and_their_attributes_change(engine):
    rng, matcher, model = random.Random(1), Matcher(engine), {}
    early, late = [f"a{i}" for i in range(8)], [f"b{i}" for i in range(8)]
    for round_, names in enumerate([early] * 3 + [late] * 3):
        insert_all(matcher, model, conjunctions(rng, 700, names))
        for number in rng.sample(sorted(model), len(model) // 2 if round_ > 1 else 50):
            matcher.delete(number)
            del model[number]
        for rows in (conjunctions(rng, 2, names) for _ in range(20)):
            model[matcher.insert(as_disjunction(rows))] = rows
        check(matcher, model, rng, early + late)
    for number in list(model):
        matcher.delete(number)
    assert matcher.match(dict.fromkeys(early + late, 1)).tolist() == []


def test_static_makes_tables_where_they_save_checks_and_within_its_bound():
    rng = random.Random(2)
    rows = conjunctions(rng, 9000, ["a", "b", "c", "d"])
    trace = {}
    for space in (10**6, 0):
        matcher, model = Matcher(partial(Static, space_bytes=space)), {}
        insert_all(matcher, model, rows)
        check(matcher, model, rng, ["a", "b", "c", "d"])
        trace[space] = matcher.engine.trace
        assert set(matcher.engine.clusters.schemas) == {choice.schema for choice in trace[space]}
    assert trace[0] == []
    assert all(choice.power > 200 for choice in trace[10**6])
    assert {len(unpack(choice.schema)) for choice in trace[10**6]} >= {2}


def test_dynamic_makes_tables_for_what_comes_and_drops_those_of_what_is_gone():
    rng, matcher, model = random.Random(3), Matcher(ENGINES["dynamic"]), {}
    early, late = ["a", "b", "c"], ["x", "y", "z"]
    insert_all(matcher, model, conjunctions(rng, 3000, early))
    matcher.engine.settle()
    attributes = {matcher.attribute(name) for name in early}
    schemas = matcher.engine.clusters.schemas
    assert schemas
    assert all({slot // 2 for slot in unpack(schema)} <= attributes for schema in schemas)
    old = list(model)
    insert_all(matcher, model, conjunctions(rng, 3000, late))
    for number in old:
        matcher.delete(number)
        del model[number]
    matcher.engine.settle()
    used = {slot // 2 for schema in schemas for slot in unpack(schema)}
    assert used
    assert used.isdisjoint(attributes)
    check(matcher, model, rng, early + late)


def test_dynamic_follows_events_that_favour_some_values():
    rng, matcher, model = random.Random(4), Matcher(partial(Dynamic, thresholds=Thresholds(power=64))), {}
    insert_all(matcher, model, conjunctions(rng, 3000, ["a", "b", "c"], values=40))
    insert_all(matcher, model, [(("a", "=", 1 + i % 2), ("b", "=", 1 + i // 2 % 2)) for i in range(800)])
    matcher.engine.settle()
    assert matcher.engine.clusters.schemas == {}
    for _ in range(300):
        matcher.match({"a": rng.randint(1, 2), "b": rng.randint(1, 2), "c": 5})
    matcher.engine.settle()
    schemas = matcher.engine.clusters.schemas
    assert [[slot // 2 for slot in unpack(schema)] for schema in schemas] == [
        sorted((matcher.attribute("a"), matcher.attribute("b")))
    ]
    check(matcher, model, rng, ["a", "b", "c"], values=40)


@every_engine
def test_churn_keeps_neither_predicates_nor_texts_nor_memory(engine):
    rng, matcher = random.Random(5), Matcher(engine)
    wanted = [
        Filter.parse(f"a = 't{i}' and b < {i}.5 and c in ({i}, 'u{i}') and d prefix 'p{i}'") for i in range(60)
    ]
    sizes = []
    for _ in range(16):
        numbers = [matcher.insert(rng.choice(wanted)) for _ in range(60)]
        for number in numbers:
            matcher.delete(number)
        for number in matcher.insert_many(as_batch(matcher, conjunctions(rng, 500, ["e", "f", "g"]))):
            matcher.delete(int(number))
        sizes.append(matcher.size_bytes)
    assert len(matcher) == 0
    assert max(sizes[8:]) <= 1.3 * max(sizes[:8])
    assert matcher._index.lists == 0
    assert matcher._vocabulary._texts._numbers == {}
    assert len(matcher._index) < 1000  # inequalities stay until their list is sorted anew


@every_engine
def test_very_many_inequalities_are_found_through_their_sorted_lists(engine):
    rng, matcher, model = random.Random(6), Matcher(engine), {}
    for _ in range(4):
        rows = [
            tuple(("a", rng.choice(("<", "<=", ">", ">=")), rng.randint(0, 400) / 2) for _ in range(2))
            for _ in range(300)
        ]
        insert_all(matcher, model, rows)
        for number in rng.sample(sorted(model), 200):
            matcher.delete(number)
            del model[number]
        for value in (0, 17.5, 100, 100.25, 200, -1, "1e400", "x"):
            assert matcher.match({"a": value}).tolist() == matching(model, {"a": value})


def test_a_batch_means_what_its_filters_mean():
    matcher, model = Matcher(), {}
    name, text, listed = matcher.attribute("a"), matcher.text("x"), matcher.one_of(OneOf(("x", 2.0)))
    operators = [codes.EQ_TEXT, codes.NE_TEXT, codes.PREFIX, codes.IN, codes.PRESENT, codes.EQ]
    values = [text, text, text, listed, 0, -0.0]
    matcher.insert_many(Batch(np.arange(7), np.full(6, name), np.array(operators), np.array(values)))
    asked = [("=", "x"), ("!=", "x"), ("prefix", "x"), ("in", ("x", 2)), ("!=", "never"), ("=", 0)]
    model = {i: [(("a", *condition),)] for i, condition in enumerate(asked)}
    for value in ("x", "xy", 2, "2.0", 0, "-0"):
        assert matcher.match({"a": value}).tolist() == matching(model, {"a": value})
    double = Batch(np.array([0, 2]), np.full(2, name), np.full(2, codes.EQ), np.full(2, 5.0))
    again = int(matcher.insert_many(double)[0])
    assert again in matcher.match({"a": 5})


@pytest.mark.parametrize(
    ("offsets", "attribute", "operator", "value", "reason"),
    [
        ([0, 2], 0, codes.EQ, 1, "offsets"),
        ([1, 1], 0, codes.EQ, 1, "offsets"),
        ([0, 2, 1], 0, codes.EQ, 1, "fall"),
        ([0, 1], 9, codes.EQ, 1, "attribute"),
        ([0, 1], -1, codes.EQ, 1, "attribute"),
        ([0, 1], 0, codes.CODES, 1, "operators"),
        ([0, 1], 0, codes.CELL, 1, "operators"),
        ([0, 1], 0, codes.EQ, float("nan"), "finite"),
        ([0, 1], 0, codes.EQ_TEXT, 5, "no number of a text"),
        ([0, 1], 0, codes.IN, 0.5, "no number of a text"),
    ],
)
def test_arrays_that_describe_nothing_are_refused(offsets, attribute, operator, value, reason):
    matcher = Matcher()
    matcher.attribute("a")
    with pytest.raises(BadBatch, match=reason):
        matcher.insert_many(
            Batch(np.array(offsets), np.array([attribute]), np.array([operator]), np.array([value]))
        )
    assert len(matcher) == 0


def test_batches_are_checked_against_declared_types():
    matcher = Matcher(types={"a": ValueType.TEXT})
    name = matcher.attribute("a")
    with pytest.raises(WrongType):
        matcher.insert_many(Batch(np.array([0, 1]), np.array([name]), np.array([codes.LT]), np.array([1.0])))
    assert len(matcher) == 0

"""The workloads of the papers: what each preset promises."""

import random
from collections import Counter

import pytest

from rewriting import unrewritable
from scenarios.auction_documents import auction_documents
from scenarios.presets import TABLE2, matching_share, table2, wan
from scenarios.subscriptions import Shape, random_pattern, unique_patterns
from xmlmatch import Axis, Document, Matcher, Pattern


@pytest.fixture(scope="module")
def wan_workload():
    return wan(1, 10_000)


def test_table2_views_are_unique_and_near_the_papers_averages():
    workload = table2(1, 4_000)
    assert len({str(pattern) for pattern in workload.distinct}) == 4_000
    assert workload.nodes == pytest.approx(6.13, abs=0.35)  # 100,000 views come within 0.05
    assert workload.predicates == pytest.approx(0.72, abs=0.1)
    assert workload.returns == pytest.approx(2.52, abs=0.12)


def test_three_tenths_of_the_wan_subscriptions_are_distinct(wan_workload):
    counts = Counter(map(str, wan_workload.subscriptions))
    assert (len(wan_workload.subscriptions), len(counts)) == (10_000, 3_000)
    assert counts.most_common(1)[0][1] > 20


def test_each_document_matches_nine_tenths_of_the_wan_subscriptions(wan_workload):
    documents = [Document.parse(data) for data in auction_documents(77, 20)]
    assert min(matching_share(Matcher(wan_workload.subscriptions), documents)) >= 0.9


def test_of_3000_distinct_wan_subscriptions_at_most_72_cannot_be_rewritten(wan_workload):
    assert 0 < len(unrewritable(wan_workload.distinct)) <= 72


def test_a_seed_gives_the_same_patterns_and_another_seed_others():
    assert table2(5, 50) == table2(5, 50)
    assert table2(5, 50) != table2(6, 50)
    assert wan(5, 50) == wan(5, 50)


def share(patterns, holds):
    return sum(map(holds, patterns)) / len(patterns)


@pytest.mark.parametrize(
    ("knob", "holds"),
    [
        ({"descendant": 0.9}, lambda p: any(n.axis is Axis.DESCENDANT for n in p.nodes[1:])),
        ({"any_label": 0.9}, lambda p: any(n.label == "*" for n in p.nodes)),
        ({"attribute": 1.0}, lambda p: any(n.is_attribute for n in p.nodes)),
        ({"rooted": 1.0}, lambda p: p.nodes[0].axis is Axis.CHILD),
        ({"predicates": (0, 0, 1)}, lambda p: sum(len(n.predicates) for n in p.nodes) > 1),
        ({"extra_return": 0.95}, lambda p: len(p.returning) > 2),
        ({"branch": 1.0}, lambda p: len({n.parent for n in p.nodes}) < len(p.nodes) - 1),
    ],
)
def test_each_knob_turns_what_it_names(knob, holds):
    few = {"sizes": (0, 0, 0, 0, 1), "descendant": 0, "attribute": 0, "rooted": 0, "extra_return": 0, "branch": 0}
    rng = random.Random(1)
    without = [random_pattern(rng, Shape(**few)) for _ in range(200)]
    with_it = [random_pattern(rng, Shape(**{**few, **knob})) for _ in range(200)]
    assert share(with_it, holds) > share(without, holds) + 0.2


def test_a_shape_that_allows_too_few_patterns_says_so():
    with pytest.raises(ValueError, match=r"only .* different patterns"):
        list(unique_patterns(random.Random(1), Shape(sizes=(1,), labels=frozenset(["site"])), 100))


def test_every_pattern_survives_its_own_text():
    rng = random.Random(2)
    for _ in range(300):
        pattern = random_pattern(rng, TABLE2)
        assert Pattern.parse(str(pattern)) == pattern

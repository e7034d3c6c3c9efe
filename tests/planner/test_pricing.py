"""Prices: the compiled ones are those of trying every physical plan."""

import random
from itertools import chain

import numpy as np
import pytest

from rewriting import EmbeddingGraph, Rewriting, Statistics, find_candidates
from rewriting.candidate_table import CandidateTable
from rewriting.pricing import JOIN, Weights, per_document, price, slow_price
from tests.oracles.plan_prices import candidate_price, links_of, result_price
from tests.rewriting.cases import random_document, random_pattern, view_of
from xmlmatch import Document, Pattern

WEIGHTS = (
    Weights(),
    Weights(joins=False),
    Weights(link=0, source=1),
    Weights(1, 0, 0, 5, link=16),
    Weights(0, 3, 7, 0, link=2000, source=100),
    Weights(20, 20, 0, 0, link=3),
    Weights(20, 20, 0, 0, link=3, joins=False),
)


def random_patterns(rng, count=9):
    """Draw patterns of which many can be computed from others."""
    query = random_pattern(rng)
    drawn = [query, *(view_of(rng, query) for _ in range(count - 3)), random_pattern(rng), random_pattern(rng, 2)]
    rng.shuffle(drawn)
    return drawn


def random_statistics(rng, patterns):
    """Measure the patterns on a few documents, or a part of them, or none; or make figures up."""
    if rng.random() < 0.4:
        most = [10 ** max(1, 6 - len(pattern.nodes)) for pattern in patterns for _ in pattern.nodes]
        figures = [[rng.randrange(m) for m in most] for _ in range(3)]
        return Statistics.known(patterns, np.array(figures, np.int64))
    measured = rng.sample(patterns, rng.choice((0, len(patterns) // 2, len(patterns))))
    if not measured:
        return Statistics()
    return Statistics.measure(measured, [Document.parse(random_document(rng)) for _ in range(rng.randint(1, 7))])


def table_of(sets_by_query):
    """Make a candidate table of given sets of views, by query."""
    sets = list(chain.from_iterable(sets_by_query))
    return CandidateTable(
        np.cumsum([0, *map(len, sets_by_query)]),
        np.zeros(len(sets), np.int64),
        np.cumsum([0, *map(len, sets)]),
        np.array(list(chain.from_iterable(sets)), np.int32),
        0,
        0,
    )


def found(prices, table, c):
    """Return what was computed for a candidate in the form of the oracle."""
    links = prices.link_bytes[table.member_first[c] : table.member_first[c + 1]]
    return int(prices.utilization[c]), int(prices.plans[c]), int(prices.nodes[c]), tuple(links.tolist())


def compare(graph, table, statistics, weights):
    """Compare every price of a table with the oracle's; return the plans that were chosen."""
    prices = price(graph, table, statistics, weights, threads=1)
    plans = []
    for q in graph.numbers.tolist():
        wanted = result_price(graph.pattern(q), statistics, weights)
        assert (prices.result_bytes[q], prices.result_nodes[q], prices.sources[q], prices.copies[q]) == wanted
        for c, (_, views) in enumerate(table.of(q), int(table.first[q])):
            wanted = candidate_price(graph.pattern(q), [graph.pattern(u) for u in views], statistics, weights)
            assert found(prices, table, c) == (wanted or (0, 0, 0, (0,) * len(views)))
            plans.append(None if wanted is None else wanted.plan)
    return plans


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
def test_every_candidate_has_the_price_of_its_cheapest_plan(weights):
    plans = []
    for seed in range(60):
        rng = random.Random(seed)
        patterns = random_patterns(rng)
        statistics = random_statistics(rng, patterns)
        graph = EmbeddingGraph.build(patterns)
        table = find_candidates(graph, 6, statistics=statistics, link_bytes=weights.link_bytes, threads=1)
        plans += compare(graph, table, statistics, weights)
    assert None not in plans
    assert len(plans) > 300


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
def test_any_set_of_views_is_priced_and_one_that_is_no_cover_stays_at_nothing(weights):
    plans = []
    for seed in range(50):
        rng = random.Random(1_000 + seed)
        patterns = random_patterns(rng)
        statistics = random_statistics(rng, patterns)
        graph = EmbeddingGraph.build(patterns)
        numbers = graph.numbers.tolist()
        sets = [
            [
                rng.sample([u for u in numbers if u != q], rng.randint(1, min(5, len(numbers) - 1)))
                for _ in range(6)
            ]
            for q in numbers
        ]
        plans += compare(graph, table_of(sets), statistics, weights)
    covers = [plan for plan in plans if plan is not None]
    assert len(covers) > 200
    assert len(covers) < len(plans)
    if weights.sender_node < weights.sent + weights.received:
        assert sum(0 < plan < JOIN for plan in covers) > 10
    if weights.joins:
        assert sum(plan >= JOIN for plan in covers) > 5
    else:
        assert max(covers) < JOIN


def test_prices_are_right_after_patterns_have_left():
    compared = 0
    for seed in range(30):
        rng = random.Random(2_000 + seed)
        patterns = list({pattern.text: pattern for pattern in random_patterns(rng)}.values())
        graph = EmbeddingGraph.build(patterns)
        for pattern in rng.sample(patterns[:-1], len(patterns) // 3):
            graph.remove(pattern)
        statistics = random_statistics(rng, patterns)
        table = find_candidates(graph, 6, statistics=statistics, threads=1)
        compared += len(compare(graph, table, statistics, Weights()))
    assert compared > 50


def test_one_link_costs_what_its_rewriting_is_estimated_to_cost():
    compared = 0
    for seed in range(100):
        rng = random.Random(3_000 + seed)
        patterns = random_patterns(rng)
        statistics = random_statistics(rng, patterns)
        graph = EmbeddingGraph.build(patterns)
        table = find_candidates(graph, 6, statistics=statistics, threads=1)
        prices = price(graph, table, statistics, Weights(2, 3, 5, 7, link=11), threads=1)
        for q in graph.numbers.tolist():
            for c, (_, views) in enumerate(table.of(q), int(table.first[q])):
                if len(views) == 1:
                    query = graph.pattern(q)
                    (link,) = links_of(query, [graph.pattern(views[0])], statistics)
                    rewriting = Rewriting(query, (link,), link.cost)
                    costs = [rewriting.plan_cost(reduced=reduced) for reduced in (False, True)]
                    least = min(5 * c.bytes_sent + 5 * c.sender_nodes + 7 * c.receiver_nodes + 11 for c in costs)
                    assert prices.utilization[c] == round(least * 1000)
                    compared += 1
    assert compared > 50


def test_a_hand_computed_price():
    # Both patterns are assumed to have 6,400 matches per thousand documents, and values of 12 bytes.
    view, query = Pattern.parse("//a[b]{val}"), Pattern.parse("//a/b{val}")
    statistics = Statistics()
    assert statistics.of(view)[:, 0].tolist() == [6_400, 76_800, 1_536_000]
    graph = EmbeddingGraph.build([Pattern.parse("//a//b{val}"), view, query])
    prices = price(graph, table_of([[], [], [[0]]]), statistics, Weights(1, 2, 3, 5, link=7, source=11))
    sent = 2 * 6_400 * 4 + 76_800
    handled = 2 * 6_400
    assert prices.link_bytes.tolist() == [sent]
    assert prices.utilization.tolist() == [3 * sent + 3 * handled + 5 * 2 * 2 * 6_400 + 7_000]
    assert prices.plans.tolist() == [0]
    assert prices.result_bytes[2] == sent
    assert prices.copies[2] == prices.utilization[0]
    assert prices.sources[2] == 11 * (sent + 3 * handled + 7_000) + 2 * sent + 5 * 2 * 2 * 6_400


def test_utilization_is_rounded_up_to_whole_documents():
    assert per_document(np.array([0, 1, 999, 1_000, 1_001])).tolist() == [0, 1, 1, 1, 2]


def test_threads_do_not_change_prices():
    rng = random.Random(5)
    patterns = list(chain.from_iterable(random_patterns(rng) for _ in range(40)))
    graph = EmbeddingGraph.build(patterns)
    table = find_candidates(graph, 6, threads=1)
    one, three = (price(graph, table, threads=threads) for threads in (1, 3))
    for field in ("utilization", "plans", "nodes", "link_bytes", "result_bytes", "sources", "copies"):
        assert getattr(one, field).tolist() == getattr(three, field).tolist()


def test_candidates_of_patterns_over_64_nodes_are_priced_too():
    branches = "".join(f"[b{i}]" for i in range(70))
    texts = [f"//a{{val,cont}}{branches}", f"//a{{val}}{branches}[c]", "//c{val}", "//a{cont}[c]"]
    graph = EmbeddingGraph.build(Pattern.parse(text) for text in texts)
    table = find_candidates(graph)
    prices = price(graph, table)
    assert len(table) > 0
    assert (prices.utilization > 0).all()


def test_the_slow_way_of_pricing_gives_what_the_compiled_one_gives():
    for seed in range(30):
        patterns = random_patterns(random.Random(seed))
        graph = EmbeddingGraph.build(patterns)
        table = find_candidates(graph)
        prices = price(graph, table)
        for q in graph.numbers.tolist():
            for c in range(table.first[q], table.first[q + 1]):
                total, plan, bits, nodes, sent = slow_price(graph, table, Statistics(), Weights(), q, c)
                assert total == prices.utilization[c]
                assert (plan, bits, nodes) == (prices.plans[c], prices.reducing[c], prices.nodes[c])
                assert sent == prices.link_bytes[table.member_first[c] : table.member_first[c + 1]].tolist()

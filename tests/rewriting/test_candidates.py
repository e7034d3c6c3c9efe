"""Candidates: complete, cheapest first, varied; and the compiled search finds the same."""

import random
from collections import Counter
from itertools import islice

import numpy as np
import pytest

from rewriting import EmbeddingGraph, find_candidates, rewritings
from rewriting.baselines.greedy_covers import greedy_covers
from rewriting.candidates import BATCH, THOROUGH, Effort, Search, candidates
from rewriting.feeding_order import text_hash
from rewriting.providers import feeder, feeders
from rewriting.statistics import DOCUMENTS, LINK_BYTES, Statistics
from tests.oracles.covers import covers, least_cost, provided
from tests.rewriting.cases import random_document, random_pattern, random_problem, view_of
from tests.rewriting.test_graph import distinct, related_patterns, wide_pattern
from xmlmatch import Document, Pattern

LINK = LINK_BYTES * DOCUMENTS


def small_problem(rng):
    query = random_pattern(rng, 4)
    return query, distinct(view_of(rng, query, 3) for _ in range(rng.randint(1, 6)))


def measured(rng, patterns):
    """Take statistics from a few random documents."""
    return Statistics.measure(patterns, [Document.parse(random_document(rng)) for _ in range(3)])


def test_what_views_provide_is_what_brute_force_says():
    rng = random.Random(1)
    found = 0
    for _ in range(500):
        query, views = small_problem(rng)
        for view in views:
            ours = feeder(view, query, Statistics())
            wanted = provided(view, query)
            assert set(ours.provisions if ours else {}) == {n for _, n in wanted}
            for p in ours.provisions.values() if ours else ():
                assert (p.view_node, p.query_node) in wanted
                found += 1
    assert found > 1000


def test_where_there_is_a_cover_one_is_found_and_only_there():
    rng = random.Random(2)
    rewritable = 0
    for _ in range(400):
        query, views = small_problem(rng)
        wanted = set(covers(query, views))
        found = list(rewritings(query, views, 1000))
        assert bool(found) == bool(wanted)
        for rewriting in found:
            assert tuple(sorted(views.index(view) for view in rewriting.views)) in wanted
            assert sorted(p.query_node for link in rewriting.links for p in link.provisions) == list(
                range(len(query.nodes))
            )
        rewritable += bool(found)
    assert 100 < rewritable < 380


@pytest.mark.parametrize("link_bytes", [0, 3, 40, LINK_BYTES])
def test_the_first_candidate_is_the_cheapest_of_all_sets(link_bytes):
    rng = random.Random(link_bytes)
    several = 0
    for _ in range(150):
        query, views = small_problem(rng)
        known = measured(rng, [query, *views]) if rng.random() < 0.5 else Statistics()
        able = feeders(query, views, known)
        costs = [
            [f.provisions[n].cost if n in f.provisions else None for n in range(len(query.nodes))] for f in able
        ]
        first = next(iter(candidates(query, able, link_bytes=link_bytes)), None)
        wanted = least_cost(costs, link_bytes * DOCUMENTS) if able else None
        assert (first.cost if first else None) == wanted
        several += bool(first) and len(first.members) > 1
    assert several > 10


def test_candidates_come_by_cost_and_none_holds_an_idle_view():
    rng = random.Random(5)
    compared = 0
    for _ in range(300):
        query, views = small_problem(rng)
        able = feeders(query, views, measured(rng, [query, *views]))
        found = list(candidates(query, able, 1000, link_bytes=4))
        assert [c.cost for c in found] == sorted(c.cost for c in found)
        assert len({c.members for c in found}) == len(found)
        for candidate in found:
            assert candidate.cost == set_cost(able, candidate.members, len(query.nodes), 4)
            for v in candidate.members:
                rest = set_cost(able, [w for w in candidate.members if w != v], len(query.nodes), 4)
                assert rest is None or rest > candidate.cost
                compared += rest is not None
    assert compared > 20


def set_cost(able, members, size, link_bytes):
    """Return what a set costs, None if it does not cover."""
    costs = [[able[v].provisions[n].cost for v in members if n in able[v].provisions] for n in range(size)]
    return sum(map(min, costs)) + link_bytes * DOCUMENTS * len(members) if all(costs) else None


def test_an_extra_selective_view_is_taken_where_it_saves_a_bulky_column():
    views = [Pattern.parse("//a{cont}/b"), Pattern.parse("//a{cont}[c][.='1']")]
    query = Pattern.parse("//a{cont}[c][.='1']/b")
    sizes = {views[0]: [[9000, 9000], [0, 0], [900_000, 0]], views[1]: [[10, 10], [0, 0], [1000, 0]]}
    sizes[query] = [[10, 10, 10], [0] * 3, [1000, 0, 0]]
    known = Statistics.known(list(sizes), np.concatenate([np.array(s, np.int64) for s in sizes.values()], axis=1))
    assert len(next(rewritings(query, views, statistics=known, link_bytes=0)).views) == 2


def test_at_most_a_third_share_their_first_input():
    views = [Pattern.parse("//a{val}")] + [Pattern.parse(f"//a[.//b{{val}}[.>={n}]]") for n in range(40)]
    query = Pattern.parse("//a{val}//b{val}[.>=100]")
    able = feeders(query, views)
    found = list(candidates(query, able, 9))
    assert len(found) == 9
    assert max(_first_inputs(query, able, found).values()) <= 3


def _first_inputs(query, able, found):
    search = Search(query, able, THOROUGH, LINK_BYTES)
    return Counter(search.first_input(c.members) for c in found)


def test_the_generator_can_be_stopped_and_goes_on():
    rng = random.Random(8)
    query = random_pattern(rng, 5)
    views = distinct(view_of(rng, query, 4) for _ in range(30))
    least = Effort(pool=1 << 30, expansions=1, width=1 << 30, enough=1 << 30, rounds=1 << 30)
    able = feeders(query, views)
    assert list(islice(candidates(query, able, effort=least), 2)) != []
    everything = {c.members for c in candidates(query, able, 10**6, effort=THOROUGH)}
    assert {c.members for c in candidates(query, able, 10**6, effort=least)} == everything


@pytest.mark.parametrize("seed", range(10))
def test_the_compiled_search_finds_the_same(seed):
    rng = random.Random(seed)
    patterns = distinct(related_patterns(rng, 60))
    graph = EmbeddingGraph.build(patterns)
    known = measured(rng, patterns) if seed % 2 else Statistics()
    effort = rng.choice(
        [BATCH, Effort(pool=5, expansions=4, width=3, enough=6, rounds=1), Effort(3, 30, 2, 100, 1)]
    )
    k, link_bytes = rng.choice([1, 4, 30]), rng.choice([0, 5, 256])
    table = find_candidates(graph, k, statistics=known, effort=effort, link_bytes=link_bytes)
    total = 0
    for q in range(len(patterns)):
        views = [patterns[u] for u in graph.feeders_of(q).tolist()]
        able = feeders(patterns[q], views, known)
        slow = list(islice(candidates(patterns[q], able, k, effort=effort, link_bytes=link_bytes), k))
        fast = [(cost, {patterns[u].text for u in members}) for cost, members in table.of(q)]
        assert fast == [(c.cost, {able[v].view.text for v in c.members}) for c in slow]
        total += len(fast)
    assert total > 20
    assert table.edges == len(graph.edges())


def test_large_patterns_get_candidates_too():
    rng = random.Random(3)
    large = wide_pattern(rng, 70)
    patterns = distinct([large, *(view_of(rng, large, 60) for _ in range(40))])
    graph = EmbeddingGraph.build(patterns)
    table = find_candidates(graph)
    assert graph.large == [graph.number(large)]
    able = feeders(large, [patterns[u] for u in graph.feeders_of(graph.number(large)).tolist()])
    assert bool(table.of(graph.number(large))) == bool(list(islice(candidates(large, able, effort=BATCH), 1)))
    assert table.edges == len(graph.edges())


def test_a_query_that_needs_more_views_than_a_set_holds_is_done_the_slow_way():
    branches = [f"b{i}" for i in range(12)]
    query = Pattern.parse("//a" + "".join(f"[{b}{{val}}]" for b in branches))
    views = [Pattern.parse(f"//a[{b}{{val}}]") for b in branches]
    graph = EmbeddingGraph.build([query, *views])
    ((_, members),) = find_candidates(graph).of(graph.number(query))
    assert len(members) == 12


def test_an_empty_graph_and_wrong_options():
    assert len(find_candidates(EmbeddingGraph())) == 0
    with pytest.raises(ValueError, match="k"):
        find_candidates(EmbeddingGraph(), 0)
    with pytest.raises(ValueError, match="pool"):
        find_candidates(EmbeddingGraph(), effort=THOROUGH)
    with pytest.raises(ValueError, match="k"):
        next(rewritings(Pattern.parse("//a"), [], 0))
    assert list(rewritings(Pattern.parse("//a"), iter([]))) == []


def test_the_papers_greedy_order_finds_minimal_covers():
    rng = random.Random(9)
    for _ in range(150):
        query, views = small_problem(rng)
        able = feeders(query, views)
        nodes = [set(f.provisions) for f in able]
        wanted = {
            tuple(chosen)
            for chosen in covers(query, [f.view for f in able])
            if all(
                set().union(*(nodes[w] for w in chosen if w != v)) != set(range(len(query.nodes))) for v in chosen
            )
        }
        assert {tuple(sorted(cover)) for cover in greedy_covers(query, able, 10**6)} == wanted


def test_random_problems_have_rewritings():
    found = sum(bool(list(islice(rewritings(*random_problem(random.Random(seed))[1:]), 1))) for seed in range(60))
    assert found > 20


def test_a_view_beyond_64_nodes_feeds_a_small_query():
    big = Pattern.parse("//a{val}" + "[b{val}]" * 69)
    query = Pattern.parse("//a[b{val}]{val}[c]")
    graph = EmbeddingGraph.build([big, query, Pattern.parse("//a[c]{id}")])
    table = find_candidates(graph)
    assert [members for _, members in table.of(1)] == [(0, 2)]
    assert table.edges == len(graph.edges()) == 2


def bulky_branches(n):
    """Return a query with n bulky branches, a view with all of them, one selective view for each, and sizes."""
    branches = "".join(f"[l{i}{{cont}}[k='{i}']]" for i in range(n))
    query = Pattern.parse(f"//r{{id}}{branches}")
    whole = Pattern.parse("//r{id}" + "".join(f"[l{i}{{cont}}[k{{val}}]]" for i in range(n)))
    views = [whole, *(Pattern.parse(f"//l{i}{{cont}}[k='{i}']") for i in range(n))]
    sizes = [
        np.array([[1000] * len(p.nodes), [1000] * len(p.nodes), [100_000] * len(p.nodes)]) for p in [query, *views]
    ]
    sizes[1][:, 1:] *= 100
    return query, views, Statistics.known([query, *views], np.concatenate(sizes, axis=1))


@pytest.mark.parametrize("n", [4, 16])
def test_many_views_that_each_save_something_are_all_taken(n):
    query, views, known = bulky_branches(n)
    assert len(next(rewritings(query, views, statistics=known, link_bytes=10)).views) == n + 1
    graph = EmbeddingGraph.build([query, *views])
    far = Effort(pool=24, expansions=24, width=12, enough=48, rounds=1)
    table = find_candidates(graph, statistics=known, link_bytes=10, effort=far)
    assert len(table.of(0)[0][1]) == n + 1, "also beyond the eight views of a compiled set"


def test_patterns_with_equal_checksums_are_kept_apart():
    """These two had the same CRC-32, which was the hash once."""
    texts = ["//a{val}[.!='WnvhLQU']", "//a{val}[.!='ZmRQBi'][b]"]
    hashes = {text_hash(Pattern.parse(text)) for text in texts}
    assert len(hashes) == 2
    graph = EmbeddingGraph.build(map(Pattern.parse, ["//a{val}[.='q'][b]", *texts, "//b{id}"]))
    assert {members for _, members in find_candidates(graph).of(0)} == {(2,), (1, 3)}


def test_a_cover_is_found_however_narrow_the_search():
    rng = random.Random(12)
    narrow = Effort(pool=1, expansions=1, width=1, enough=1, rounds=1)
    found = 0
    for _ in range(300):
        query, views = small_problem(rng)
        able = feeders(query, views, measured(rng, [query, *views]))
        wanted = any(True for _ in candidates(query, able, link_bytes=3))
        assert any(True for _ in candidates(query, able, effort=narrow, link_bytes=3)) == wanted
        found += wanted
    assert found > 50


def test_only_some_of_the_views_were_measured():
    texts = ["//a{val}", "//a{cont}", "//a{id}[b]", "//b{id}"]
    patterns = [Pattern.parse(text) for text in texts]
    known = Statistics.measure([patterns[0], patterns[2]], [Document.parse(b"<a>x<b/></a>")])
    graph = EmbeddingGraph.build(patterns)
    able = feeders(patterns[2], [patterns[u] for u in graph.feeders_of(2).tolist()], known)
    slow = [c.cost for c in candidates(patterns[2], able, effort=BATCH)]
    assert [cost for cost, _ in find_candidates(graph, statistics=known).of(2)] == slow


@pytest.mark.parametrize("link_bytes", [-1, 1 << 31])
def test_a_link_costs_something_sensible(link_bytes):
    with pytest.raises(ValueError, match="link_bytes"):
        rewritings(Pattern.parse("//a"), [], link_bytes=link_bytes)
    with pytest.raises(ValueError, match="link_bytes"):
        find_candidates(EmbeddingGraph(), link_bytes=link_bytes)


def test_statistics_are_means_over_the_documents():
    pattern = Pattern.parse("//a{val}[b]")
    documents = [Document.parse(b"<a>xy<b/></a>"), Document.parse(b"<c/>"), Document.parse(b"<a><a><b/></a></a>")]
    figures = Statistics.measure([pattern], documents).of(pattern)
    assert figures[0].tolist() == [667, 667]
    assert figures[1].tolist() == [667, 0]
    assert figures[2, 0] > 2 * figures[2, 1] > 0
    with pytest.raises(ValueError, match="document"):
        Statistics.measure([pattern], [])


def test_candidates_after_patterns_came_and_went():
    rng = random.Random(21)
    patterns = distinct(related_patterns(rng, 50))
    graph = EmbeddingGraph.build(patterns[:30])
    for pattern in patterns[:10]:
        graph.remove(pattern)
    for pattern in patterns[30:]:
        graph.add(pattern)
    done = []
    table = find_candidates(graph, threads=1, tick=done.append)
    assert sum(done) == len(graph) == len(patterns) - 10
    assert all(table.of(u) == [] for u in range(10))
    anew = EmbeddingGraph.build(patterns[10:])
    again = find_candidates(anew)
    for pattern in patterns[10:]:
        costs = [cost for cost, _ in table.of(graph.number(pattern))]
        assert costs == [cost for cost, _ in again.of(anew.number(pattern))]


def test_an_effort_of_nothing_is_refused():
    with pytest.raises(ValueError, match="1 or more"):
        Effort(pool=1, expansions=1, width=1, enough=1, rounds=0)

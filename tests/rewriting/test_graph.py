"""The embedding graph: by trie, by scan, by pairs and by Algorithm 3, whatever comes and goes."""

import itertools
import random

import numpy as np
import pytest

from rewriting import EmbeddingGraph, embeds, find_candidates, graph, unrewritable
from rewriting.baselines.cycle_removal import feedback_arcs
from rewriting.baselines.embedding_graphs import edges_by_label_trie, edges_by_pairs
from rewriting.feeding_order import feeding_key, may_feed, weight
from tests.oracles import rewritable
from tests.oracles.containment import all_embeddings
from tests.rewriting.cases import random_pattern, view_of
from xmlmatch import Axis, Column, Pattern, PatternNode, Return
from xmlmatch.pattern import canonical


def related_patterns(rng, count):
    """Draw patterns of which many embed in others."""
    patterns = [random_pattern(rng, 6) for _ in range(count // 3 + 1)]
    patterns += [view_of(rng, rng.choice(patterns), 5) for _ in range(count - len(patterns))]
    rng.shuffle(patterns)
    return patterns


def distinct(patterns):
    return list({p.text: p for p in patterns}.values())


def wide_pattern(rng, nodes):
    """Draw a pattern of many nodes, few labels, so that embeddings abound."""
    built = [PatternNode("a", Axis.DESCENDANT, -1)]
    for i in range(1, nodes):
        parent = rng.randrange(max(0, i - 4), i)
        returns = (Return.VAL,) if i % 3 else ()
        built.append(PatternNode(rng.choice("abcd"), Axis(rng.randint(0, 1)), parent, (), returns))
    return canonical(built, [Column(i, Return.VAL) for i, node in enumerate(built) if node.returns])


@pytest.mark.parametrize("seed", range(6))
def test_all_ways_to_build_the_graph_agree(seed):
    patterns = distinct(related_patterns(random.Random(seed), 80))
    found = set(map(tuple, EmbeddingGraph.build(patterns).edges().tolist()))
    assert found == set(edges_by_pairs(patterns)) == set(edges_by_label_trie(patterns))
    assert len(found) > 100


def test_edges_are_those_of_brute_force():
    rng = random.Random(7)
    patterns = distinct(p for p in related_patterns(rng, 90) if len(p.nodes) <= 4)
    wanted = {
        (u, q)
        for u, view in enumerate(patterns)
        for q, query in enumerate(patterns)
        if u != q and all_embeddings(view, query)
    }
    assert set(map(tuple, EmbeddingGraph.build(patterns).edges().tolist())) == wanted
    assert len(wanted) > 100


@pytest.mark.parametrize("seed", range(4))
def test_patterns_beyond_64_nodes_are_found_too(seed):
    rng = random.Random(seed)
    large = [wide_pattern(rng, size) for size in (64, 65, 70, 120)]
    patterns = distinct(
        [*large, *(view_of(rng, rng.choice(large), 6) for _ in range(12)), *related_patterns(rng, 10)]
    )
    built = EmbeddingGraph.build(patterns)
    edges = set(map(tuple, built.edges().tolist()))
    assert edges == set(edges_by_pairs(patterns))
    assert any(len(patterns[q].nodes) > 64 for _, q in edges)
    for number in range(len(patterns)):
        assert built.queries_of(number).tolist() == sorted(q for u, q in edges if u == number)


@pytest.mark.parametrize("seed", range(5))
def test_a_graph_that_changed_equals_one_built_anew(seed, monkeypatch):
    monkeypatch.setattr(graph, "_FEWEST_RECENT", 6)
    rng = random.Random(seed)
    pool = distinct([*related_patterns(rng, 50), wide_pattern(rng, 66)])
    built, held = EmbeddingGraph.build(pool[:10]), {p.text: 1 for p in pool[:10]}
    for _ in range(120):
        pattern = rng.choice(pool)
        if held.get(pattern.text) and rng.random() < 0.5:
            change = built.remove(pattern)
            held[pattern.text] -= 1
        else:
            change = built.add(pattern)
            held[pattern.text] = held.get(pattern.text, 0) + 1
        present = [p for p in pool if held.get(p.text)]
        by_text = {p.text for p in present} | {pattern.text}
        others = [p for p in pool if p.text in by_text and p != pattern]
        texts = [p for p in others if embeds(p, pattern)]
        assert sorted(texts_of(built, change.views)) == sorted(p.text for p in texts)
        assert sorted(texts_of(built, change.queries)) == sorted(p.text for p in others if embeds(pattern, p))
        assert len(built) == len(present)
    for p in present:
        assert built.multiplicity(built.number(p)) == held[p.text]
    numbers = {built.number(p): i for i, p in enumerate(present)}
    edges = {(numbers[u], numbers[q]) for u, q in built.edges().tolist()}
    assert edges == set(edges_by_pairs(present))


def texts_of(built, numbers):
    return [built.pattern(u).text for u in numbers.tolist()]


def test_what_is_not_there_is_a_key_error():
    built = EmbeddingGraph.build([Pattern.parse("//a")])
    with pytest.raises(KeyError):
        built.remove(Pattern.parse("//b"))
    for ask in (built.pattern, built.key, built.multiplicity, built.views_of, find_candidates(built).of):
        for number in (1, -1):
            with pytest.raises(KeyError):
                ask(number)
    built.remove(Pattern.parse("//a"))
    with pytest.raises(KeyError):
        built.pattern(0)
    assert (len(built), built.edges().tolist()) == (0, [])


def test_equal_patterns_share_a_node_and_keep_their_key():
    built = EmbeddingGraph.build([Pattern.parse("//a[c][b]"), Pattern.parse("//a[b][c]")])
    key = built.key(0)
    built.add(Pattern.parse("//a[b][c]"))
    assert (len(built), built.multiplicity(0), built.key(0)) == (1, 3, key)


@pytest.mark.parametrize("seed", range(5))
def test_what_cannot_be_rewritten_agrees_with_the_slow_way(seed):
    patterns = distinct(related_patterns(random.Random(seed), 60))
    assert unrewritable(patterns) == rewritable.unrewritable(patterns)


def acyclic(edges):
    nodes = {node for edge in edges for node in edge}
    edges = set(edges)
    while nodes:
        free = nodes - {q for _, q in edges}
        if not free:
            return False
        nodes -= free
        edges = {(u, q) for u, q in edges if u in nodes}
    return True


@pytest.mark.parametrize("seed", range(8))
def test_no_set_of_feeds_along_the_feeding_order_is_cyclic(seed):
    rng = random.Random(seed)
    patterns = related_patterns(rng, 40)
    # The same structures with other returns embed in each other.
    patterns += [returning(rng, p) for p in patterns for _ in range(2)]
    built = EmbeddingGraph()
    for pattern in patterns:
        built.add(pattern)
    feeds = {(u, q) for q in built.numbers.tolist() for u in built.feeders_of(q).tolist()}
    edges = set(map(tuple, built.edges().tolist()))
    assert acyclic(feeds)
    assert not acyclic(edges)
    mutual = {(u, q) for u, q in edges if (q, u) in edges}
    assert len(edges - feeds) == len(mutual) / 2, "one of each pair is given up, and nothing else"
    removed = feedback_arcs(edges)
    assert acyclic(edges - removed)
    assert len(removed) >= len(edges - feeds), "no order can keep more"


def returning(rng, pattern):
    nodes = [PatternNode(n.label, n.axis, n.parent, n.predicates) for n in pattern.nodes]
    n = rng.randrange(len(nodes))
    what = rng.choice([Return.ID, Return.VAL])
    nodes[n] = PatternNode(nodes[n].label, nodes[n].axis, nodes[n].parent, nodes[n].predicates, (what,))
    return canonical(nodes, [Column(n, what)])


def test_the_feeding_order_is_total_puts_more_attributes_first_and_hangs_on_the_patterns_alone():
    texts = ["//a{id}", "//a{val}", "//a{cont}", "//a{val,cont}", "//b{val}"]
    patterns = [Pattern.parse(text) for text in texts]
    right = sorted(patterns, key=feeding_key)
    assert [weight(one) for one in right] == [3, 2, 1, 1, 0]
    for order in itertools.permutations(patterns):
        built = EmbeddingGraph()
        for pattern in order:
            built.add(pattern)
        keys = [built.key(i) for i in range(5)]
        assert len(set(keys)) == 5
        assert [order[i] for i in sorted(range(5), key=lambda i: keys[i])] == right
        assert [order[i] for i in np.argsort(built.feeding_ranks())] == right


@pytest.mark.parametrize("seed", range(4))
def test_the_graph_lets_feed_whom_two_patterns_alone_let_feed(seed):
    rng = random.Random(seed)
    patterns = distinct([returning(rng, p) for p in related_patterns(rng, 20) for _ in range(3)])
    built = EmbeddingGraph.build(patterns)
    for query in patterns:
        found = {built.pattern(u).text for u in built.feeders_of(built.number(query)).tolist()}
        assert found == {view.text for view in patterns if view != query and may_feed(view, query)}

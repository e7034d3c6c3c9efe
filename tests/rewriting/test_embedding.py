"""Embeddings against trying every assignment, and what feeding needs."""

import random

import pytest

from rewriting import cover, embeds, unrewritable
from tests.oracles.containment import all_embeddings
from xmlmatch import Axis, Column, Operator, Pattern, PatternNode, Predicate, Return
from xmlmatch.pattern import canonical


def random_small_pattern(rng):
    nodes = []
    for i in range(rng.randint(1, 4)):
        parent = rng.randrange(i) if i else -1
        if i and nodes[parent].label.startswith("@"):
            parent = 0
        label = rng.choice(["a", "a", "b", "*"] + (["@x"] if i else []))
        predicate = Predicate(rng.choice([Operator.EQ, Operator.GE, Operator.NE]), float(rng.randint(1, 2)))
        nodes.append(
            PatternNode(label, Axis(rng.randint(0, 1)), parent, (predicate,) if rng.random() < 0.3 else ())
        )
    nodes = [n for n in nodes if n.parent < 0 or not nodes[n.parent].is_attribute]
    last = nodes[-1]
    nodes[-1] = PatternNode(last.label, last.axis, last.parent, last.predicates, (Return.ID,))
    return canonical(nodes, [Column(len(nodes) - 1, Return.ID)])


def test_cover_is_the_union_of_all_embeddings():
    rng = random.Random(4)
    embedded = 0
    for _ in range(1500):
        view, query = random_small_pattern(rng), random_small_pattern(rng)
        found = all_embeddings(view, query)
        wanted = [sorted({places[i] for places in found}) for i in range(len(view.nodes))]
        assert [nodes.tolist() for nodes in cover(view, query)] == wanted, (str(view), str(query))
        assert embeds(view, query) == bool(found)
        embedded += bool(found)
    assert embedded > 100


@pytest.mark.parametrize(
    ("view", "query", "holds"),
    [
        ("//a", "/a/b", True),
        ("/a", "//a", False),
        ("//a//b", "//a/b", True),
        ("//a/b", "//a//b", False),
        ("//*", "//a", True),
        ("//a", "//*", False),
        ("//a//*", "//a/@x", False),
        ("//a[.='5']", "//a", False),
        ("//a", "//a[.='5']", True),
        ("//a[.>=40]", "//a[.>=50]", True),
        ("//a[.='40']", "//a[.=40]", False),
    ],
)
def test_a_view_embeds_only_where_it_matches_whenever_the_query_does(view, query, holds):
    assert embeds(Pattern.parse(view), Pattern.parse(query)) is holds


@pytest.mark.parametrize(
    ("texts", "left"),
    [
        (["//a{cont}", "//a{val}"], ["//a{cont}"]),
        (["//a{val}", "//a{cont}"], ["//a{cont}"]),
        (["//a{val}", "//a{val}[.='1']"], ["//a{val}"]),
        (["//a{id}", "//a{id}[.='1']"], ["//a{id}", "//a{id}[.='1']"]),
        (["//a{id}[.='1']", "//a{val}[.='1']"], ["//a{val}[.='1']"]),
        (["//*{val}", "//a{val}"], ["//*{val}"]),
        (["//a{id}", "//b{id}", "//a{id}//b{id}"], ["//a{id}", "//b{id}"]),
        (["//a{id}[b]", "//a{id}/b"], ["//a{id}[b]"]),
    ],
)
def test_what_cannot_be_rewritten_needs_something_that_no_other_carries(texts, left):
    patterns = [Pattern.parse(text) for text in texts]
    assert [str(patterns[i]) for i in unrewritable(patterns)] == [str(Pattern.parse(text)) for text in left]

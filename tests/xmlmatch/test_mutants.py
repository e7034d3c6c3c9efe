"""The comparison that the property tests use catches the faults that matching could plausibly have."""

import random

import numpy as np
import pytest

from tests.oracles.comparison import differences
from tests.oracles.documents import numbered
from tests.random_cases import random_case
from xmlmatch import Axis, Column, Document, Return, matching, nodesets, rows, semijoin, values
from xmlmatch.pattern import Pattern

CASES = 120


@pytest.fixture(scope="module")
def drawn_cases():
    texts = [random_case(random.Random(seed)) for seed in range(CASES)]
    return [(drawn.pattern, Document.parse(text.encode()), numbered(text)) for text, drawn in texts]


def caught(cases):
    return sum(bool(differences(*case)) for case in cases)


def test_nothing_is_reported_while_the_code_is_whole(drawn_cases):
    assert caught(drawn_cases) == 0


def test_a_descendant_axis_read_as_a_child_axis_is_caught(drawn_cases, monkeypatch):
    def reduce(pattern, forest, candidates):
        nodes = tuple(node._replace(axis=Axis.CHILD) for node in pattern.nodes)
        return semijoin.reduce(Pattern(tuple(nodes), ()), forest, candidates)

    monkeypatch.setattr(matching, "reduce", reduce)
    assert caught(drawn_cases) > 10


def test_a_child_axis_read_as_a_descendant_axis_is_caught(drawn_cases, monkeypatch):
    def reduce(pattern, forest, candidates):
        nodes = tuple(node._replace(axis=Axis.DESCENDANT) for node in pattern.nodes)
        return semijoin.reduce(Pattern(tuple(nodes), ()), forest, candidates)

    monkeypatch.setattr(matching, "reduce", reduce)
    assert caught(drawn_cases) > 3


def test_a_dropped_top_down_pass_is_caught(drawn_cases, monkeypatch):
    monkeypatch.setattr(matching, "reduce", bottom_up_only)
    assert caught(drawn_cases) > 3


def bottom_up_only(pattern, forest, candidates):
    """Reduce every sub-pattern on its own, so that no node hears of what stands above it."""
    sets = []
    for top in range(len(pattern.nodes)):
        below = [i for i in range(len(pattern.nodes)) if top in ancestors(pattern, i)]
        place = {i: k for k, i in enumerate(below)}
        nodes = [pattern.nodes[i]._replace(parent=place.get(pattern.nodes[i].parent, -1)) for i in below]
        if top:
            nodes[0] = nodes[0]._replace(axis=Axis.DESCENDANT)
        reduced = semijoin.reduce(Pattern(tuple(nodes), ()), forest, [candidates[i] for i in below])
        sets.append(reduced[0])
    return tuple(sets) if all(len(s) for s in sets) else tuple(s[:0] for s in sets)


def ancestors(pattern, i):
    found = []
    while i >= 0:
        found.append(i)
        i = pattern.nodes[i].parent
    return found


def test_a_star_that_takes_attributes_is_caught(drawn_cases, monkeypatch):
    def labelled(document, label):
        return document.pre if label == "*" else original(document, label)

    original = matching._labelled
    monkeypatch.setattr(matching, "_labelled", labelled)
    assert caught(drawn_cases) > 3


def test_an_ignored_predicate_is_caught(drawn_cases, monkeypatch):
    monkeypatch.setattr(matching, "satisfying", lambda document, nodes, predicates: nodes)
    assert caught(drawn_cases) > 3


def test_a_predicate_of_which_only_the_first_counts_is_caught(drawn_cases, monkeypatch):
    def satisfying(document, nodes, predicates):
        return values.satisfying(document, nodes, predicates[:1])

    monkeypatch.setattr(matching, "satisfying", satisfying)
    conditions = "//*[.!=40][.!='other'][.!='a'][.!='b']{id}"
    document = b"<r><a>40</a><b>a</b></r>"
    assert differences(Pattern.parse(conditions), Document.parse(document), numbered(document))


def test_repeated_rows_are_caught(drawn_cases, monkeypatch):
    def every_embedding(pattern, forest, sets):
        all_nodes = tuple(Column(i, Return.ID) for i in range(len(pattern.nodes)))
        for block in rows.node_rows(Pattern(pattern.nodes, all_nodes), forest, sets):
            found = block[:, list(pattern.returning)]
            yield found[np.lexsort(found.T[::-1])]

    monkeypatch.setattr(nodesets, "node_rows", every_embedding)
    assert caught(drawn_cases) > 3


def test_rows_in_another_order_are_caught(drawn_cases, monkeypatch):
    def backwards(pattern, forest, sets):
        yield from (block[::-1] for block in rows.node_rows(pattern, forest, sets))

    monkeypatch.setattr(nodesets, "node_rows", backwards)
    assert caught(drawn_cases) > 10


def test_combinations_that_ignore_the_edges_between_columns_are_caught(drawn_cases, monkeypatch):
    def product(pattern, forest, sets):
        grids = np.meshgrid(*(sets[i] for i in pattern.returning), indexing="ij")
        yield np.stack([grid.ravel() for grid in grids], axis=1)

    monkeypatch.setattr(nodesets, "node_rows", product)
    assert caught(drawn_cases) > 3

"""Rewriting broken on purpose: the comparison with direct matching must notice each time."""

import random
from functools import lru_cache

import numpy as np
import pytest

from rewriting import embedding, providers, rewritings
from rewriting import execution as home
from rewriting.errors import RewritingError
from rewriting.execution import Link
from rewriting.fragment_kernels import VAL
from tests.rewriting.cases import random_document, random_problem
from tests.rewriting.test_execution import check
from xmlmatch import Axis, Document, match
from xmlmatch.pattern import ANY


def no_implication(monkeypatch):
    """Predicates need only not contradict, as in the paper: every set implies every other."""
    monkeypatch.setattr(embedding, "implies", lambda stronger, weaker: True)


def no_filter(monkeypatch):
    """A provider's predicates are taken to imply the query's."""
    monkeypatch.setattr(providers, "implies", lambda stronger, weaker: True)


def star_without_its_name(monkeypatch):
    """Nodes of a ``*`` are sent whatever their name."""
    monkeypatch.setattr(home, "named", lambda nodes, positions, label: positions)


def star_covers_attributes(monkeypatch):
    """``*`` embeds on ``@x`` too."""
    accepting = embedding._accepting

    def generous(node, forest):
        if node.label != ANY:
            return accepting(node, forest)
        groups = forest.groups.values()
        return sorted(n for by in groups for p, nodes in by.items() if not node.predicates for n in nodes)

    monkeypatch.setattr(embedding, "_accepting", generous)


def one_filter_for_all(monkeypatch):
    """A filter meant for one query node thins every list of the same view node."""
    filtered = Link._filtered

    def thinned(self, p, of_view, nodes):
        lists = [
            filtered(self, other, of_view, nodes) for other in self.provisions if other.view_node == p.view_node
        ]
        kept = lists[0]
        for other in lists[1:]:
            kept = np.intersect1d(kept, other)
        return kept

    monkeypatch.setattr(Link, "_filtered", thinned)


def a_provider_left_out(monkeypatch):
    """The last of several views is forgotten; another's nodes stand in for what it provided."""
    links = home.links_of

    def fewer(query, chosen):
        made = list(links(query, chosen))
        if len(made) > 1:
            lost, first = made.pop(), made[0]
            stand_in = first.provisions[0]
            extra = tuple(
                p._replace(view_node=stand_in.view_node, by_name=False, by_value=False, payload=0)
                for p in lost.provisions
            )
            made[0] = Link(first.view, query, first.provisions + extra)
        return tuple(made)

    monkeypatch.setattr(home, "links_of", fewer)


def child_fed_by_descendant(monkeypatch):
    """A ``/`` of a view embeds on a ``//`` of the query."""
    forest = embedding._forest

    @lru_cache
    def flat(query):
        found = forest(query)
        level = np.zeros(len(query.nodes), np.int32)
        for i, node in enumerate(query.nodes):
            level[i] = level[node.parent] + 1 if node.parent >= 0 else 0
        return embedding._QueryForest(found.parent, found.size, level, found.groups)

    monkeypatch.setattr(embedding, "_forest", flat)


def payload_left_out(monkeypatch):
    """Values are not sent."""
    cut = home.cut
    monkeypatch.setattr(
        home, "cut", lambda nodes, positions, wanted: cut(nodes, positions, wanted & ~np.uint8(VAL))
    )


def parts_reduced_too_much(monkeypatch):
    """A sender takes a query's ``/`` for one although it lacks the node above."""
    part = Link._part

    def strict(self, members, above):
        made = part(self, members, above)
        nodes = tuple(type(n)(n.label, Axis.CHILD, n.parent) for n in made.nodes)
        return type(made)(nodes, ())

    monkeypatch.setattr(Link, "_part", strict)


def receiver_does_not_reduce(monkeypatch):
    """What came is taken for the result."""
    monkeypatch.setattr(home, "reduce", lambda pattern, forest, candidates: tuple(candidates))


MUTANTS = [
    no_implication,
    no_filter,
    star_without_its_name,
    star_covers_attributes,
    one_filter_for_all,
    a_provider_left_out,
    child_fed_by_descendant,
    payload_left_out,
    parts_reduced_too_much,
    receiver_does_not_reduce,
]


def compare(cases=400):
    """Run the comparison of ``test_execution``; raises when it notices something, or counts the matches."""
    matched = 0
    for seed in range(cases):
        rng = random.Random(50_000 + seed)
        data, query, views = random_problem(rng)
        documents = [Document.parse(data), Document.parse(random_document(rng))]
        for rewriting in rewritings(query, views, 5):
            for document in documents:
                results = {view: match(view, document) for view in rewriting.views}
                matched += check(rewriting, document, results)
    return matched


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_comparison_notices(mutant, monkeypatch):
    mutant(monkeypatch)
    with pytest.raises((AssertionError, RewritingError)):
        compare()


def test_unbroken_code_passes_the_same_comparison():
    assert compare() > 100

"""Figure 4 and the examples of section 4 of the Delta paper.

The paper lets a view embed if its predicates do not contradict the query's; here the query's must imply the
view's, or ``//a[.='5']`` could feed ``//a``.
"""

import pytest

from rewriting import EmbeddingGraph, cover, embeds, find_candidates, rewritings
from rewriting.baselines.cycle_removal import feedback_arcs
from rewriting.baselines.greedy_covers import greedy_covers
from rewriting.providers import feeders
from xmlmatch import Document, Pattern, match

V1 = Pattern.parse("//a{id}//b{id,cont}")
V2 = Pattern.parse("//a{id,cont}//b{id,cont}")
V3 = Pattern.parse("//a{id,cont}")


def test_figure_4_embedding_graph():
    graph = EmbeddingGraph.build([V1, V2, V3])
    assert graph.edges().tolist() == [[0, 1], [1, 0], [2, 0], [2, 1]]


def test_figure_4_rewritings():
    assert [r.views for r in rewritings(V1, [V2, V3])] == [(V2,)]
    assert [set(r.views) for r in rewritings(V2, [V1, V3])] == [{V1, V3}]


def test_figure_4_cycle_is_broken_by_the_feeding_order_as_by_the_paper():
    graph = EmbeddingGraph.build([V1, V2, V3])
    table = find_candidates(graph)
    assert [[members for _, members in table.of(q)] for q in range(3)] == [[(1,)], [], []]
    assert (table.edges, table.given_up) == (4, 1)
    assert len(feedback_arcs(map(tuple, graph.edges().tolist()))) == 1


def test_section_4_3_interest():
    """Rewriting /a{id,cont}/b{id,cont}: u1 adds three attributes, then u2 one."""
    query = Pattern.parse("/a{id,cont}/b{id,cont}")
    u1, u2 = Pattern.parse("/a{id}/b{id,cont}"), Pattern.parse("/a{id,cont}/b{id}")
    assert [sorted(c) for c in greedy_covers(query, feeders(query, [u1, u2]))] == [[0, 1]]
    (rewriting,) = rewritings(query, [u1, u2])
    document = Document.parse(b"<a>1<b>2</b><c><b>3</b></c><b/></a>")
    found = rewriting.execute({u: match(u, document) for u in (u1, u2)})
    assert list(found.rows()) == list(match(query, document).rows())


def test_section_4_3_minimization():
    """A view whose part the others cover together is left out."""
    query = Pattern.parse("//a{val}[b{val}]/c{val}")
    views = [Pattern.parse(t) for t in ["//a{val}[b{val}]", "//a{val}[b]/c{val}", "//b{val}", "//a[c{val}]"]]
    found = list(greedy_covers(query, feeders(query, views)))
    assert len(found) == 3
    for chosen in found:
        nodes = [set(f.provisions) for f in feeders(query, views)]
        assert all(set().union(*(nodes[w] for w in chosen if w != v)) != {0, 1, 2} for v in chosen)


@pytest.mark.parametrize(
    ("view", "query", "ours"),
    [
        ("//a[.='5']", "//a", False),  # does not contradict, so the paper would allow it
        ("//a[.>=4]", "//a[.>=3]", False),  # likewise
        ("//a", "//a[.='5']", True),
        ("//a[.='4']", "//a[.='5']", False),
        ("//a[.='5']", "//a[.='5']", True),
        ("//a[.>4]", "//a[.=5]", True),
    ],
)
def test_the_predicate_rule_is_tighter_than_the_papers(view, query, ours):
    assert embeds(Pattern.parse(view), Pattern.parse(query)) is ours


def test_corollary_4_1_labels_of_a_view_are_among_the_querys():
    assert not embeds(Pattern.parse("//a//c"), Pattern.parse("//a//b"))
    assert embeds(Pattern.parse("//a//*"), Pattern.parse("//a//b"))  # * is no label


def test_all_embeddings_count_not_one():
    view, query = Pattern.parse("//a//b{val}"), Pattern.parse("//a[b{val}]/c/b{val}")
    assert [nodes.tolist() for nodes in cover(view, query)] == [[0], [1, 3]]

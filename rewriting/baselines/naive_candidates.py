"""The naive way to the rewritability graph (section 3.1 of the Delta paper): every pattern against all others.

Calls the rewriting algorithm once per pattern with all other patterns, without a graph that says which can matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewriting.candidates import THOROUGH, Effort, candidates
from rewriting.embedding import embeds
from rewriting.providers import feeders
from rewriting.statistics import LINK_BYTES, Statistics

if TYPE_CHECKING:
    from rewriting.graph import EmbeddingGraph


def naive_candidates(
    graph: EmbeddingGraph,
    k: int = 30,
    *,
    statistics: Statistics | None = None,
    effort: Effort = THOROUGH,
    link_bytes: int = LINK_BYTES,
) -> dict[int, list[tuple[int, tuple[int, ...]]]]:
    """List up to ``k`` candidates of every pattern: cost and the numbers of its views, the cheapest first.

    >>> from rewriting.graph import EmbeddingGraph
    >>> from xmlmatch import Pattern
    >>> texts = ["//a{cont}", "//b{val}", "//a{cont}//b{val}"]
    >>> [len(found) for found in naive_candidates(EmbeddingGraph.build(map(Pattern.parse, texts))).values()]
    [0, 0, 1]
    """
    found = {}
    for q in graph.numbers.tolist():
        query = graph.pattern(q)
        views = [graph.pattern(u) for u in graph.numbers.tolist() if u != q and _may_feed(graph, u, q)]
        able = feeders(query, views, statistics)
        found[q] = [
            (c.cost, tuple(graph.number(able[v].view) for v in c.members))
            for c in candidates(query, able, k, effort=effort, link_bytes=link_bytes)
        ]
    return found


def _may_feed(graph: EmbeddingGraph, u: int, q: int) -> bool:
    """Say whether the feeding order lets one pattern feed another, should it be of use."""
    return graph.key(u) < graph.key(q) or not embeds(graph.pattern(q), graph.pattern(u))

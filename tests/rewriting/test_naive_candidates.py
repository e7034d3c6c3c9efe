"""The naive rewritability graph has the same cheapest candidates as the one that is searched through the trie."""

import random

import pytest

from rewriting import EmbeddingGraph, find_candidates
from rewriting.baselines.naive_candidates import naive_candidates
from rewriting.candidates import Effort
from tests.rewriting.cases import random_pattern, view_of

ALL = Effort(pool=64, expansions=64, width=32, enough=1000, rounds=1)


@pytest.mark.parametrize("seed", range(12))
def test_every_pattern_against_all_others_finds_the_same(seed):
    rng = random.Random(seed)
    query = random_pattern(rng)
    graph = EmbeddingGraph.build([query, *(view_of(rng, query) for _ in range(7)), random_pattern(rng)])
    table, naive = find_candidates(graph, 100, effort=ALL), naive_candidates(graph, 100, effort=ALL)
    for q in graph.numbers.tolist():
        assert sorted((cost, sorted(views)) for cost, views in table.of(q)) == sorted(
            (cost, sorted(views)) for cost, views in naive[q]
        )

"""reduce() and node_rows() over any forest of nodes, not only whole documents."""

import random
from dataclasses import dataclass

import numpy as np
import pytest

from tests.oracles import embeddings
from tests.oracles.documents import numbered
from tests.random_cases import random_case
from xmlmatch import Pattern, reduce
from xmlmatch.rows import node_rows


@dataclass
class Forest:
    """Some nodes of a document, numbered anew; levels stay those of the document."""

    kept: list
    parent: np.ndarray
    size: np.ndarray
    level: np.ndarray


def forest_of(nodes, kept):
    place = {pre: i for i, pre in enumerate(kept)}

    def nearest(pre):
        up = nodes[pre].parent
        while up >= 0 and up not in place:
            up = nodes[up].parent
        return place.get(up, -1)

    below = [sum(pre < other <= pre + nodes[pre].size for other in kept) for pre in kept]
    return Forest(
        kept,
        np.array([nearest(pre) for pre in kept], np.int32),
        np.array(below, np.int32),
        np.array([nodes[pre].level for pre in kept], np.int32),
    )


def candidates_of(pattern, nodes, forest):
    """List, for each pattern node, the places of the forest whose label and value fit."""
    return [
        np.array([i for i, pre in enumerate(forest.kept) if embeddings._fits(wanted, nodes[pre])], np.int32)
        for wanted in pattern.nodes
    ]


def restricted(pattern, nodes, kept):
    """Return sets and rows over the embeddings that use only the nodes kept."""
    found = [e for e in embeddings.embeddings(pattern, nodes) if set(e) <= set(kept)]
    sets = [sorted({e[i] for e in found}) for i in range(len(pattern.nodes))]
    return sets, sorted({tuple(e[i] for i in pattern.returning) for e in found})


@pytest.mark.parametrize("share", [1.0, 0.8, 0.5])
def test_reduce_gives_the_embeddings_within_the_forest(share):
    matched = 0
    for seed in range(500):
        rng = random.Random(seed)
        text, drawn = random_case(rng)
        pattern, nodes = drawn.pattern, numbered(text)
        forest = forest_of(nodes, [pre for pre in range(len(nodes)) if rng.random() < share or share == 1])
        found = reduce(pattern, forest, candidates_of(pattern, nodes, forest))
        sets, rows = restricted(pattern, nodes, forest.kept)
        assert [[forest.kept[i] for i in s] for s in found] == sets, (text, drawn.text)
        told = [
            tuple(forest.kept[i] for i in row)
            for block in node_rows(pattern, forest, found)
            for row in block.tolist()
        ]
        assert told == rows, (text, drawn.text)
        matched += bool(rows)
    assert matched > 100


def test_what_takes_part_in_the_answer_is_forest_enough():
    for seed in range(300):
        text, drawn = random_case(random.Random(seed))
        pattern, nodes = drawn.pattern, numbered(text)
        sets = embeddings.node_sets(pattern, nodes)
        forest = forest_of(nodes, sorted(set().union(*sets)))
        found = reduce(pattern, forest, candidates_of(pattern, nodes, forest))
        assert [[forest.kept[i] for i in s] for s in found] == sets


def test_reduce_leaves_the_candidates_alone():
    nodes = numbered("<a><b/><c/></a>")
    forest = forest_of(nodes, [0, 1, 2])
    pattern = Pattern.parse("//a/b")
    candidates = candidates_of(pattern, nodes, forest)
    before = [c.tolist() for c in candidates]
    reduce(pattern, forest, candidates)
    assert [c.tolist() for c in candidates] == before


def test_an_empty_forest_has_no_embedding():
    forest = forest_of([], [])
    nothing = np.empty(0, np.int32)
    found = reduce(Pattern.parse("//a/b"), forest, [nothing, nothing])
    assert [s.tolist() for s in found] == [[], []]

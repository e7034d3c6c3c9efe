"""Why nothing matches: against the obvious way, one node after the other."""

import random

import pytest

from peer.narrowing import Lack, narrowed
from scenarios.small_documents import small_document
from xmlmatch import Document, Pattern, match
from xmlmatch.pattern import Column, Return

TEXTS = [
    "//a[b][c]{cont}", "//a[b=1][c=2]{cont}", "/r/a/b[.>3]{val}", "//a[.//b>5]/c{val}", "//x[a]{val}",
    "//a[a/b]{cont}", "//*[b='zz']{val}", "//a[@k='1']/b{val}", "/r[a[b=1]][a[c=1]]/a{cont}",
]  # fmt: skip


def first_empty(pattern, parsed):
    """Return the number of the first node with which nothing matches."""
    for count in range(1, len(pattern.nodes) + 1):
        nodes = tuple(
            node._replace(returns=(Return.ID,) if i == 0 else ()) for i, node in enumerate(pattern.nodes[:count])
        )
        if not match(Pattern(nodes, (Column(0, Return.ID),)), parsed):
            return count - 1
    return None


@pytest.mark.parametrize("seed", range(40))
def test_the_node_is_the_first_with_which_nothing_is_left(seed):
    parsed = Document.parse(small_document(random.Random(seed)))
    for text in TEXTS:
        pattern = Pattern.parse(text)
        found, wanted = narrowed(pattern, parsed), first_empty(pattern, parsed)
        assert (found is None) == bool(match(pattern, parsed)) == (wanted is None)
        if found is not None:
            node = pattern.nodes[wanted]
            assert found.added.lstrip("/").startswith(node.label)
            assert (found.labelled == 0) == (found.lack is Lack.LABEL)
            assert (found.kept == "") == (wanted == 0)
            assert bool(found.found) == (found.lack is Lack.VALUE)


@pytest.mark.parametrize(
    ("text", "lack", "added"),
    [
        ("//a[k=2]{cont}", Lack.LABEL, "k=2"),
        ("//a[b=2]{cont}", Lack.VALUE, "b=2"),
        ("//a[c]{cont}", Lack.PLACE, "c"),
        ("//a[b>0][b<9][b=4]{cont}", Lack.VALUE, "b=4"),
    ],
)
def test_the_reason_is_the_label_the_value_or_the_place(text, lack, added):
    found = narrowed(Pattern.parse(text), Document.parse(b"<r><a><b>1</b></a><c/></r>"))
    assert (found.lack, found.added, found.left) == (lack, added, 1)

"""Patterns written as XPath 1.0 select, in lxml, what their nodes take."""

import random

import pytest
from lxml import etree

from scenarios.auction_documents import auction_document
from scenarios.presets import TABLE2
from scenarios.subscriptions import random_pattern
from xmlmatch import Document, Pattern, match
from xmlmatch.xpath import to_xpath


def selected(tree, path):
    found = tree.xpath(path.text, namespaces=path.namespaces)
    return [str(node.xpath("string()")) if hasattr(node, "xpath") else str(node) for node in found]


@pytest.mark.parametrize("seed", range(3))
def test_every_node_of_a_pattern_takes_what_its_path_selects(seed):
    data = auction_document(seed)
    document, tree = Document.parse(data), etree.fromstring(data).getroottree()
    rng = random.Random(seed)
    matched = 0
    for _ in range(150):
        pattern = random_pattern(rng, TABLE2)
        sets = match(pattern, document).sets
        matched += len(sets[0]) > 0
        for node, nodes in enumerate(sets):
            path = to_xpath(pattern, node)
            assert selected(tree, path) == [document.val(n) for n in nodes.tolist()], path.text
    assert matched > 20


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("//a[.=0.09]", "//a[. = 0.09]"),
        ("//a[.<1e21]", "//a[. < 1000000000000000000000]"),
        ("//a[.!='it\"s']", "//a[. != 'it\"s']"),
        ("/a//@x", "/a//@x"),
    ],
)
def test_constants_are_written_as_xpath_reads_them(text, path):
    pattern = Pattern.parse(text)
    assert to_xpath(pattern, pattern.returning[0]).text == path


def test_namespaces_get_prefixes_of_their_own():
    path = to_xpath(Pattern.parse("//Q{urn:x}a[@Q{urn:y}b]/Q{urn:x}c{val}"), 2)
    assert path.namespaces == {"n0": "urn:x", "n1": "urn:y"} or path.namespaces == {"n1": "urn:x", "n0": "urn:y"}
    tree = etree.fromstring(b"<a xmlns='urn:x' xmlns:y='urn:y' y:b='1'><c>2</c></a>").getroottree()
    assert selected(tree, path) == ["2"]

"""match() against its definition, and against lxml and Saxon."""

import random

import pytest
from hypothesis import assume, given, settings

from scenarios.auction_documents import auction_document
from scenarios.subscriptions import Shape, unique_patterns
from tests.oracles import embeddings
from tests.oracles.comparison import differences, plain_rows
from tests.oracles.documents import canonical_subtree, canonical_xml, numbered
from tests.oracles.xpath import Saxon, lxml_agrees, lxml_numbers, saxon_agrees
from tests.random_cases import random_case
from tests.strategies import (
    PLAIN_VALUES,
    cases,
    single_return_cases,
)
from xmlmatch import Document, NodeId, Pattern, Return, match

SHAPE = Shape(
    sizes=(1, 2, 3, 3, 2, 1),
    descendant=0.5,
    branch=0.5,
    attribute=0.3,
    any_label=0.3,
    predicates=(2, 2, 1),
    extra_return=0.4,
)


@settings(max_examples=400)
@given(cases())
def test_match_gives_the_node_sets_and_rows_of_all_embeddings(case):
    text, drawn = case
    assert differences(drawn.pattern, Document.parse(text.encode()), numbered(text)) == []


def test_seeded_cases_give_the_node_sets_and_rows_of_all_embeddings():
    several_rows = 0
    for seed in range(2000):
        text, drawn = random_case(random.Random(seed))
        nodes, document = numbered(text), Document.parse(text.encode())
        assert differences(drawn.pattern, document, nodes) == [], (text, drawn.text)
        several_rows += len(embeddings.rows(drawn.raw, nodes)) > 1
    assert several_rows > 500


@settings(max_examples=200)
@given(cases())
def test_rows_are_those_of_the_text_as_written_whatever_its_canonical_form(case):
    text, drawn = case
    found = plain_rows(match(drawn.pattern, Document.parse(text.encode())))
    assert found == embeddings.rows(drawn.raw, numbered(text))


@settings(max_examples=150)
@given(cases())
def test_columns_hold_value_content_and_id_of_their_nodes_in_the_order_of_the_text(case):
    text, drawn = case
    nodes = numbered(text)
    order = list(dict.fromkeys(column.node for column in drawn.raw.selection))
    expected = [
        tuple(_value(nodes, row[order.index(node)], what) for node, what in drawn.raw.selection)
        for row in embeddings.rows(drawn.raw, nodes)
    ]
    whats = [what for _, what in drawn.raw.selection]
    found = [
        tuple(canonical_xml(v) if what is Return.CONT else v for v, what in zip(row, whats, strict=True))
        for row in match(drawn.pattern, Document.parse(text.encode())).rows()
    ]
    assert found == expected


def _value(nodes, pre, what):
    node = nodes[pre]
    if what is Return.VAL:
        return node.value
    if what is Return.ID:
        return NodeId(pre, node.size, node.level)
    return canonical_subtree(node.holder)


@settings(max_examples=250)
@given(single_return_cases(PLAIN_VALUES))
def test_one_returning_node_is_what_lxml_selects(case):
    text, pattern = case
    nodes = numbered(text)
    assume(all(lxml_agrees(node.value) for node in nodes))
    found = [pre for (pre,) in plain_rows(match(pattern, Document.parse(text.encode())))]
    assert found == lxml_numbers(pattern, nodes)


@pytest.fixture(scope="module")
def saxon():
    return Saxon()


@settings(max_examples=200)
@given(case=cases(PLAIN_VALUES))
def test_several_returning_nodes_are_what_saxon_enumerates(saxon, case):
    text, pattern = case[0], case[1].pattern
    nodes = numbered(text)
    assume(all(saxon_agrees(node.value) for node in nodes))
    found = plain_rows(match(pattern, Document.parse(text.encode())))
    assert found == saxon.rows(pattern, text, nodes)


DEVIATIONS = {
    # value: what comparing it with 40 and 4 gives here (lxml takes 4e for 4, Saxon +40 for 40 and INF)
    "+40": ["!=40", "!=4"],
    "INF": ["!=40", "!=4"],
    "-INF": ["!=40", "!=4"],
    "4e": ["!=40", "!=4"],
    "4E-": ["!=40", "!=4"],
    "40.00000000000000000001": ["=40", "<=40", ">=40", "!=4", ">4", ">=4"],
    "3.9999999999999999999999": ["!=40", "<40", "<=40", "=4", "<=4", ">=4"],
    "9007199254740993": ["!=40", ">40", ">=40", "!=4", ">4", ">=4"],
}


@pytest.mark.parametrize("value", DEVIATIONS)
def test_values_on_which_xpath_engines_differ_compare_by_our_grammar(value):
    document = Document.parse(f"<a>{value}</a>".encode())
    comparisons = [f"{op}{c}" for c in ("40", "4") for op in ("=", "!=", "<", "<=", ">", ">=")]
    held = [c for c in comparisons if match(Pattern.parse(f"//a[.{c}]"), document)]
    assert held == DEVIATIONS[value]


def test_long_numerals_are_rounded_to_the_nearest_double_with_ties_to_even():
    document = Document.parse(b"<r><a>9007199254740993</a><a>9007199254740993.0000001</a></r>")
    assert match(Pattern.parse("//a[.=9007199254740992]{id}"), document).count() == 1
    assert match(Pattern.parse("//a[.=9007199254740994]{id}"), document).count() == 1


@pytest.mark.parametrize("seed", range(3))
def test_auction_patterns_select_what_lxml_selects_in_auction_documents(seed):
    data = auction_document(seed, size_bytes=20_000)
    document, nodes = Document.parse(data), numbered(data)
    matched = 0
    for pattern in unique_patterns(random.Random(seed), SHAPE, 150):
        if len(pattern.returning) == 1:
            found = [pre for (pre,) in plain_rows(match(pattern, document))]
            assert found == lxml_numbers(pattern, nodes), pattern.text
            matched += bool(found)
    assert matched > 20


def test_auction_patterns_give_the_rows_that_saxon_enumerates(saxon):
    data = auction_document(7, size_bytes=8_000)
    document, nodes = Document.parse(data), numbered(data)
    matched = 0
    for pattern in unique_patterns(random.Random(7), SHAPE, 80):
        found = plain_rows(match(pattern, document))
        assert found == saxon.rows(pattern, data.decode(), nodes), pattern.text
        matched += bool(found)
    assert matched > 20


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/a", [0]),
        ("/b", []),
        ("//a", [0, 4]),
        ("//a//a", [4]),
        ("//*", [0, 2, 4]),
        ("//@k", [1, 3, 5]),
        ("/a/@k", [1]),
        ("/a//@k", [1, 3, 5]),
        ("//a//@k", [1, 3, 5]),
        ("//b/@k", [3]),
        ("//b//@k", [3, 5]),
        ("//*[@k='1']", [0, 4]),
        ("/@k", []),
    ],
)
def test_axes_count_attributes_as_children_of_their_element(text, expected):
    document = Document.parse(b"<a k='1'><b k='2'><a k='1'/></b></a>")
    assert [pre for (pre,) in plain_rows(match(Pattern.parse(text), document))] == expected


def test_two_predicates_on_one_node_differ_from_two_branches():
    document = Document.parse(b"<r><a><p>30</p><p>60</p></a><a><p>45</p></a></r>")
    branches = match(Pattern.parse("//a{id}[p>=40][p<=50]"), document)
    one_node = match(Pattern.parse("//a{id}[p[.>=40][.<=50]]"), document)
    assert plain_rows(branches) == [(1,), (4,)]
    assert plain_rows(one_node) == [(4,)]


def test_rows_are_distinct_by_node_and_not_by_value():
    document = Document.parse(b"<r><a><b>1</b></a><a><b>1</b></a></r>")
    assert list(match(Pattern.parse("//b{val}"), document).rows()) == [("1",), ("1",)]


def test_equal_branches_that_return_give_every_pair():
    document = Document.parse(b"<a><b>1</b><b>2</b></a>")
    rows = list(match(Pattern.parse("//a[b{val}][b{val}]"), document).rows())
    assert rows == [("1", "1"), ("1", "2"), ("2", "1"), ("2", "2")]

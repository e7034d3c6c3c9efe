"""The canonical form of patterns: text, equality, columns, contradictions."""

import random

import pytest
from hypothesis import given, settings

from tests.random_cases import random_case
from tests.strategies import NAMESPACES, drawn_patterns
from xmlmatch import Axis, Operator, Pattern, PatternNode, Predicate, Return


@settings(max_examples=400)
@given(drawn_patterns(max_nodes=7))
def test_the_canonical_text_parses_back_to_an_equal_pattern(drawn):
    pattern = drawn.pattern
    again = Pattern.parse(str(pattern))
    assert again == pattern
    assert str(again) == str(pattern)
    assert hash(again) == hash(pattern)


def shape(pattern, i):
    """Describe a sub-pattern as nested sorted tuples: what canonical forms must have in common."""
    node = pattern.nodes[i]
    branches = [shape(pattern, k) for k, child in enumerate(pattern.nodes) if child.parent == i]
    silent = tuple(sorted({b for b in branches if not returns_something(b)}))
    loud = tuple(sorted(b for b in branches if returns_something(b)))
    predicates, returns = sorted(set(map(str, node.predicates))), sorted(r.value for r in node.returns)
    return node.label, int(node.axis), tuple(predicates), tuple(returns), silent, loud


def returns_something(branch):
    return bool(branch[3]) or bool(branch[5])


@settings(max_examples=400)
@given(drawn_patterns(max_nodes=7))
def test_the_canonical_form_keeps_the_tree_that_was_written(drawn):
    pattern = drawn.pattern
    assert shape(pattern, 0) == shape(drawn.raw, 0)
    assert all(node.parent < i for i, node in enumerate(pattern.nodes))


@settings(max_examples=200)
@given(drawn_patterns(max_nodes=7))
def test_columns_stand_in_the_order_of_the_text(drawn):
    written = [(drawn.raw.nodes[node].label, what) for node, what in drawn.raw.selection]
    assert [(drawn.pattern.nodes[node].label, what) for node, what in drawn.pattern.selection] == written


def test_seeded_patterns_read_back_whatever_the_order_of_their_branches():
    for seed in range(1500):
        _, drawn = random_case(random.Random(seed), nodes=8)
        pattern = drawn.pattern
        assert Pattern.parse(pattern.text) == pattern, drawn.text
        assert shape(pattern, 0) == shape(drawn.raw, 0), drawn.text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("//a", "//a{cont}"),
        ("/a/b", "/a/b{cont}"),
        ("//a/@x", "//a/@x{val}"),
        (" / a // b [ c ] { val , id } ", "/a//b{id,val}[c]"),
        ("//a[c][b]", "//a{cont}[b][c]"),
        ("//a[b][b]", "//a{cont}[b]"),
        ("//a[b][.//b]", "//a{cont}[b][.//b]"),
        ("//a[b{val}][b]", "//a[b]/b{val}"),
        ("//a[b{val}][b{val}]", "//a[b{val}]/b{val}"),
        ("//a[b/c][b/c]", "//a{cont}[b/c]"),
        ("//a[b[c][d]][b[d][c]]", "//a{cont}[b[c]/d]"),
        ("//a[b and c]", "//a{cont}[b][c]"),
        ("//a[./b]", "//a{cont}[b]"),
        ("//a[. = 'x' and . != 5]", "//a{cont}[.!=5][.='x']"),
        ("//a[.=5][.=5.0][.=05]", "//a{cont}[.=5]"),
        ("//a[b='v']", "//a{cont}[b='v']"),
        ("//a[b/c='v'][@x>=40]", "//a{cont}[@x>=40][b/c='v']"),
        ('//a[b="it\'s"]', '//a{cont}[b="it\'s"]'),
        ("//a[b='say \"hi\"']", "//a{cont}[b='say \"hi\"']"),
        ("//a[b='']", "//a{cont}[b='']"),
        ("//a[b='[c]/{val}']", "//a{cont}[b='[c]/{val}']"),
        ("//a[b=-0]", "//a{cont}[b=0]"),
        ("//a[b=.5][c=5.]", "//a{cont}[b=0.5][c=5]"),
        ("//a[b=1e3][c=4E-1]", "//a{cont}[b=1000][c=0.4]"),
        ("//a[b<1e20]", "//a{cont}[b<1e+20]"),
        ("//*[*]/*", "//*[*]/*{cont}"),
        ("//@x", "//@x{val}"),
        ("//Q{urn:x}a/@Q{urn:x}b", "//Q{urn:x}a/@Q{urn:x}b{val}"),
        ("//Q{}a", "//a{cont}"),
        ("//Q{val}", "//Q{val}"),
        ("//Q{val}x", "//Q{val}x{cont}"),
        ("//and[and and and]", "//and{cont}[and]"),
        ("//val{val}[id{id}]", "//val{val}/id{id}"),
        ("//a.b-c_d", "//a.b-c_d{cont}"),
        ("//a[b='x'and c]", "//a{cont}[b='x'][c]"),
        ("//a[b=1and c]", "//a{cont}[b=1][c]"),
    ],
)
def test_patterns_have_one_canonical_text(text, canonical):
    pattern = Pattern.parse(text)
    assert str(pattern) == canonical
    assert Pattern.parse(str(pattern)) == pattern


def test_prefixes_are_replaced_by_their_namespaces():
    pattern = Pattern.parse("//p:a[@q:x]/r:b", NAMESPACES)
    assert str(pattern) == "//Q{urn:x}a[@Q{urn:x}x]/Q{urn:y}b{cont}"
    assert pattern == Pattern.parse("//q:a[@p:x]/r:b", NAMESPACES)


def test_the_xml_prefix_is_known():
    label = Pattern.parse("//a/@xml:lang").nodes[1].label
    assert label == "@{http://www.w3.org/XML/1998/namespace}lang"


def test_the_order_of_columns_plays_no_part_in_equality():
    first, second = Pattern.parse("//a[b{val}][c{id}]"), Pattern.parse("//a[c{id}][b{val}]")
    assert first == second
    assert first.columns == ("b.val", "c.id")
    assert second.columns == ("c.id", "b.val")


def test_repeated_columns_are_numbered():
    assert Pattern.parse("//a[b{val}][b{val,id}]//b{val}").columns == ("b.val", "b.val#2", "b.id", "b.val#3")


def test_columns_of_namespaced_labels_show_the_local_name():
    assert Pattern.parse("//p:a/@p:x", NAMESPACES).columns == ("@x.val",)


def test_braces_behind_the_brackets_come_later_among_the_columns():
    assert Pattern.parse("//a[b{val}]{id}").columns == ("b.val", "a.id")
    assert Pattern.parse("//a{id}[b{val}]").columns == ("a.id", "b.val")


def test_returning_lists_each_node_once_in_the_order_of_the_text():
    pattern = Pattern.parse("//a[c{val,id}]/b{cont}")
    assert [pattern.nodes[i].label for i in pattern.returning] == ["c", "b"]


def test_nodes_hold_what_the_text_says():
    pattern = Pattern.parse("/a[@x='1']//b{val}")
    assert pattern.nodes == (
        PatternNode("a", Axis.CHILD, -1),
        PatternNode("@x", Axis.CHILD, 0, (Predicate(Operator.EQ, "1"),)),
        PatternNode("b", Axis.DESCENDANT, 0, (), (Return.VAL,)),
    )
    assert [node.is_attribute for node in pattern.nodes] == [False, True, False]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("//a[.='5']", "//a[.=5]"),
        ("//a/b", "//a//b"),
        ("//a", "/a"),
        ("//a{val}", "//a{cont}"),
        ("//a[b{val}][b{val}]", "//a[b{val}]"),
        ("//a[.='x']", "//a[.='X']"),
        ("//a/b/c", "//a[b]/c"),
        ("//Q{u}a", "//a"),
        ("//a[b[.='1'][.!='2']]{id}", "//a[b='1'][b!='2']{id}"),
        ("//a[b='c][d']", "//a[b='c'][d]"),
    ],
)
def test_different_patterns_have_different_texts(left, right):
    assert Pattern.parse(left) != Pattern.parse(right)
    assert str(Pattern.parse(left)) != str(Pattern.parse(right))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("//a[.='1'][.='2']", "a satisfies"),
        ("//a/b[.>5][.<=5]", "b satisfies"),
        ("//a[.='x'][.=5]", "satisfies"),
        ("//a[@x[.<1][.>2]]", "@x satisfies"),
        ("//a[.=5][.!=5]", "satisfies"),
        ("/@x", "root"),
        ("//@x/b", "attribute"),
        ("//@x//@y", "attribute"),
        ("//a[@x/b]", "attribute"),
        ("//a[@x//b]", "attribute"),
    ],
)
def test_a_pattern_that_never_matches_says_why(text, words):
    contradiction = Pattern.parse(text).contradiction
    assert contradiction is not None
    assert words in contradiction


@pytest.mark.parametrize(
    "text",
    [
        "//a",
        "//@x",
        "//a[.!='1'][.!='2'][.!=3]",
        "//a[.>5][.<5.0000001]",
        "//a[.>-1.7e308][.<1.7e308]",
        "//a[.>1.7976931348623157e308]",
        "//a[.<-1.7976931348623157e308]",
        "//a[b='1'][b='2']",
        "//a[.=5][.!='5']",
        "//a[.='05'][.=5]",
        "//a[.!=5][.='x']",
    ],
)
def test_a_pattern_that_can_match_has_no_contradiction(text):
    assert Pattern.parse(text).contradiction is None


def test_many_branches_are_merged_and_sorted_quickly():
    text = "//a" + "".join(f"[b{i % 500}='{i % 700}']" for i in range(4000))
    pattern = Pattern.parse(text)
    assert len(pattern.nodes) == 1 + 3500
    assert Pattern.parse(str(pattern)) == pattern


def test_a_deep_branch_reads_back():
    text = "//r[a[x]" + "/a[x]" * 90 + "]"
    pattern = Pattern.parse(text)
    assert Pattern.parse(str(pattern)) == pattern


def test_what_is_asked_of_one_attribute_must_hold_of_one_value():
    assert Pattern.parse("//a[@x='1'][@x='2']").contradiction == "no value of @x satisfies .='1' and .='2'"
    assert Pattern.parse("//a[@x='1'][@x>=1]").contradiction is None
    assert Pattern.parse("//a[.//@x='1'][.//@x='2']").contradiction is None
    assert Pattern.parse("//a[b='1'][b='2']").contradiction is None

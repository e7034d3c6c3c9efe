"""``in``, prefixes, ``or`` and typed values: what they mean, how they are written, what is refused."""

import pytest

from rewriting.filters import (
    Condition,
    Disjunction,
    Filter,
    FilterError,
    OneOf,
    Operator,
    Predicate,
    message_document,
    number_of,
    text_of,
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message", "matches"),
    [
        ("a in ('x', 5)", {"a": "05"}, True),
        ("a in ('x', 5)", {"a": 5}, True),
        ("a in ('x', 5)", {"a": "y"}, False),
        ("a in ('x')", {"b": "x"}, False),
        ("a prefix 'Row'", {"a": "Rowing"}, True),
        ("a prefix 'Row'", {"a": "Ro"}, False),
        ("a prefix ''", {"a": ""}, True),
        ("a prefix '1'", {"a": 12.5}, True),
        ("a != 5", {"a": float("nan")}, True),
        ("a >= 0", {"a": float("nan")}, False),
        ("a = 9007199254740993", {"a": 2**53}, True),
        ("a > 1e308", {"a": 10**400}, True),
        ("a = '18446744073709551616'", {"a": 2**64}, True),
    ],
)
def test_a_condition_holds_where_it_should(text, message, matches):
    assert Filter.parse(text).matches(message) is matches
    assert Disjunction.parse(f"{text} or zz = 1").matches(message) is matches


def test_equal_disjunctions_have_one_text_that_reads_back():
    first = Disjunction.parse("b = 1 or a in (2, 'x', 1, 2) and c prefix \"it's\"")
    second = Disjunction.parse("c prefix \"it's\" and a in (1, 2, 'x') or b=1.0 or b = 1")
    assert first == second == Disjunction.parse(str(first))
    assert len(first.filters) == 2


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("a in 5", 6, r"\("),
        ("a in ()", 7, "quoted string or a number"),
        ("a in (1 2)", 9, r"',' or '\)'"),
        ("a prefix 5", 10, "quoted string"),
        ("a = 1 or", 9, "attribute name"),
        ("a = 1 nor b = 2", 7, "'or'"),
        ("a = 1e999", 5, "finite"),
        (f"a in ({','.join(map(str, range(1001)))})", 3897, "1,000"),
    ],
)
def test_what_is_no_disjunction_is_refused_with_the_column(text, column, expected):
    with pytest.raises(FilterError, match=expected) as caught:
        Disjunction.parse(text)
    assert caught.value.column == column


def test_a_conjunction_takes_no_or():
    with pytest.raises(FilterError, match="'and'"):
        Filter.parse("a = 1 or b = 2")


def test_constants_are_doubles_and_finite():
    assert Condition("a", Predicate(Operator.EQ, 2**53 + 1)) == Condition("a", Predicate(Operator.EQ, 2.0**53))
    assert Condition("a", OneOf((5,))).predicate == Predicate(Operator.EQ, 5.0)
    with pytest.raises(FilterError, match="finite"):
        OneOf((10**400,))


@pytest.mark.parametrize(
    ("text", "contradiction"),
    [
        ("a in ('x', 'y') and a != 'x'", None),
        ("a in ('x', 'y') and a != 'x' and a != 'y'", "a"),
        ("a in ('x', 'y') and a in ('z', 5)", "a"),
        ("a in (1, 2) and a > 1.5", None),
        ("a in (1, 2) and a > 2", "a"),
        ("a prefix 'x' and a = 'xy'", None),
        ("a prefix 'x' and a = 'y'", "a"),
        ("a prefix 'x' and a prefix 'xy'", None),
        ("a prefix 'x' and a prefix 'y'", "a"),
        ("a prefix 'x' and a in ('y', 'z')", "a"),
        ("a prefix '1' and a > 5", None),
        ("a prefix '1' and a in (10, 'x')", None),
    ],
)
def test_contradictions_among_lists_and_beginnings_are_found(text, contradiction):
    assert Filter.parse(text).contradiction == contradiction


def test_lists_and_beginnings_have_no_pattern():
    for text in ("a in (1, 2)", "a prefix 'x'"):
        with pytest.raises(FilterError, match="patterns know only"):
            Filter.parse(text).pattern()


def test_numbers_travel_in_documents_as_their_numerals():
    for value in (5, 2.5, 2**64, -0.0, 1e300, float("inf")):
        assert number_of(text_of(value)) == number_of(value)
    document = message_document({"price": 12.5, "id": 2**64})
    assert [document.val(node) for node in range(1, len(document))] == ["18446744073709551616", "12.5"]

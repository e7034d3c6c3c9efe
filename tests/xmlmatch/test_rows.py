"""Rows: lazily made, limited, counted."""

import itertools
import random

import pytest

from tests.oracles import embeddings
from tests.oracles.comparison import in_ids, plain_rows
from tests.oracles.documents import numbered
from tests.random_cases import random_case
from xmlmatch import Document, NodeSets, Pattern, RowLimitError, match, nodesets
from xmlmatch.warm import warm


@pytest.fixture(scope="module")
def explosive():
    """Six independent branches over 300 nodes: more rows than anyone can read."""
    warm()  # compile before anything is timed
    document = Document.parse(b"<r>" + b"<a>1</a>" * 300 + b"</r>")
    return match(Pattern.parse("/r" + "[a{val}]" * 6), document)


@pytest.mark.timeout(30)
def test_the_first_rows_of_an_explosive_pattern_come_without_the_others(explosive):
    assert list(itertools.islice(explosive.rows(), 3)) == [("1",) * 6] * 3


def test_the_sets_of_an_explosive_pattern_are_the_sum_of_its_branches(explosive):
    assert sum(len(s) for s in explosive.sets) == 1 + 6 * 300


@pytest.mark.parametrize("limit", [0, 1, 63, 64, 65, 1000, 8255, 8256, 8257, 20_000])
def test_more_rows_than_the_limit_are_an_error_after_exactly_that_many(explosive, limit):
    rows = explosive.rows(limit=limit)
    assert sum(1 for _ in itertools.islice(rows, limit)) == limit
    with pytest.raises(RowLimitError, match=f"{limit:,} rows") as caught:
        next(rows)
    assert caught.value.limit == limit


@pytest.mark.parametrize("limit", [0, 1, 63, 64, 8256, 20_000])
def test_counting_beyond_the_limit_is_an_error(explosive, limit):
    with pytest.raises(RowLimitError):
        explosive.count(limit=limit)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 91, 92])
def test_exactly_as_many_rows_as_the_limit_are_no_error(n):
    sets = match(Pattern.parse("/r[a{id}]/a{id}"), Document.parse(b"<r>" + b"<a/>" * n + b"</r>"))
    assert len(list(sets.rows(limit=n * n))) == sets.count(limit=n * n) == n * n
    with pytest.raises(RowLimitError):
        list(sets.rows(limit=n * n - 1))
    with pytest.raises(RowLimitError):
        sets.count(limit=n * n - 1)


def test_one_column_is_limited_too():
    sets = match(Pattern.parse("//a{val}"), Document.parse(b"<r>" + b"<a>1</a>" * 10 + b"</r>"))
    assert sets.count(limit=10) == len(list(sets.rows(limit=10))) == 10
    with pytest.raises(RowLimitError):
        list(sets.rows(limit=9))
    with pytest.raises(RowLimitError):
        sets.count(limit=9)


def test_no_match_has_no_rows():
    sets = match(Pattern.parse("//a[b{val}]/c{val}"), Document.parse(b"<a><b/></a>"))
    assert not sets
    assert list(sets.rows(limit=0)) == []
    assert sets.count(limit=0) == 0


def test_the_count_is_the_number_of_rows():
    for seed in range(400):
        text, drawn = random_case(random.Random(seed))
        sets = match(drawn.pattern, Document.parse(text.encode()))
        assert sets.count() == len(list(sets.rows())) == len(embeddings.rows(drawn.raw, numbered(text)))


def test_rows_that_fill_several_blocks_are_all_distinct_and_sorted():
    body = b"<g>" + b"<a/>" * 40 + b"<b><a/></b>" * 9 + b"</g>"
    sets = match(Pattern.parse("//g{id}[.//a{id}]//a{id}"), Document.parse(b"<r>" + body * 8 + b"</r>"))
    rows = plain_rows(sets)
    assert len(rows) == 8 * 49 * 49
    assert all(earlier < later for earlier, later in itertools.pairwise(rows))


@pytest.mark.parametrize(("first", "block"), [(1, 1), (2, 3), (1, 5)])
def test_blocks_of_any_size_give_the_same_rows(monkeypatch, first, block):
    from xmlmatch import rows

    monkeypatch.setattr(rows, "_FIRST_BLOCK", first)
    monkeypatch.setattr(rows, "_BLOCK", block)
    for seed in range(150):
        text, drawn = random_case(random.Random(seed))
        found = plain_rows(match(drawn.pattern, Document.parse(text.encode())))
        assert found == embeddings.rows(drawn.raw, numbered(text))


def test_rows_may_be_read_twice_and_side_by_side():
    sets = match(Pattern.parse("/r[a{val}]/a{val}"), Document.parse(b"<r><a>1</a><a>2</a></r>"))
    first, second = sets.rows(), sets.rows()
    assert list(zip(first, second, strict=True)) == [(row, row) for row in sets.rows()]


def test_reading_rows_leaves_the_sets_alone():
    sets = match(Pattern.parse("/r[a{val}]/a{val}"), Document.parse(b"<r><a>1</a><a>2</a></r>"))
    before = [s.tolist() for s in sets.sets]
    list(sets.rows())
    assert [s.tolist() for s in sets.sets] == before


def test_a_column_may_be_asked_for_in_several_forms():
    sets = match(Pattern.parse("//a{val,cont,id}"), Document.parse(b"<r><a>x<b/></a></r>"))
    assert list(sets.rows()) == [("x", "<a>x<b/></a>", sets.document.node_id(1))]


def test_node_sets_with_other_columns_give_other_rows():
    sets = match(Pattern.parse("//a{val}"), Document.parse(b"<r><a>x</a></r>"))
    assert isinstance(in_ids(sets), NodeSets)
    assert list(in_ids(sets).rows()) == [(sets.document.node_id(1),)]


def test_the_default_limit_is_a_million_rows():
    assert nodesets.DEFAULT_ROW_LIMIT == 1_000_000

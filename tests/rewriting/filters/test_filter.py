"""Key-value subscriptions: what they mean, what is refused, and that covers of theirs are exact."""

import random

import pytest

from rewriting import embeds, rewritings
from rewriting.filters import Filter, FilterError, MessageError, message_document
from xmlmatch import match

ATTRIBUTES = ("topic", "location", "price", "stock")
VALUES = ("sport", "England", "", "1", "2", "03", "x'y")


def random_message(rng):
    return {name: rng.choice(VALUES) for name in ATTRIBUTES if rng.random() < 0.7}


def random_filter(rng):
    conditions = []
    for name in rng.sample(ATTRIBUTES, rng.randint(1, 3)):
        if rng.random() < 0.5:
            value = rng.choice(VALUES)
            conditions.append(f'{name} {rng.choice(("=", "!="))} "{value}"')
        else:
            conditions.append(f"{name} {rng.choice(('=', '!=', '<', '<=', '>', '>='))} {rng.randint(0, 3)}")
    select = [name for name in ATTRIBUTES if rng.random() < 0.15]
    return Filter.parse(" and ".join(conditions), select=select, whole=rng.random() < 0.4)


def test_a_filter_and_its_pattern_match_the_same_messages():
    rng = random.Random(1)
    matched = 0
    for _ in range(600):
        wanted, message = random_filter(rng), random_message(rng)
        found = match(wanted.pattern(), message_document(message))
        assert bool(found) == wanted.matches(message), (str(wanted), message)
        matched += bool(found)
    assert 50 < matched < 500


def test_rewritten_filters_give_what_they_would_match():
    rng = random.Random(2)
    done = several = 0
    for _ in range(250):
        query = random_filter(rng)
        views = [random_filter(rng).pattern() for _ in range(40)]
        for rewriting in rewritings(query.pattern(), views, 3):
            several += len(rewriting.views) > 1
            for _ in range(4):
                document = message_document(random_message(rng))
                found = rewriting.execute({view: match(view, document) for view in rewriting.views})
                assert list(found.rows()) == list(match(query.pattern(), document).rows())
                done += 1
    assert done > 300
    assert several > 10


def test_a_wider_filter_embeds_in_a_narrower_one():
    wide, narrow = Filter.parse("price < 50"), Filter.parse("price < 20 and topic = 'sport'")
    assert embeds(wide.pattern(), narrow.pattern())
    assert not embeds(narrow.pattern(), wide.pattern())


def test_two_filters_feed_their_conjunction():
    both = Filter.parse("topic = 'sport' and location = 'England'")
    parts = [Filter.parse("topic = 'sport'").pattern(), Filter.parse("location = 'England'").pattern()]
    (rewriting,) = rewritings(both.pattern(), parts)
    assert set(rewriting.views) == set(parts)


def test_a_filter_that_selects_an_attribute_feeds_one_that_asks_about_it():
    wide = Filter.parse("price < 50", select=["topic"])
    narrow = Filter.parse("price < 20 and topic = 'sport'")
    (rewriting,) = rewritings(narrow.pattern(), [wide.pattern()])
    assert rewriting.views == (wide.pattern(),)


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("topic", 6, "= != <"),
        ("topic = ", 9, "quoted string or a number"),
        ("topic = 'a' or x = 1", 13, "and"),
        ("= 1", 1, "attribute name"),
        ("topic < 'a'", 9, "="),
        ("topic = 'a' and", 16, "attribute name"),
        ("", 1, "condition"),
        (" and ".join(f"a{i} = {i}" for i in range(70)), 1, "conditions"),
        ("xmlns = 'a'", 1, "xmlns"),
    ],
)
def test_what_is_no_filter_is_refused_with_the_column(text, column, words):
    with pytest.raises(FilterError, match=words) as caught:
        Filter.parse(text)
    assert caught.value.column == column


def test_a_contradiction_names_the_attribute():
    assert Filter.parse("a = 1 and a = 2 and b = 1").contradiction == "a"
    assert Filter.parse("a > 1 and a < 3").contradiction is None


def test_equal_filters_have_one_text():
    assert Filter.parse("b=1 and a='x' and b = 1") == Filter.parse("a = 'x' and b=1")
    assert Filter.parse("b=1", select=["x", "a", "x"]).select == ("a", "x")
    with pytest.raises(TypeError, match="list"):
        Filter.parse("b=1", select="topic")
    again = Filter.parse(str(Filter.parse("b>=1.50 and a!='x'")))
    assert str(again) == "a != 'x' and b >= 1.5"


@pytest.mark.parametrize(
    "message",
    [{"a b": "1"}, {"xmlns": "urn:x"}, {"a": "\x00"}, {f"a{i}": "1" for i in range(300)}, {"a": "\ud800"}],
)
def test_what_cannot_be_a_message_is_refused(message):
    with pytest.raises(MessageError):
        message_document(message)

"""Marks say of a document which patterns match it, and no more: whoever reads them gets what matching gives."""

import logging
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overlay.feeds.items import Item, Kind
from overlay.wire.frames import MOST_MARKS
from peer.hosting import relay
from peer.hosting.marks import MOST_NUMBERS, Marked, Marking, Numbers
from peer.hosting.relay import Rematching
from peer.hosting.results import DOCUMENTS, from_document, whole_link
from scenarios.small_documents import PATTERNS, small_document
from tests.strategies import documents, patterns
from xmlmatch import Document, Matcher, Pattern, match

NAME, OTHER = b"numbers1", b"numbers2"
BODY = b"<r><a>1</a></r>"
HOUR_S = 3600.0


def numbered(texts, marking=None):
    """Have patterns numbered; return the marking, and the numbers."""
    marking = marking or Marking(NAME)
    return marking, marking.number(texts, 0.0)[1]


def matching(texts, body):
    """Match one pattern after another."""
    document = Document.parse(body)
    return [text for text in texts if any(len(one) for one in match(Pattern.parse(text), document).sets)]


@given(documents(), st.lists(patterns().map(str), min_size=1, max_size=12, unique=True), st.data())
def test_marks_say_which_patterns_match(body, texts, data):
    texts = list(dict.fromkeys(Pattern.parse(text).text for text in texts))
    marking, numbers = numbered(texts)
    marks = marking.marks(Document.parse(body))
    some = data.draw(st.lists(st.sampled_from(texts), unique=True))
    assert Marked(NAME, {text: numbers[text] for text in some}).texts(marks) == matching(some, body)


@pytest.mark.parametrize("count", [1, 7, 8, 9, 300])
def test_every_number_has_a_bit_of_its_own(count):
    texts = [f"//e{i}{{val}}" for i in range(count)]
    marking, numbers = numbered(texts)
    for i in (0, count // 2, count - 1):
        marks = marking.marks(Document.parse(f"<e{i}/>".encode()))
        assert Marked(NAME, numbers).texts(marks) == [texts[i]]


def test_a_pattern_that_was_numbered_later_is_not_judged():
    marking, first = numbered(["//a{val}", "//b{val}"])
    marks = marking.marks(Document.parse(BODY))
    later = numbered(["//r{val}"], marking)[1]
    assert Marked(NAME, first).texts(marks) == ["//a{val}"]
    assert Marked(NAME, first | later).texts(marks) is None
    assert Marked(NAME, first | later).texts(marking.marks(Document.parse(BODY))) == ["//a{val}", "//r{val}"]


@pytest.mark.parametrize("wrong", [
    b"", NAME, OTHER + b"\0\0\0\x02\x03", NAME + b"\0\0\0\x02", NAME + b"\0\0\0\x02\x03\x03",
    NAME + b"\0\0\0\x01\x03",
])  # fmt: skip
def test_marks_that_cannot_be_read_say_nothing(wrong):
    assert Marked(NAME, {"//a{val}": 0, "//b{val}": 1}).texts(NAME + b"\0\0\0\x02\x03") == ["//a{val}", "//b{val}"]
    assert Marked(NAME, {"//a{val}": 0, "//b{val}": 1}).texts(wrong) is None


def test_a_pattern_keeps_its_number_and_what_is_no_pattern_gets_none():
    marking, first = numbered(["//a{val}", "//b{", "// c", "//b{val}"])
    assert first == {"//a{val}": 0, "//b{val}": 1}
    assert marking.number(["//c{val}", "//b{val}"], 9 * HOUR_S) == (NAME, {"//c{val}": 2, "//b{val}": 1})


def test_there_are_so_many_numbers_and_marks_of_all_of_them_can_be_sent():
    marking = Marking(NAME, most=3)
    assert marking.number(["//a{val}", "//b{val}", "//c{val}", "//d{val}"], 1.0)[1] == {
        "//a{val}": 0,
        "//b{val}": 1,
        "//c{val}": 2,
    }
    assert marking.number(["//d{val}", "//a{val}"], HOUR_S - 1)[1] == {"//a{val}": 0}
    assert 8 + 4 + MOST_NUMBERS // 8 == MOST_MARKS


def test_a_full_numbering_is_begun_anew_after_an_hour_under_another_name():
    marking, before = numbered(["//a{val}", "//b{val}", "//r{val}"], Marking(NAME, most=3))
    name, after = marking.number(["//b{val}", "//d{val}"], HOUR_S)
    assert (name, after) == (
        OTHER,
        {"//d{val}": 0},
    )  # "//b{val}" had a number until the last moment: it asks again
    marks = marking.marks(Document.parse(b"<d/>"))
    assert Marked(NAME, before).texts(marks) is None
    assert Marked(OTHER, after).texts(marks) == ["//d{val}"]


def test_who_wants_what_decides_what_is_asked_for():
    numbers, marking = Numbers(), Marking(NAME)
    for text in ("//a{val}", "//b{val}"):
        numbers.want(text)
    assert numbers.missing() == ["//a{val}", "//b{val}"]
    numbers.told(*marking.number(["//a{val}", "//b{val}", "//r{val}"], 0.0))
    assert numbers.missing() == []
    marks = marking.marks(Document.parse(BODY))
    assert numbers.texts(marks) == ["//a{val}"]
    numbers.want("//r{val}")
    assert (numbers.texts(marks), numbers.missing()) == (None, ["//r{val}"])
    numbers.unwant("//r{val}")
    numbers.unwant("//b{val}")
    assert numbers.texts(marks) == ["//a{val}"]
    assert (numbers.texts(b""), numbers.missing()) == (None, [])
    other = Marking(OTHER)
    other.number(["//b{val}", "//a{val}"], 0.0)
    assert numbers.texts(other.marks(Document.parse(BODY))) is None
    assert numbers.missing() == ["//a{val}"]
    numbers.told(*other.number(["//a{val}"], 0.0))
    assert (numbers.texts(other.marks(Document.parse(BODY))), numbers.texts(marks)) == (["//a{val}"], None)


def relayed(number, body, marks):
    document = Document.parse(body)
    data = from_document(whole_link(DOCUMENTS), Matcher([DOCUMENTS]).match(document), 0, document)
    return Item(number, Kind.RESULTS, data, name=f"d{number}", marks=marks)


def test_a_relay_that_is_told_matches_one_document_in_64(monkeypatch):
    rng, marking = random.Random(3), Marking(NAME)
    told, alone, matched = Rematching(), Rematching(), []
    wanted = [Pattern.parse(text) for text in PATTERNS]
    for pattern in wanted:
        told.want(pattern)
        alone.want(pattern)
    told.numbers.told(*marking.number([one.text for one in wanted], 0.0))
    read = relay.document_of
    for number in range(1, 400):
        body = small_document(rng)
        item = relayed(number, body, marking.marks(Document.parse(body)))
        monkeypatch.setattr(relay, "document_of", lambda item: matched.append(item.number) or read(item))
        found = told.references(item, "r")
        monkeypatch.setattr(relay, "document_of", read)
        assert found == alone.references(item, "r")
    late = [number for number in matched if number > 100]
    assert late == [128, 192, 256, 320, 384]  # before, sizes were not known of all
    assert told.matched_bytes > 0


def test_marks_that_are_wrong_are_noticed_and_not_believed_again(caplog):
    marking, together = Marking(NAME), Rematching()
    for text in ("//a{val}", "//b{val}"):
        together.want(Pattern.parse(text))
    together.numbers.told(*marking.number(["//a{val}", "//b{val}"], 0.0))
    right = marking.marks(Document.parse(BODY))
    wrong = right[:-1] + b"\x03"
    assert set(together.references(relayed(1, b"<r><a/><b/></r>", wrong), "r")) == {"//a{val}", "//b{val}"}
    assert set(together.references(relayed(2, BODY, wrong), "r")) == {"//a{val}", "//b{val}"}  # believed, for once
    with caplog.at_level(logging.ERROR):
        assert set(together.references(relayed(64, BODY, wrong), "r")) == {"//a{val}"}
    assert [record.message for record in caplog.records] == ["marks are wrong"]
    assert set(together.references(relayed(65, BODY, wrong), "r")) == {"//a{val}"}

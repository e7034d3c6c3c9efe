"""The quick way from bytes to bytes decides nothing that the steps one by one would decide otherwise."""

import random

import pytest

from peer.hosting.results import encode_whole, whole_link
from rewriting import at_once, rewritings
from rewriting.columns import LIMITS, decode_untrusted, encode
from rewriting.errors import RewritingError
from tests.rewriting.cases import random_document, random_problem
from xmlmatch import Document, Pattern, match


def problems(seeds):
    """Yield rewritings with the whole results of their views, as bytes, on a document that some match."""
    for seed in seeds:
        data, query, views = random_problem(random.Random(seed))
        document = Document.parse(data)
        for rewriting in rewritings(query, views, 3):
            whole = [encode(whole_link(view).send(match(view, document))) for view in rewriting.views]
            yield rewriting, whole


def cut_by_steps(link, whole, data):
    columns = decode_untrusted(data)
    if columns:
        whole.check(columns)
    columns = link.cut(columns)
    return encode(columns) if columns else b""


def joined_by_steps(rewriting, inputs):
    found = rewriting.receive([decode_untrusted(data) for data in inputs])
    return encode_whole(found) if found else b""


def held_by_steps(link, data):
    columns = decode_untrusted(data)
    if columns:
        link.check(columns)
    return bool(columns)


def outcome(work, *arguments):
    """Return what comes of work, or None where it is refused."""
    try:
        return work(*arguments)
    except (RewritingError, ValueError, IndexError, KeyError):
        return None


def test_it_cuts_looks_and_joins_as_the_steps_do():
    cuts = joins = matched = left = 0
    for rewriting, whole in problems(range(400)):
        sent = []
        for link, data in zip(rewriting.links, whole, strict=True):
            own = whole_link(link.view)
            sent.append(cut_by_steps(link, own, data))
            quickly = at_once.cut(link, own, data)
            assert quickly in (None, sent[-1])
            assert at_once.holds(own, data) in (None, held_by_steps(own, data))
            cuts, left = cuts + (quickly is not None), left + (quickly is None)
        if all(sent):
            wanted, quickly = joined_by_steps(rewriting, sent), at_once.join(rewriting, sent)
            assert quickly in (None, wanted)
            joins, left = joins + (quickly is not None), left + (quickly is None)
            matched += bool(quickly)
    assert min(cuts, joins, matched, left) > 50


def test_values_that_the_query_fixes_are_there():
    document = Document.parse(b"<r><a><b>x</b><c>1</c></a><a><b>y</b><c>2</c></a></r>")
    query, views = Pattern.parse("//a[b='x']/c{val}"), [Pattern.parse("//a[b='x']"), Pattern.parse("//c{val}")]
    rewriting = next(rewritings(query, views))
    sent = [encode(link.send(match(link.view, document))) for link in rewriting.links]
    assert at_once.join(rewriting, sent) == joined_by_steps(rewriting, sent)
    own = encode(whole_link(query).send(match(query, document)))
    assert at_once.join(rewriting, sent) == own


def damaged(rng, data):
    """Return bytes that are nearly those, or others of the same length."""
    data, way = bytearray(data), rng.random()
    if way < 0.5:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif way < 0.75:
        del data[rng.randrange(len(data)) :]
    else:
        data.insert(rng.randrange(len(data) + 1), rng.randrange(256))
    return bytes(data)


def test_what_is_malformed_is_left_to_the_steps():
    refused = taken = 0
    rng = random.Random(5)
    for rewriting, whole in problems(range(150)):
        sent = [
            cut_by_steps(link, whole_link(link.view), data)
            for link, data in zip(rewriting.links, whole, strict=True)
        ]
        for _ in range(20 if all(sent) else 0):
            hurt = list(sent)
            place = rng.randrange(len(hurt))
            hurt[place] = damaged(rng, hurt[place])
            wanted = outcome(joined_by_steps, rewriting, hurt)
            quickly = at_once.join(rewriting, hurt)
            assert quickly is None or quickly == wanted
            refused, taken = refused + (quickly is None), taken + (quickly is not None)
        link = whole_link(rewriting.links[0].view)
        hurt = damaged(rng, whole[0])
        wanted = outcome(held_by_steps, link, hurt)
        assert at_once.holds(link, hurt) in (None, wanted)
        wanted = outcome(cut_by_steps, rewriting.links[0], link, hurt)
        quickly = at_once.cut(rewriting.links[0], link, hurt)
        assert quickly is None or quickly == wanted
    assert min(refused, taken) > 50


def test_links_of_different_documents_are_left_to_the_steps():
    differ = 0
    rng = random.Random(6)
    for rewriting, whole in problems(range(500)):
        if len(rewriting.links) < 2:
            continue
        other = Document.parse(random_document(rng, 20))
        first = rewriting.links[0]
        sent = [encode(first.send(match(first.view, other)))]
        sent += [
            cut_by_steps(link, whole_link(link.view), data)
            for link, data in zip(rewriting.links[1:], whole[1:], strict=True)
        ]
        if all(sent):
            quickly = at_once.join(rewriting, sent)
            assert quickly is None or quickly == outcome(joined_by_steps, rewriting, sent)
            differ += outcome(joined_by_steps, rewriting, sent) is None
    assert differ > 10


def test_texts_that_are_no_text_are_left_to_the_steps():
    link = whole_link(Pattern.parse("//a{val}"))
    data = encode(link.send(match(link.view, Document.parse("<a>é</a>".encode()))))
    assert at_once.holds(link, data) is True
    hurt = data.replace("é".encode(), b"\xc3\x28")
    assert at_once.holds(link, hurt) is None
    assert at_once.cut(link, link, hurt) is None
    with pytest.raises(RewritingError):
        held_by_steps(link, hurt)


def test_too_many_bytes_are_left_to_the_steps(monkeypatch):
    link = whole_link(Pattern.parse("//a{val}"))
    data = encode(link.send(match(link.view, Document.parse(b"<a>1</a>"))))
    monkeypatch.setattr(at_once, "LIMITS", type(LIMITS)(max_bytes=len(data) - 1))
    assert at_once.holds(link, data) is at_once.cut(link, link, data) is None


@pytest.fixture
def two_links():
    """A rewriting with two links that both carry values, and what they carry."""
    document = Document.parse("<r><a>é<b>ü</b></a></r>".encode())
    query, views = Pattern.parse("//a{val}[b{val}]"), [Pattern.parse("//a{val}"), Pattern.parse("//b{val}")]
    rewriting = next(one for one in rewritings(query, views) if len(one.links) == 2)
    sent = [encode(link.send(match(link.view, document))) for link in rewriting.links]
    assert at_once.join(rewriting, sent) == joined_by_steps(rewriting, sent) != b""
    return rewriting, sent


@pytest.mark.parametrize("place", [0, 1])
def test_texts_of_every_link_are_looked_at(two_links, place):
    rewriting, sent = two_links
    text = "é".encode() if rewriting.links[place].view.text == "//a{val}" else "ü".encode()
    hurt = list(sent)
    hurt[place] = hurt[place].replace(text, text[:1] + b"(")
    assert hurt != sent
    assert at_once.join(rewriting, hurt) is None


@pytest.mark.parametrize("place", [0, 1])
def test_values_that_a_link_should_carry_and_does_not_are_missed(two_links, place):
    rewriting, sent = two_links
    columns = decode_untrusted(sent[place])
    columns.nodes.vals[:] = -1
    hurt = list(sent)
    hurt[place] = encode(columns)
    assert at_once.join(rewriting, hurt) is None
    with pytest.raises(RewritingError):
        joined_by_steps(rewriting, hurt)

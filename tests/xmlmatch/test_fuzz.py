"""Whatever bytes or text come in, only the package's own errors come out."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from tests.oracles.documents import numbered
from tests.random_cases import random_case
from tests.strategies import NAMESPACES, documents, drawn_patterns
from xmlmatch import Document, DocumentError, Matcher, Pattern, PatternError, match

SIGNS = st.sampled_from(list("/@*[](){}<>=!.,:'\"|&$#;-+ 0159eabQp\t\n\u00e9\u00a0\ud800\U0001f600\x00"))
_WORDS = """
    // and or text() not( last() child:: .. {val} {id,val} Q{u} p: xml: 'x' 1e5 1e999 for $x in return some
    satisfies if( instance of to :: processing-instruction(' @* *: 1.5. (: :) \\ true() xs:integer('x') ! ||
    castable as treat eq div << is union element( attribute( concat( xs:date('x') matches('a','(') ? => map{
"""
WORDS = st.sampled_from(_WORDS.split()).map(lambda word: f"{word} " if word.isalpha() else word)
MARKUP = st.sampled_from(
    rb"""
    <!DOCTYPE_a <!DOCTYPE_a_[ ]> <!ENTITY_e_'x'> <!ENTITY_%_e_'x'> %e; &e; &amp; <![CDATA[ ]]> <!-- -->
    <?xml_version='1.0'?> <?p_ ?> <a> </a> <a/> _xmlns='u' _xmlns:p='u' _p:x='1' <p:a> </p:a> _xml:lang=''
    <!ATTLIST_a_x_CDATA_'d'> _encoding='UTF-16' &#0; &#x10FFFF; &#xD800; > <a _x='1'
    """.replace(b"_", b"\x1f").split()
).map(lambda word: word.replace(b"\x1f", b" ")) | st.sampled_from([b"\xef\xbb\xbf", b"\xff\xfe", b"\x00"])


def checked_pattern(text):
    try:
        pattern = Pattern.parse(text, NAMESPACES)
    except PatternError:
        return None
    assert Pattern.parse(str(pattern)) == pattern
    return pattern


def checked_document(data):
    try:
        document = Document.parse(data)
    except DocumentError:
        return None
    again = Document.parse(document.cont(0).encode())
    assert len(again) == len(document)
    assert [again.val(i) for i in range(len(again))] == [document.val(i) for i in range(len(document))]
    return document


@settings(max_examples=400)
@given(st.lists(st.one_of(SIGNS, WORDS), max_size=25).map("".join))
def test_any_text_is_a_pattern_or_a_pattern_error(text):
    checked_pattern(text)
    checked_pattern(f"//a[{text}")


@settings(max_examples=150)
@given(st.text(max_size=60))
def test_any_unicode_is_a_pattern_or_a_pattern_error(text):
    checked_pattern(text)
    checked_pattern(f"//{text}")


def mutated(rng, value):
    """Delete, repeat, swap or replace at a few places."""
    for _ in range(rng.randint(1, 3)):
        i, j = sorted(rng.randrange(len(value) + 1) for _ in range(2))
        kind = rng.randrange(4)
        if kind == 0:
            value = value[:i] + value[min(j, i + 3) :]
        elif kind == 1:
            value = value[:j] + value[i:j] + value[j:]
        elif kind == 2:
            value = value[:i] + value[i:j][::-1] + value[j:]
        elif value:
            at = rng.randrange(len(value))
            value = value[:i] + value[at : at + rng.randint(1, 4)] + value[i:]
    return value


@settings(max_examples=150)
@given(drawn_patterns(), st.randoms(use_true_random=False))
def test_a_mutated_pattern_is_a_pattern_or_a_pattern_error(drawn, rng):
    for _ in range(4):
        checked_pattern(mutated(rng, drawn.text))


@pytest.mark.parametrize("seed", range(4))
def test_seeded_mutations_of_patterns_match_or_are_refused(seed):
    rng = random.Random(seed)
    document = Document.parse(random_case(rng)[0].encode())
    found = []
    for _ in range(250):
        pattern = checked_pattern(mutated(rng, random_case(rng)[1].text))
        if pattern is not None:
            list(match(pattern, document).rows(limit=10**7))
            found.append(pattern)
    matches = Matcher(found).match(document)
    assert matches.keys.tolist() == [i for i, pattern in enumerate(found) if match(pattern, document)]


@settings(max_examples=300)
@given(st.binary(max_size=80))
def test_any_bytes_are_a_document_or_a_document_error(data):
    checked_document(data)
    checked_document(b"<a>" + data + b"</a>")


@settings(max_examples=400)
@given(st.lists(MARKUP, max_size=14).map(b"".join))
def test_any_markup_is_a_document_or_a_document_error(data):
    checked_document(data)
    checked_document(b"<a" + data + b"</a>")
    checked_document(b"<!DOCTYPE a [" + data + b"]><a/>")


@settings(max_examples=200)
@given(documents(), st.randoms(use_true_random=False))
def test_a_mutated_document_is_a_document_or_a_document_error(data, rng):
    for _ in range(4):
        checked_document(mutated(rng, data))


# lxml also wants namespaces to be URIs, which Namespaces in XML leaves to the application, and has its own rule
# for the names of instructions.
ONLY_LXML = ("is not a valid URI", "colons are forbidden from PI names")
SUBSET = "<!DOCTYPE a [<!ATTLIST a x CDATA '1'><!ELEMENT a ANY>]>"


@pytest.mark.parametrize("seed", range(3))
def test_a_mutated_document_is_refused_where_lxml_refuses_it(seed):
    rng = random.Random(seed)
    agreed = {True: 0, False: 0}
    for i in range(1200):
        text = random_case(rng, elements=5)[0]
        data = bytearray(((SUBSET if i % 3 == 0 else "") + text).encode())
        at = rng.randrange(len(data))
        data[at : at + rng.randrange(2)] = rng.choice(
            [b"", b"", b"<", b">", b"/", b"p:", b"&amp;", b"'", b" ", b"x"]
        )
        try:
            nodes = numbered(bytes(data))
        except (etree.XMLSyntaxError, ValueError) as refusal:
            if any(words in str(refusal) for words in ONLY_LXML):
                continue
            nodes = None
        document = checked_document(bytes(data))
        assert (document is None) == (nodes is None), bytes(data)
        if document is not None:
            labels = [document.label_of(i) for i in range(len(document))]
            assert labels == [node.label for node in nodes]
        agreed[nodes is None] += 1
    assert min(agreed.values()) > 200


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "shift_jis", "iso2022_jp", "gb18030"])
def test_mutated_bytes_of_any_encoding_are_a_document_or_a_document_error(encoding):
    rng = random.Random(encoding)
    text = f"<?xml version='1.0' encoding='{encoding.replace('_', '-')}'?><a x='日'>本<b/></a>"
    data = text.encode(encoding)
    for _ in range(150):
        checked_document(mutated(rng, data))


@pytest.mark.parametrize("seed", range(4))
def test_flipped_bits_of_a_document_are_a_document_or_a_document_error(seed):
    rng = random.Random(seed)
    data = random_case(rng, elements=12)[0].encode()
    for _ in range(250):
        broken = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
        checked_document(bytes(broken))

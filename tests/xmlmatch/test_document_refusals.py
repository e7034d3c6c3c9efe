"""Documents that are refused, each with its reason."""

import pytest

from tests.xmlmatch.test_hostile_documents import LAUGHS
from xmlmatch import Document, DocumentError, Limits

REFUSED = {
    "an entity": ('<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>', "entit"),
    "an entity that is not used": ('<!DOCTYPE a [<!ENTITY e "x">]><a/>', "entit"),
    "an entity that spells a predefined one": ('<!DOCTYPE a [<!ENTITY lt "&#38;#60;">]><a>&lt;</a>', "entit"),
    "an external entity": ('<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><a>&e;</a>', "entit"),
    "a public external entity": ('<!DOCTYPE a [<!ENTITY e PUBLIC "p" "x">]><a>&e;</a>', "entit"),
    "an unparsed entity": ('<!DOCTYPE a [<!NOTATION n SYSTEM "n"><!ENTITY e SYSTEM "x" NDATA n>]><a/>', "entit"),
    "a parameter entity": ('<!DOCTYPE a [<!ENTITY % e "<!ELEMENT a ANY>">%e;]><a/>', "entit"),
    "an external parameter entity": ('<!DOCTYPE a [<!ENTITY % e SYSTEM "x">%e;]><a/>', "entit"),
    "an undefined parameter entity": ("<!DOCTYPE a [%e;]><a/>", "entit"),
    "billion laughs": (f"<!DOCTYPE a [{LAUGHS}]><a>&l9;</a>", "entit"),
    "billion laughs in an attribute": (f"<!DOCTYPE a [{LAUGHS}]><a x='&l9;'/>", "entit"),
    "billion laughs in a default": (f"<!DOCTYPE a [{LAUGHS}<!ATTLIST a x CDATA '&l9;'>]><a/>", "entit"),
    "an undefined entity": ("<a>&e;</a>", "undefined entity"),
    "an undefined entity in an attribute": ("<a x='&e;'/>", "undefined entity"),
    "an undefined entity with a DOCTYPE": ("<!DOCTYPE a><a>&e;</a>", "entity"),
    "an undefined entity with an external DTD": ("<!DOCTYPE a SYSTEM 'x'><a>&e;</a>", "entity"),
    "the same in an attribute": ("<!DOCTYPE a SYSTEM 'x'><a x='&e;'/>", "entity"),
    "the same with a public DTD": ('<!DOCTYPE a PUBLIC "p" "x"><a x="&nbsp;"/>', "entity"),
    "the same behind comments": ("<!-- > --><?p ?><!DOCTYPE a SYSTEM 'x' []><a>&e;</a>", "entity"),
    "an undefined entity in a default": ("<!DOCTYPE a [<!ATTLIST a x CDATA '&e;'>]><a/>", "entity"),
    "no bytes": ("", "no element"),
    "white space only": (" \n ", "no element"),
    "only a prolog": ('<?xml version="1.0"?><!--c-->', "no element"),
    "text outside the root": ("<a/>x", "junk"),
    "two roots": ("<a/><b/>", "junk"),
    "an end tag that does not match": ("<a><b></a></b>", "mismatch"),
    "a root left open": ("<a><b></b>", "no element"),
    "a tag cut off": ("<a><b", "unclosed token"),
    "a comment left open": ("<a><!-- x</a>", "unclosed token"),
    "two hyphens in a comment": ("<a><!-- -- --></a>", "well-formed"),
    "a less-than sign in an attribute": ("<a x='<'/>", "well-formed"),
    "an attribute without quotes": ("<a x=1/>", "well-formed"),
    "an attribute without a value": ("<a x/>", "well-formed"),
    "an attribute twice": ("<a x='1' x='2'/>", "duplicate attribute"),
    "an attribute twice by namespace": ("<a xmlns:p='u' xmlns:q='u' p:x='1' q:x='2'/>", "twice"),
    "a prefix not declared": ("<p:a/>", "'p'"),
    "an attribute's prefix not declared": ("<a p:x='1'/>", "'p'"),
    "a prefix declared only below": ("<p:a><b xmlns:p='u'/></p:a>", "'p'"),
    "a prefix out of scope": ("<a><b xmlns:p='u'/><p:c/></a>", "'p'"),
    "a prefix with an empty namespace": ("<a xmlns:p=''/>", "empty"),
    "the prefix xmlns declared": ("<a xmlns:xmlns='u'/>", "reserved"),
    "the prefix xml with another namespace": ("<a xmlns:xml='u'/>", "reserved"),
    "another prefix for xml's namespace": ("<a xmlns:p='http://www.w3.org/XML/1998/namespace'/>", "reserved"),
    "xml's namespace as the default": ("<a xmlns='http://www.w3.org/XML/1998/namespace'/>", "reserved"),
    "a prefix for xmlns' namespace": ("<a xmlns:p='http://www.w3.org/2000/xmlns/'/>", "reserved"),
    "xmlns' namespace as the default": ("<a xmlns='http://www.w3.org/2000/xmlns/'/>", "reserved"),
    "the prefix xmlns on an element": ("<xmlns:a/>", "xmlns"),
    "a name of two colons": ("<a xmlns:p='u'><p:b:c/></a>", "prefix"),
    "a name that ends in a colon": ("<a xmlns:p='u'><p:/></a>", "prefix|token"),
    "a name that begins with a colon": ("<a><:b/></a>", "prefix|token"),
    "a declaration of no prefix": ("<a xmlns:='u'><b/></a>", "prefix"),
    "a declaration of two prefixes": ("<a xmlns:p:q='u'/>", "prefix"),
    "a prefix that is no name": ("<a xmlns:1p='u'/>", "prefix"),
    "a local name that is no name": ("<a xmlns:p='u'><p:1a/></a>", "prefix"),
    "a control character": ("<a>\x01</a>", "well-formed"),
    "a reference to a control character": ("<a>&#1;</a>", "invalid character"),
    "a reference to a surrogate": ("<a>&#xD800;</a>", "invalid character"),
    "a reference beyond Unicode": ("<a>&#x110000;</a>", "invalid character"),
    "a declaration in the wrong place": ("<a><?xml version='1.0'?></a>", "declaration"),
    "an end of character data in text": ("<a>]]></a>", "well-formed"),
    "a DOCTYPE inside the root": ("<a><!DOCTYPE a></a>", "well-formed"),
    "a DOCTYPE without a space": ('<!DOCTYPE a SYSTEM"x"><a/>', "error|well-formed"),
    "a DOCTYPE left open": ("<!DOCTYPE a [", "no element|unclosed"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_bad_document_is_refused_with_the_reason(what):
    text, words = REFUSED[what]
    with pytest.raises(DocumentError, match=words):
        Document.parse(text.encode())


BAD_BYTES = {
    "broken UTF-8": b"<a>\xff</a>",
    "UTF-8 cut off": b"<a>\xc3</a>",
    "overlong UTF-8": b"<a>\xc0\xbc</a>",
    "a surrogate in UTF-8": b"<a>\xed\xa0\x80</a>",
    "half a UTF-16 unit": "<a/>".encode("utf-16") + b"\0",
    "a lone surrogate in UTF-16": b"\xff\xfe"
    + "<a>".encode("utf-16-le")
    + b"\x00\xd8"
    + "</a>".encode("utf-16-le"),
    "UTF-32": "<a/>".encode("utf-32"),
    "UTF-32 without a mark": "<a/>".encode("utf-32-le"),
    "an unknown encoding": b'<?xml version="1.0" encoding="x-klingon"?><a/>',
    "UTF-7": b'<?xml version="1.0" encoding="UTF-7"?><a/>',
    "a codec that is no character set": b'<?xml version="1.0" encoding="unicode_escape"?><a/>',
    "a codec that is no text": b'<?xml version="1.0" encoding="macbase64"?><a/>',
    "bytes that ASCII lacks": b'<?xml version="1.0" encoding="US-ASCII"?><a>\xe9</a>',
    "bytes that windows-1252 lacks": b'<?xml version="1.0" encoding="windows-1252"?><a>\x81</a>',
    "half a Shift_JIS character": b'<?xml version="1.0" encoding="Shift_JIS"?><a>\x93</a>',
    "UTF-16 claimed by bytes of eight bits": b'<?xml version="1.0" encoding="UTF-16"?><a/>',
    "EBCDIC claimed by ASCII": b'<?xml version="1.0" encoding="cp037"?><a/>',
    "a zero byte": b"<a>\0</a>",
    "a zero byte in an attribute": b"<a x='\0'/>",
    "nothing but a mark": b"\xef\xbb\xbf",
    "nothing but a mark of UTF-16": b"\xff\xfe",
}


@pytest.mark.parametrize("what", BAD_BYTES)
def test_bad_bytes_are_refused(what):
    with pytest.raises(DocumentError):
        Document.parse(BAD_BYTES[what])


def test_every_truncation_of_a_document_is_refused():
    data = '<?xml version="1.0"?><!--c--><a x="é&amp;"><b>t<![CDATA[u]]></b><?p q?></a>'.encode()
    for end in range(len(data)):
        with pytest.raises(DocumentError):
            Document.parse(data[:end])
    assert len(Document.parse(data)) == 3


def test_the_place_of_an_error_is_told():
    with pytest.raises(DocumentError, match="line 3, column 5: mismatched tag") as caught:
        Document.parse(b"<a>\n<b>\n  </c></a>")
    assert (caught.value.line, caught.value.column) == (3, 5)


@pytest.mark.parametrize(
    ("data", "limits", "words"),
    [
        (b"<a>" * 257 + b"</a>" * 257, Limits(), "256"),
        (b"<a>" * 100_000, Limits(), "256"),
        (b"<a><b><c/></b></a>", Limits(max_depth=2), "2"),
        (b"<a>12345</a>", Limits(max_bytes=11), "11"),
        (b"<r>" + b"<a/>" * 10 + b"</r>", Limits(max_nodes=10), "10 nodes"),
        (b"<r " + b" ".join(b"a%d=''" % i for i in range(10)) + b"/>", Limits(max_nodes=10), "10 nodes"),
        (b"<r>" + b"".join(b"<a%d/>" % i for i in range(100)) + b"</r>", Limits(max_names=100), "100"),
        (b"<r>" + b"".join(b"<a%d/>" % i for i in range(1200)) + b"</r>", Limits(max_names=1000), "1,000"),
        (b"<r>" + b"".join(b"<a%d/>" % i for i in range(140_000)) + b"</r>", Limits(), "131,072"),
    ],
)
def test_a_document_beyond_a_limit_is_refused(data, limits, words):
    with pytest.raises(DocumentError, match=words):
        Document.parse(data, limits)


@pytest.mark.parametrize(
    ("data", "limits"),
    [
        (b"<a>" * 256 + b"</a>" * 256, Limits()),
        (b"<a><b/></a>", Limits(max_depth=2)),
        (b"<a>12345</a>", Limits(max_bytes=12)),
        (b"<r>" + b"<a/>" * 9 + b"</r>", Limits(max_nodes=10)),
        (b"<r>" + b"".join(b"<a%d/>" % i for i in range(99)) + b"</r>", Limits(max_names=100)),
        (b"<r>" + b"".join(b"<a%d/>" % i for i in range(999)) + b"</r>", Limits(max_names=1000)),
        (b"<r>" + b"".join(b"<a%d/>" % i for i in range(2999)) + b"</r>", Limits(max_names=3000)),
    ],
)
def test_a_document_just_within_a_limit_is_read(data, limits):
    assert len(Document.parse(data, limits)) > 0


@pytest.mark.parametrize("name", ["max_bytes", "max_depth", "max_nodes", "max_names"])
def test_a_limit_must_be_positive(name):
    with pytest.raises(ValueError, match=name):
        Limits(**{name: 0})

"""Values read from contents by the quick reader: those the parser gives, or it leaves them to the parser."""

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rewriting.contents import text_of
from scenarios.auction_documents import auction_document
from tests.rewriting.cases import random_document
from xmlmatch import Document, DocumentError


def elements(document):
    return [node for node in range(len(document)) if not document.label_of(node).startswith("@")]


def test_whatever_cont_writes_is_read_as_the_parser_reads_it():
    documents = [random_document(random.Random(seed), 20) for seed in range(60)]
    documents += [auction_document(seed, size_bytes=8_000) for seed in range(3)]
    documents.append(
        "<a k='&quot;&#9;&lt;/&gt;'>é&amp;&lt;b&gt;&#13;\n<b/>\u20ac<c:d xmlns:c='u' c:e='1'>x</c:d></a>".encode()
    )
    read = 0
    for data in documents:
        document = Document.parse(data)
        for node in elements(document):
            content = document.cont(node).encode()
            is_plain = b"<!" not in content and b"<?" not in content
            assert text_of(content) == (document.val(node).encode() if is_plain else None)
            read += is_plain
    assert read > 500


@pytest.mark.parametrize(
    "content",
    [
        b"", b"x", b"<", b"<a", b"<a>", b"<a/", b"</a>", b"<a></b>", b"<a/><a/>", b"<a/>x", b" <a/>",
        b"<a>&x;</a>", b"<a>&amp</a>", b"<a><!--x--></a>", b"<a><?x y?></a>", b"<a>\r</a>", b"<a>></a>",
        b"<a x='1'/>",
        b'<a x="<"/>', b'<a x="1/>', b"<a>\x00</a>", b"<a><![CDATA[x]]></a>", b"<a" * 300,
        b"<a>" * 300 + b"</a>" * 300, b"<a></a", b"<a></ab>", b"<ab></a>",
    ],
)  # fmt: skip
def test_anything_else_is_left_to_the_parser(content):
    assert text_of(content) is None


@given(st.text(alphabet="<>/ab \"'=&;#13ltx!-?\r\n", max_size=25), st.booleans())
@example('<a b="&lt;">a</a>', False)
@example("a<b/>&lt;", True)
def test_random_text_is_never_read_otherwise_than_by_the_parser(text, wrap):
    content = (f"<a>{text}</a>" if wrap else text).encode()
    found = text_of(content)
    try:
        wanted = Document.parse(content).val(0).encode()
    except DocumentError:
        return  # names and attributes are not checked by the quick reader
    assert found in (None, wanted)

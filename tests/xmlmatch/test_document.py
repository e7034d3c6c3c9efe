"""Document.parse against lxml: nodes, values, serialised subtrees, encodings, internal subsets."""

import random
import threading

import numpy as np
import pytest
from hypothesis import given, settings

from scenarios.auction_documents import auction_document
from tests.oracles.documents import canonical_subtree, canonical_xml, numbered
from tests.random_cases import random_case
from tests.strategies import documents
from xmlmatch import Document, NodeId


def described(document):
    """List what a document says of each node."""
    return [
        (
            document.label_of(i),
            int(document.parent[i]),
            int(document.level[i]),
            int(document.size[i]),
            document.val(i),
        )
        for i in range(len(document))
    ]


def expected(data):
    return [(n.label, n.parent, n.level, n.size, n.value) for n in numbered(data)]


@settings(max_examples=300)
@given(documents())
def test_nodes_and_values_are_those_that_lxml_reads(data):
    assert described(Document.parse(data)) == expected(data)


@settings(max_examples=200)
@given(documents())
def test_content_stands_alone_and_has_the_canonical_form_that_lxml_gives(data):
    document = Document.parse(data)
    for pre, node in enumerate(numbered(data)):
        if node.is_element:
            assert canonical_xml(document.cont(pre)) == canonical_subtree(node.holder)


@given(documents())
def test_contents_written_all_at_once_are_those_written_one_by_one(data):
    document = Document.parse(data)
    payload, vals, conts = document.texts_with_contents
    is_made_alone = bool(document.declarations)
    for node in range(len(document)):
        assert bytes(payload[slice(*vals[:, node])]).decode() == document.val(node)
        assert (conts[0, node] < 0) == (is_made_alone or document.label_of(node).startswith("@"))
        if conts[0, node] >= 0:
            assert bytes(payload[slice(*conts[:, node])]).decode() == document.cont(node)


@given(documents())
def test_content_read_again_is_the_subtree(data):
    document = Document.parse(data)
    elements = [i for i in range(len(document)) if not document.label_of(i).startswith("@")]
    for pre in elements:
        again = described(Document.parse(document.cont(pre).encode()))
        below = described(document)[pre : pre + int(document.size[pre]) + 1]
        level = below[0][2]
        shifted = [(label, max(up - pre, -1), lv - level, size, val) for label, up, lv, size, val in below]
        assert again == shifted


def test_seeded_documents_are_read_as_lxml_reads_them():
    for seed in range(300):
        text, _ = random_case(random.Random(seed), elements=14)
        document = Document.parse(text.encode())
        assert described(document) == expected(text)
        assert canonical_xml(document.cont(0)) == canonical_subtree(numbered(text)[0].holder)


def test_auction_documents_are_read_as_lxml_reads_them():
    data = auction_document(5, size_bytes=40_000)
    document = Document.parse(data)
    assert described(document) == expected(data)
    for pre, node in enumerate(numbered(data)):
        if node.is_element and pre % 37 == 0:
            assert canonical_xml(document.cont(pre)) == canonical_subtree(node.holder)


NAMED = {
    "mixed content": "<a>x<b>y</b>z<c/><d>w</d>v</a>",
    "sections of character data": "<a>x<![CDATA[<&>]]]]><![CDATA[>]]>y</a>",
    "references": "<a b='&lt;&amp;&quot;&apos;&#10;&#x9;&#xE9;'>&#13;&gt;&#x1F600;</a>",
    "comments and instructions": "<!--0--><?p 0?><a><!--1-->x<?p 1?><b><?q?><!----></b><!--2--></a><!--3-->",
    "white space": "<a\n b='1'\n>\n <c />\r\n\t</a>\n",
    "attribute white space": "<a b=' x\ty\nz  '/>",
    "line ends": "<a>1\r\n2\r3\n4</a>",
    "empty": "<a/>",
    "deep": "<a>" * 256 + "</a>" * 256,
    "long names": f"<{'n' * 5000} {'m' * 5000}=''/>",
    "names beyond ASCII": "<été größe='1'><日本 名='2'/></été>",
    "default namespace taken back": "<a xmlns='urn:u'><b xmlns=''><c/></b><d/></a>",
    "prefix bound again": "<p:a xmlns:p='urn:u'><p:b xmlns:p='urn:v' p:x='1'><p:c/></p:b><p:d/></p:a>",
    "two prefixes of one namespace": "<p:a xmlns:p='urn:u' xmlns:q='urn:u'><q:a q:x='1' x='2'/></p:a>",
    "a prefix declared after its use": "<p:a p:x='1' xmlns:p='urn:u'/>",
    "the xml prefix": "<a xml:lang='en' xmlns:xml='http://www.w3.org/XML/1998/namespace'/>",
    "a namespace with special signs": "<p:a xmlns:p='urn:u&amp;(&#39;)'><b/></p:a>",
    "names that begin like declarations": "<a xmlnsx='1' xmln='2'/>",
    "text of brackets": "<a>]] ]&gt; {x} @y</a>",
    "many attributes": "<a " + " ".join(f"a{i}='{i}'" for i in range(700)) + "/>",
    "many names": "<r>" + "".join(f"<n{i}/>" for i in range(9000)) + "</r>",
    "characters beyond the first plane": "<a>\U0001f600<b c='\U0001f600'>\U0010fffd</b></a>",
}


@pytest.mark.parametrize("what", NAMED)
def test_named_documents_are_read_and_written_as_lxml_does(what):
    data = NAMED[what].encode()
    document = Document.parse(data)
    nodes = numbered(data)
    assert described(document) == expected(data)
    for pre in range(0, len(nodes), 1 + len(nodes) // 50):
        if nodes[pre].is_element:
            assert canonical_xml(document.cont(pre)) == canonical_subtree(nodes[pre].holder)


def test_a_namespace_that_is_no_uri_is_kept_as_written():
    uri = "u&<\"'>\t\n"
    document = Document.parse(b"<p:a xmlns:p='u&amp;&lt;&quot;&#39;>&#9;&#10;'><p:b/></p:a>")
    assert document.labels == [f"{{{uri}}}a", f"{{{uri}}}b"]
    assert Document.parse(document.cont(1).encode()).labels == [f"{{{uri}}}b"]


BODY = "<a é='ü'>Grüße<b>ß</b><!--ö--></a>"
KANJI = "<a><b>日本語</b>カナ</a>"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (BODY.encode(), BODY),
        (b"\xef\xbb\xbf" + BODY.encode(), BODY),
        (f'<?xml version="1.0" encoding="UTF-8"?>{BODY}'.encode(), BODY),
        (f'\ufeff<?xml version="1.0" encoding="utf-8"?>{BODY}'.encode(), BODY),
        (BODY.encode("utf-16"), BODY),
        (b"\xff\xfe" + BODY.encode("utf-16-le"), BODY),
        (b"\xfe\xff" + BODY.encode("utf-16-be"), BODY),
        (f'<?xml version="1.0" encoding="UTF-16"?>{BODY}'.encode("utf-16"), BODY),
        (f'<?xml version="1.0" encoding="UTF-16LE"?>{BODY}'.encode("utf-16-le"), BODY),
        (f'<?xml version="1.0" encoding="UTF-16BE"?>{BODY}'.encode("utf-16-be"), BODY),
        (f'<?xml version="1.0" encoding="ISO-8859-1"?>{BODY}'.encode("latin-1"), BODY),
        (f"<?xml version='1.0' encoding='iso-8859-1' standalone='yes'?>\n{BODY}".encode("latin-1"), BODY),
        (f'<?xml version="1.0" encoding="windows-1252"?>{BODY}€'.replace("</a>€", "€</a>").encode("cp1252"),
         BODY.replace("</a>", "€</a>")),
        (f'<?xml version="1.0" encoding="Shift_JIS"?>{KANJI}'.encode("shift_jis"), KANJI),
        (f'<?xml version="1.0" encoding="EUC-JP"?>{KANJI}'.encode("euc_jp"), KANJI),
        (f'<?xml version="1.0" encoding="ISO-8859-15"?>{BODY}'.encode("iso8859-15"), BODY),
        (b'<?xml version="1.0" encoding="US-ASCII"?><a>&#233;</a>', "<a>é</a>"),
        (f'\ufeff<?xml version="1.0" encoding="ISO-8859-1"?>{BODY}'.encode(), BODY),
    ],
)  # fmt: skip
def test_declared_and_marked_encodings_give_the_same_document_as_utf_8(data, text):
    assert described(Document.parse(data)) == described(Document.parse(text.encode())) == expected(text)


@pytest.mark.parametrize("size", [900, 70_000, 1_100_000, 2_300_000])
def test_characters_across_the_pieces_in_which_bytes_are_read_stay_whole(size):
    text = "日本é\U0001f600x" * (size // 13)
    data = f"<!DOCTYPE a><a b='{text}'>{text}<!--{text}--></a>".encode()
    document = Document.parse(data)
    assert document.val(0) == document.val(1) == text
    assert document.cont(0) == f'<a b="{text}">{text}<!--{text}--></a>'


SUBSETS = {
    "a default": "<!DOCTYPE a [<!ATTLIST a x CDATA 'd'>]><a/>",
    "a default not used": "<!DOCTYPE a [<!ATTLIST a x CDATA 'd'>]><a x='1'/>",
    "a fixed value": "<!DOCTYPE a [<!ATTLIST a x CDATA #FIXED 'd'>]><a/>",
    "written order before defaults": "<!DOCTYPE a [<!ATTLIST a x CDATA 'd' y CDATA 'e'>]><a y='1' z='2'/>",
    "elements and comments": "<!DOCTYPE a [<!ELEMENT a (b)*><!--c--><?p q?><!ELEMENT b ANY>]><a><b/></a>",
    "a default namespace": "<!DOCTYPE a [<!ATTLIST a xmlns CDATA 'u'>]><a><b/></a>",
    "a default with references": "<!DOCTYPE a [<!ATTLIST a x CDATA '&lt;&#10;&amp;'>]><a/>",
    "tokens are joined by one space": "<!DOCTYPE a [<!ATTLIST a x NMTOKENS #IMPLIED>]><a x='  p   q '/>",
    "the first declaration counts": "<!DOCTYPE a [<!ATTLIST a x CDATA '1'><!ATTLIST a x CDATA '2'>]><a/>",
    "nothing in it": "<!DOCTYPE a []><a/>",
    "only a name": "<!DOCTYPE a><a/>",
    "entities only in a comment": "<!DOCTYPE a [<!-- <!ENTITY e 'x'> ' -->]><a/>",
    "entities only in an instruction": "<!DOCTYPE a [<?p <!ENTITY e 'x'> \" ?>]><a/>",
    "entities only in a literal": "<!DOCTYPE a [<!NOTATION n SYSTEM '<!ENTITY ]>'>]><a/>",
    "entities only in the content": "<!DOCTYPE a [<!ELEMENT a ANY>]><a><![CDATA[<!ENTITY]]><!--<!ENTITY--></a>",
    "a DOCTYPE only in a comment": "<!-- <!DOCTYPE a SYSTEM 'x'> --><a>&lt;</a>",
    "a notation": "<!DOCTYPE a [<!NOTATION n SYSTEM 'x'>]><a/>",
}


@pytest.mark.parametrize("what", SUBSETS)
def test_an_internal_subset_without_entities_is_applied(what):
    data = SUBSETS[what].encode()
    assert described(Document.parse(data)) == expected(data)


def test_defaults_that_outgrow_the_first_buffers_are_all_there():
    defaults = " ".join(f"x{i} CDATA '{i:05}'" for i in range(80))
    data = f"<!DOCTYPE r [<!ATTLIST a {defaults}>]><r>{'<a/>' * 60}</r>".encode()
    assert described(Document.parse(data)) == expected(data)


def test_structural_ids_follow_from_position():
    document = Document.parse(b"<a x='1'><b><c/></b><d/></a>")
    assert [document.node_id(i) for i in range(5)] == [
        NodeId(0, 4, 0), NodeId(1, 0, 1), NodeId(2, 1, 1), NodeId(3, 0, 2), NodeId(4, 0, 1)
    ]  # fmt: skip
    assert document.pre.tolist() == [0, 1, 2, 3, 4]


def test_the_index_lists_every_node_once_under_its_label():
    document = Document.parse(auction_document(2, size_bytes=8_000))
    index = document.index
    assert sorted(index.order.tolist()) == list(range(len(document)))
    for i, label in enumerate(document.labels):
        nodes = index.order[index.first[i] : index.first[i + 1]].tolist()
        assert nodes == sorted(nodes)
        assert {document.label_of(node) for node in nodes} <= {label}
    elements = [i for i in range(len(document)) if not document.label_of(i).startswith("@")]
    assert index.elements.tolist() == elements


@pytest.mark.parametrize("text", ["x" * 1000, "&amp;" * 1000, "&#9;&#10;&#13;&lt;&quot;>" * 1000])
@pytest.mark.parametrize(
    "where", ["<a x='{}'/>", "<a>{0}{0}</a>", "<a b='{0}'><c>{0}</c></a>", "<a" + "z" * 900 + "/>"]
)
def test_what_takes_more_room_than_thought_is_written_whole(where, text):
    data = where.format(text).encode()
    document = Document.parse(data)
    for pre, node in enumerate(numbered(data)):
        if node.is_element:
            assert canonical_xml(document.cont(pre)) == canonical_subtree(node.holder)
            begin, end = document.texts_with_contents.conts[:, pre].tolist()
            assert document.texts_with_contents.payload[begin:end].tobytes().decode() == document.cont(pre)


def test_an_attribute_has_no_content():
    with pytest.raises(ValueError, match="val"):
        Document.parse(b"<a x='1'/>").cont(1)


def test_a_value_asked_for_again_is_the_same():
    document = Document.parse(b"<a x=''>v<b/></a>")
    for _ in range(2):
        assert [document.val(i) for i in range(3)] == ["v", "", ""]
        assert document.cont(0) == '<a x="">v<b/></a>'
        assert document.cont(2) == "<b/>"


def test_a_document_keeps_its_content_while_others_are_parsed():
    first = Document.parse(b"<a x='1'>one</a>")
    before = described(first)
    for i in range(50):
        Document.parse(f"<b y='{i}'>{'z' * i}<c/></b>".encode())
    assert described(first) == before
    assert first.cont(0) == '<a x="1">one</a>'


def test_threads_parse_independently():
    texts = [random_case(random.Random(seed), elements=12)[0] for seed in range(8)]
    wanted = [expected(text) for text in texts]
    wrong = []

    def parse(i):
        read = [described(Document.parse(texts[i].encode())) for _ in range(40)]
        wrong.extend(i for one in read if one != wanted[i])

    threads = [threading.Thread(target=parse, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_any_buffer_of_bytes_is_a_document(kind):
    assert Document.parse(kind(b"<a>x</a>")).val(0) == "x"


def test_arrays_are_as_large_as_the_document():
    document = Document.parse(b"<a>" + b"<b/>" * 10 + b"</a>")
    assert document.nodes.shape[1] == len(document) == 11
    assert document.nodes.dtype == np.int32

"""Documents made to cost much: answered quickly, in little memory, and without fetching anything."""

import contextlib
import itertools

import pytest

from tests.processes import printed_by
from xmlmatch import Document, DocumentError, Limits
from xmlmatch.warm import warm


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    """Compile the kernels before anything is timed."""
    warm()


LAUGHS = '<!ENTITY l0 "' + "lol" * 100 + '">' + "".join(
    f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10)
)  # fmt: skip

_LAUGHS = LAUGHS.encode()
_LONG = b"x" * 4_000_000


def _names_with_one_weak_hash():
    names = ("".join(pair).encode() for pair in itertools.product(("Ez", "FY"), repeat=15))
    return b"<r>" + b"".join(b"<%s/>" % name for name in names) + b"</r>"


def _scopes(count):
    prefixes = b" ".join(b"xmlns:p%d='u%d'" % (i, i) for i in range(count))
    return b"<r " + prefixes + b">" + b"<a xmlns:q='u'/>" * count + b"</r>"


HOSTILE = {
    "a comment behind a DOCTYPE": lambda: b"<!DOCTYPE r><r><!--" + _LONG + b"--></r>",
    "an attribute behind a DOCTYPE": lambda: b"<!DOCTYPE r><r x='" + _LONG + b"'/>",
    "a comment in a subset": lambda: b"<!DOCTYPE r [<!--" + _LONG + b"-->]><r/>",
    "a long instruction": lambda: b"<?p " + _LONG + b"?><r/>",
    "many comments before no DOCTYPE": lambda: b"<!---->" * 300_000 + b"<r><![CDATA[<!DOCTYPE]]></r>",
    "names with one weak hash": _names_with_one_weak_hash,
    "many scopes of many prefixes": lambda: _scopes(8000),
    "many attributes": lambda: b"<r " + b" ".join(b"a%d=''" % i for i in range(60_000)) + b"/>",
    "many references": lambda: b"<r>" + b"&amp;" * 800_000 + b"</r>",
    "a long numeral": lambda: b"<r>" + b"1" * 4_000_000 + b"</r>",
    "many open tags": lambda: b"<r><" + b"a " * 2_000_000,
    "many sections": lambda: b"<r>" + b"<![CDATA[]]>" * 300_000 + b"</r>",
    "a quadratic entity": lambda: b'<!DOCTYPE r [<!ENTITY e "' + _LONG[:500_000] + b'">]><r>' + b"&e;" * 9000,
    "laughs": lambda: b"<!DOCTYPE r [" + _LAUGHS + b"]><r a='&l9;'/>",
    "laughs behind padding": lambda: b"<!DOCTYPE r [<!--" + 2 * _LONG + b"-->" + _LAUGHS + b"]><r a='&l9;'/>",
    "laughs behind a long prolog": lambda: b"<!--" + 2 * _LONG + b"--><!DOCTYPE r [" + _LAUGHS + b"]><r>&l9;</r>",
    "laughs behind a decoy": lambda: b"<!DOCTYPE r [<!-- <!ENTITY " + 2 * _LONG + b"-->" + _LAUGHS
    + b"]><r>&l9;</r>",
    "laughs behind many decoys": lambda: b"<!DOCTYPE r [" + b"<!--<!ENTITY -->" * 300_000 + _LAUGHS
    + b"]><r>&l9;</r>",
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.timeout(30)
def test_a_hostile_document_is_read_or_refused_and_not_for_ever(what):
    with contextlib.suppress(DocumentError):
        assert len(Document.parse(HOSTILE[what]())) > 0


@pytest.mark.timeout(30)
def test_content_of_many_elements_with_declarations_of_their_own_is_not_quadratic():
    document = Document.parse(b"<r>" + b"<a xmlns='u'/>" * 40_000 + b"</r>")
    assert {document.cont(node) for node in range(1, len(document))} == {'<a xmlns="u"/>'}


def test_attributes_defaulted_by_a_subset_cannot_multiply_a_document_without_bound():
    data = b"<!DOCTYPE r [<!ATTLIST a x CDATA '" + b"y" * 50_000 + b"'>]><r>" + b"<a/>" * 5_000 + b"</r>"
    with pytest.raises(DocumentError, match="default"):
        Document.parse(data, Limits(max_bytes=1 << 20))


MEMORY = """
from tests.processes import peak_bytes
from xmlmatch import Document, DocumentError
Document.parse(b'<a b="c"/>')
before = peak_bytes()
laughs = {laughs!r}
for data in (
    b'<!DOCTYPE r [' + laughs + b']><r a="&l9;"/>',
    b'<!DOCTYPE r [<!--' + b'x' * 8_000_000 + b'-->' + laughs + b']><r a="&l9;"/>',
    b'<!DOCTYPE r [<!ENTITY e "' + b'x' * 100_000 + b'">]><r>' + b'<a b="&e;"/>' * 5_000 + b'</r>',
    b'<a>' * 1_000_000,
    b'<r ' + b' '.join(b"xmlns:p%d='u%d'" % (i, i) for i in range(5000)) + b'>' + b"<a xmlns:q='u'/>" * 5000,
):
    try:
        Document.parse(data)
    except DocumentError:
        pass
    else:
        raise SystemExit('not refused')
print((peak_bytes() - before) >> 20)
"""


def test_hostile_documents_cost_little_memory():
    assert int(printed_by(MEMORY.format(laughs=LAUGHS.encode()))) < 120


FETCHING = """
import sys
from xmlmatch import Document, DocumentError, Pattern, PatternError
Document.parse(b'<!DOCTYPE a SYSTEM "x"><a/>')
try: Pattern.parse('//a[not(b)]')
except PatternError: pass
touched = []
sys.addaudithook(lambda event, args: touched.append((event, str(args)[:80]))
                 if event in ('open', 'socket.connect', 'socket.getaddrinfo', 'urllib.Request', 'os.listdir')
                 and 'secret' in str(args) else None)
url = {url!r}
open({path!r}).close()  # shows that the hook sees what it should
assert len(touched) == 1
touched.clear()
for text in (
    '<!DOCTYPE a SYSTEM "' + url + '"><a/>',
    '<!DOCTYPE a PUBLIC "p" "' + url + '"><a>&e;</a>',
    '<!DOCTYPE a [<!ENTITY e SYSTEM "' + url + '">]><a>&e;</a>',
    '<!DOCTYPE a [<!ENTITY % e SYSTEM "' + url + '">%e;]><a/>',
    '<a xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="' + url + '"/></a>',
    '<?xml-stylesheet href="' + url + '"?><a xmlns="' + url + '" '
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="u ' + url + '"/>',
):
    try: Document.parse(text.encode())
    except DocumentError: pass
for text in ('doc("' + url + '")', '//a[doc("' + url + '")]', 'unparsed-text("' + url + '")',
             'doc-available("' + url + '")', 'collection("' + url + '")', '//a[document("' + url + '")/b]'):
    try: Pattern.parse(text)
    except PatternError: pass
print(touched)
"""


def test_nothing_is_ever_fetched(tmp_path):
    secret = tmp_path / "secret.dtd"
    secret.write_text("<!ENTITY e 'fetched'>")
    assert printed_by(FETCHING.format(url=secret.as_uri(), path=str(secret))) == "[]"


def test_an_external_dtd_is_passed_over(tmp_path):
    secret = tmp_path / "secret.dtd"
    secret.write_text("<!ATTLIST a x CDATA 'fetched'>")
    document = Document.parse(f'<!DOCTYPE a SYSTEM "{secret.as_uri()}"><a>ok</a>'.encode())
    assert len(document) == 1
    assert document.val(0) == "ok"

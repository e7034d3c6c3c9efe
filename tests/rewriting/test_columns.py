"""Columns as bytes: nothing lost, nothing twice, and nothing harmful read."""

import random
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewriting import rewritings
from rewriting.column_reading import read_number
from rewriting.columns import ColumnLimits, Columns, decode_untrusted, encode, nothing, number
from rewriting.errors import (
    MalformedColumnsError,
    NotCarriedError,
    UnreadableContentError,
    WrongColumnsError,
)
from rewriting.fragment import Fragment
from tests.oracles import plain_columns
from tests.rewriting.cases import random_problem
from xmlmatch import Document, NodeId, Pattern, match


def sent_columns(seeds):
    """Yield the columns of many links."""
    for seed in seeds:
        data, query, views = random_problem(random.Random(seed))
        document = Document.parse(data)
        for rewriting in rewritings(query, views, 3):
            for link in rewriting.links:
                yield link.send(match(link.view, document))


def facts(columns):
    nodes = columns.nodes
    known = [
        (
            nodes.node_id(i),
            nodes.label_of(i) if nodes.label[i] >= 0 else None,
            nodes.val(i) if nodes.vals[0, i] >= 0 else None,
            nodes.cont(i) if nodes.conts[0, i] >= 0 else None,
        )
        for i in range(len(nodes))
    ]
    return known, {n: positions.tolist() for n, positions in columns.lists.items()}


def test_columns_read_back_as_they_were_written():
    sizes = []
    for columns in sent_columns(range(120)):
        data = encode(columns)
        again = decode_untrusted(data)
        assert facts(again) == facts(columns)
        assert encode(again) == data
        sizes.append(len(columns.nodes))
    assert sum(size > 3 for size in sizes) > 20


def test_each_node_and_payload_is_written_once():
    document = Document.parse(b"<a>" + b"<b>river</b>" * 50 + b"</a>")
    view = Pattern.parse("//b{val}")
    query = Pattern.parse("//*[b{val}][b{val}[.!='x']]/b{val}[.!='y']")
    (rewriting,) = rewritings(query, [view, Pattern.parse("//*")], 1)
    data = b"".join(encode(link.send(match(link.view, document))) for link in rewriting.links)
    assert data.count(b"river") == 50
    assert len(data) < 50 * (len("river") + 5) + 60


def test_no_match_is_two_bytes():
    assert encode(nothing()) == b"\x01\x00"
    assert not decode_untrusted(b"\x01\x00")


def samples():
    return [encode(c) for c in sent_columns(range(30)) if c][:25]


def test_every_cut_and_every_flip_is_refused_or_harmless():
    rng = random.Random(1)
    refused = 0
    for data in samples():
        for cut in range(len(data)):
            with pytest.raises(MalformedColumnsError):
                decode_untrusted(data[:cut])
        for _ in range(60):
            broken = bytearray(data)
            broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
            refused += not reads(bytes(broken))
    assert refused > 200


def reads(data):
    """Say whether bytes are read; if so, everything in them can be looked at and written again."""
    try:
        columns = decode_untrusted(data)
    except MalformedColumnsError:
        return False
    facts(columns)
    assert facts(decode_untrusted(encode(columns))) == facts(columns)
    return True


def outcome(read, data):
    """Return what a reader makes of bytes: facts, or that it refuses them."""
    try:
        return read(data)
    except MalformedColumnsError:
        return "refused"


def plain_facts(data):
    nodes, lists = plain_columns.decode(data)
    return [(NodeId(*row[:3]), *row[3:]) for row in nodes], lists


def test_the_plain_twin_writes_and_reads_the_same():
    rng = random.Random(2)
    several = refused = taken = 0
    for columns in sent_columns(range(40)):
        data = encode(columns)
        assert data == plain_columns.encode(columns)
        several += len(data) > 30
        for broken in (data, *(damaged(rng, data) for _ in range(12))):
            found = outcome(lambda given: facts(decode_untrusted(given)), broken)
            assert found == outcome(plain_facts, broken), broken
            refused, taken = refused + (found == "refused"), taken + (found != "refused")
    assert min(several, refused, taken) > 30


def damaged(rng, data):
    """Change, drop, repeat or add a byte or a few."""
    at, end = sorted(rng.choices(range(len(data)), k=2))
    match rng.randrange(4):
        case 0:
            return data[:at] + bytes((rng.choice((0, 1, 2, 3, 127, 128, 255)),)) + data[at + 1 :]
        case 1:
            return data[:at] + data[min(end, at + 3) :]
        case 2:
            return data[:end] + data[at:]
        case _:
            return data[:at] + rng.randbytes(2) + data[at:]


@given(st.binary(max_size=40))
def test_the_plain_twin_refuses_the_same_random_bytes(data):
    given_bytes = b"\x01" + data
    assert outcome(lambda read: facts(decode_untrusted(read)), given_bytes) == outcome(plain_facts, given_bytes)


@given(st.binary(max_size=60))
def test_random_bytes_raise_only_the_one_error(data):
    assert reads(data) in (True, False)
    assert reads(b"\x01" + data) in (True, False)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "version"),
        (b"\x02\x00", "version"),
        (b"\x01\x00\x00", "more bytes"),
        (b"\x01\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "nodes"),
        (b"\x01\x80\x00", "number"),
        (b"\x01\x01\x00\x00\x80\x08", "over 256"),
        (b"\x01\x02\x00\x00\x05\x00\x00\x00\x00", "overlap"),
        (b"\x01\x02\x00\x00\x00\x00\x00\x00\x02\x01a\x01a\x01\x02\x00\x00\x00", "order"),
        (b"\x01\x01\x00\x00\x00\x01\x01\xff\x01\x00\x00\x00", "UTF-8"),
        (b"\x01\x01\x00\x00\x00\x02\x01a\x01b\x01\x00\x00\x00", "not used"),
        (b"\x01\x01\x00\x00\x00\x01\x01a\x02\x00\x00\x00", "not there"),
        (b"\x01\x01\x00\x00\x00\x00\x7f", r"over|early|texts"),
        (b"\x01\x01\x00\x00\x00\x00\x01\x02\xff\x00\x00", "UTF-8"),
        (b"\x01\x01\x00\x00\x00\x00\x00\x00\x01\x00\x03", "unknown"),
        (b"\x01\x01\x00\x00\x00\x00\x00\x00\x01\x00\x01\x01", "not there"),
        (b"\x01\x01\x00\x00\x00\x00\x00\x00\x02\x01\x00\x00\x00", "order"),
    ],
)
def test_what_is_wrong_is_named(data, words):
    with pytest.raises(MalformedColumnsError, match=words):
        decode_untrusted(data)


def test_a_text_may_not_begin_inside_a_character():
    good = np.array([[0, 1], [1, 2]])
    payload = np.frombuffer("é".encode(), np.uint8)
    ids = np.array([0, 1], np.int32)
    none = np.full((2, 2), -1, np.int64)
    zero = np.zeros(2, np.int32)
    nodes = Fragment(ids, zero, zero, np.full(2, -1, np.int32), [], good, none, payload)
    with pytest.raises(MalformedColumnsError, match=r"UTF-8|character"):
        decode_untrusted(encode(Columns(nodes, {0: ids})))


def test_limits_are_kept():
    (data, *_) = samples()
    with pytest.raises(MalformedColumnsError, match="over 4 bytes"):
        decode_untrusted(data, ColumnLimits(max_bytes=4))
    named = next(encode(c) for c in sent_columns(range(60)) if (c.nodes.label >= 0).any())
    with pytest.raises(MalformedColumnsError, match="names"):
        decode_untrusted(named, ColumnLimits(max_names=0))
    with pytest.raises(MalformedColumnsError, match="lists"):
        decode_untrusted(data, ColumnLimits(max_lists=0))
    with pytest.raises(MalformedColumnsError):
        decode_untrusted(b"\x01" + number(1 << 40) + bytes(1000))


@given(st.integers(0, 2**63 - 1))
def test_a_number_reads_back(wanted):
    data = number(wanted)
    assert data == plain_columns.number(wanted)
    assert read_number(np.frombuffer(data + b"\x07", np.uint8), 0) == (wanted, len(data))


def many_lists(nodes, lists, form):
    """Write columns of many nodes and lists, each list in the given form."""
    head = b"\x01" + number(nodes) + bytes(3 * nodes) + bytes(3)
    return head + number(lists) + b"".join(number(n) + form for n in range(lists))


def test_few_bytes_do_not_become_much_memory():
    data = many_lists(20_000, 4_000, b"\x00")
    tracemalloc.start()
    columns = decode_untrusted(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(columns.lists) == 4_000
    assert peak < 40 * len(data)


def test_positions_are_limited_and_written_in_the_shortest_way():
    bitmap = b"\x01" + bytes([0x7F]) + b"\xff" * 99
    with pytest.raises(MalformedColumnsError, match="positions"):
        decode_untrusted(many_lists(800, 50, bitmap), ColumnLimits(max_positions=10_000))
    with pytest.raises(MalformedColumnsError, match="shortest"):
        decode_untrusted(many_lists(8, 1, b"\x01\xff"))


@pytest.fixture
def link_and_columns():
    document = Document.parse(b"<a><b>1</b><b>2</b></a>")
    view = Pattern.parse("//a/b{val}")
    (rewriting,) = rewritings(Pattern.parse("//a/b{val}[.>=1]"), [view])
    (link,) = rewriting.links
    return rewriting, link.send(match(view, document))


def test_columns_that_lack_what_the_link_carries_are_refused(link_and_columns):
    rewriting, columns = link_and_columns
    some = dict(list(columns.lists.items())[:1])
    bare = replace(columns.nodes, vals=np.full_like(columns.nodes.vals, -1))
    empty = {n: positions[:0] for n, positions in columns.lists.items()}
    for wrong in (Columns(columns.nodes, some), Columns(bare, columns.lists), Columns(columns.nodes, empty)):
        with pytest.raises(WrongColumnsError, match="//a/b"):
            rewriting.receive([wrong])
    assert rewriting.receive([columns])


def test_links_must_speak_of_one_document():
    views = [Pattern.parse("//*{id}[.//*]"), Pattern.parse("//a{val}")]
    (rewriting,) = rewritings(Pattern.parse("//*{id}/a{val}"), views)
    one, other = Document.parse(b"<a><a/></a>"), Document.parse(b"<a><a/><b/></a>")
    columns = [link.send(match(link.view, d)) for link, d in zip(rewriting.links, (one, other), strict=True)]
    with pytest.raises(WrongColumnsError, match="document"):
        rewriting.receive(columns)


def test_content_that_is_no_xml_is_a_typed_error():
    ids = np.array([0], np.int32)
    payload = np.frombuffer(b"<a>", np.uint8)
    none = np.full((2, 1), -1, np.int64)
    broken = Fragment(ids, ids, ids, ids - 1, [], none, np.array([[0], [3]]), payload)
    with pytest.raises(UnreadableContentError, match="node 0"):
        broken.val(0)
    with pytest.raises(NotCarriedError, match="name"):
        broken.label_of(0)

"""A record has one encoding, and whoever may not write it cannot."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overlay.dht.errors import LocalBadRecord, MalformedRecord
from overlay.dht.records import (
    CHUNK,
    MOST_PAYLOAD,
    MOST_RECORD,
    Record,
    Version,
    decode_record_untrusted,
    encode_record,
    is_valid,
    make_chunk,
    record_key,
    signed_bytes,
)
from tests.overlay.dht.network import make_record, sign, verify

NUMBERS = st.integers(0, 2**63 - 1)
VERSIONS = st.builds(Version, NUMBERS, NUMBERS, NUMBERS)
RECORDS = st.builds(
    Record,
    kind=st.from_regex(r"[a-z]{1,16}", fullmatch=True),
    name=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60),
    version=VERSIONS,
    expires_at=NUMBERS,
    payload=st.binary(max_size=400),
    whole_bytes=st.integers(0, 1 << 20),
    signature=st.binary(max_size=128),
)


@given(RECORDS)
def test_a_record_decodes_to_itself(record):
    assert decode_record_untrusted(encode_record(record)) == record


@given(st.binary(max_size=200))
def test_random_bytes_are_no_record_or_the_encoding_of_one(data):
    try:
        record = decode_record_untrusted(data)
    except MalformedRecord:
        return
    assert encode_record(record) == data


@given(RECORDS, st.data())
def test_a_damaged_record_is_malformed_or_another_record(record, data):
    encoded = bytearray(encode_record(record))
    encoded[data.draw(st.integers(0, len(encoded) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        other = decode_record_untrusted(bytes(encoded))
    except MalformedRecord:
        return
    assert other != record


def test_a_record_encoded_in_another_way_is_refused():
    record = Record("site", "a", Version(0, 0, 0), 1, b"")
    encoded = encode_record(record)
    longer = encoded.replace(b"\x00", b"\xcc\x00", 1)  # the number 0 in two bytes
    assert msgspec.msgpack.decode(longer, type=Record) == record
    with pytest.raises(MalformedRecord, match="another way"):
        decode_record_untrusted(longer)


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "Site"},
        {"kind": ""},
        {"kind": "a/b"},
        {"name": ""},
        {"name": "n" * 201},
        {"payload": bytes(MOST_PAYLOAD + 1)},
        {"whole_bytes": (1 << 20) + 1},
        {"signature": bytes(257)},
        {"expires_at": -1},
        {"version": Version(-1, 0, 0)},
    ],
    ids=str,
)
def test_a_record_outside_the_bounds_is_refused_on_both_sides(wrong):
    record = msgspec.structs.replace(make_record(), **wrong)
    with pytest.raises(LocalBadRecord):
        encode_record(record)
    with pytest.raises(MalformedRecord):
        decode_record_untrusted(msgspec.msgpack.encode(record))


def test_a_record_within_each_bound_may_still_be_too_large():
    record = make_record("n" * 200, payload=bytes(MOST_PAYLOAD))
    with pytest.raises(LocalBadRecord, match=str(MOST_RECORD)):
        encode_record(msgspec.structs.replace(record, signature=bytes(256)))


@given(VERSIONS, VERSIONS)
def test_versions_compare_by_generation_then_epoch_then_revision(one, other):
    def numbers(version):
        return (version.generation, version.epoch, version.revision)

    assert (one < other) == (numbers(one) < numbers(other))


def test_a_signature_covers_every_field_but_itself():
    record = make_record()
    assert is_valid(record, verify)
    changes = {
        "kind": "zone",
        "name": "b",
        "version": Version(9, 9, 9),
        "expires_at": record.expires_at + 1,
        "payload": b"other",
        "whole_bytes": 5,
    }
    for field, value in changes.items():
        assert not is_valid(msgspec.structs.replace(record, **{field: value}), verify), field
    assert signed_bytes(record) == signed_bytes(msgspec.structs.replace(record, signature=b""))


def test_what_verifying_raises_counts_as_no():
    def broken(kind, name, signed, signature):
        raise ValueError("bad signature length")

    assert not is_valid(make_record(), broken)


def test_a_chunk_needs_no_signature_but_is_what_its_name_says():
    chunk = make_chunk(b"piece", 1000)
    assert is_valid(chunk, lambda *_: False)
    for change in (
        {"payload": b"other"},
        {"version": Version(0, 0, 1001)},
        {"signature": b"s"},
        {"whole_bytes": 1},
    ):
        assert not is_valid(msgspec.structs.replace(chunk, **change), lambda *_: True), change
    assert not is_valid(sign(msgspec.structs.replace(chunk, name="0" * 64)), verify)


def test_keys_are_spread_and_tell_kinds_apart():
    keys = {record_key(kind, f"{i}") for kind in ("site", "zone", CHUNK) for i in range(100)}
    assert len(keys) == 300
    assert {len(key) for key in keys} == {20}

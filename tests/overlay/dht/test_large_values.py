"""A large value comes back whole, or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overlay.dht.errors import LocalTooMany, RemoteCorruptValue
from overlay.dht.large_values import PIECE, Assembly, split
from overlay.dht.records import MOST_PAYLOAD, MOST_WHOLE, encode_record, is_valid
from tests.overlay.dht.network import make_record


def assemble(large, change=lambda level, payloads: payloads):
    payloads = {chunk.name: chunk.payload for chunk in large.chunks}
    assembly = Assembly(large.manifest, large.whole_bytes)
    level = 0
    while assembly.value is None:
        assembly.give(change(level, {name: payloads[name] for name in assembly.wanted}))
        level += 1
    return assembly.value


def value_of(size):
    return bytes((i * 31 + i // 251) % 256 for i in range(size))


@given(st.integers(1, 20_000))
def test_a_value_of_any_size_comes_back(size):
    value = value_of(size)
    assert assemble(split(value, 1)) == value


@pytest.mark.parametrize("size", [PIECE * 30, PIECE * 30 + 1, PIECE * 900, PIECE * 900 + 1, MOST_WHOLE])
def test_values_at_the_edges_of_the_levels_come_back(size):
    value = value_of(size)
    large = split(value, 1)
    assert assemble(large) == value
    assert len(large.manifest) <= MOST_PAYLOAD


def test_chunks_and_the_manifest_s_record_fit_the_dht():
    large = split(value_of(MOST_WHOLE), 10**9)
    assert all(len(chunk.payload) < 1000 and is_valid(chunk, lambda *_: False) for chunk in large.chunks)
    for record in (*large.chunks, make_record("n" * 64, payload=large.manifest, whole_bytes=large.whole_bytes)):
        encode_record(record)


def test_equal_pieces_are_one_chunk():
    large = split(bytes(PIECE * 20), 1)
    assert len(large.chunks) == 1
    assert assemble(large) == bytes(PIECE * 20)


@pytest.mark.parametrize("size", [0, MOST_WHOLE + 1])
def test_a_value_outside_the_bounds_is_not_split(size):
    with pytest.raises(LocalTooMany):
        split(bytes(size), 1)


@pytest.mark.parametrize("at_level", [0, 1])
@pytest.mark.parametrize("damage", [lambda p: p[:-1] + bytes([p[-1] ^ 1]), lambda p: p[:-1], lambda p: p + b"x"])
def test_a_damaged_chunk_is_found_on_every_level(at_level, damage):
    def change(level, payloads):
        if level == at_level:
            name = max(payloads)
            payloads[name] = damage(payloads[name])
        return payloads

    with pytest.raises(RemoteCorruptValue):
        assemble(split(value_of(PIECE * 40), 1), change)


def test_a_missing_chunk_is_found():
    with pytest.raises(RemoteCorruptValue):
        assemble(split(value_of(5000), 1), lambda _, payloads: dict(list(payloads.items())[1:]))


@pytest.mark.parametrize(
    ("manifest", "whole_bytes"), [(b"", 0), (b"", 1), (bytes(32), MOST_WHOLE + 1), (bytes(33), 1), (bytes(64), 1)]
)
def test_a_manifest_that_does_not_add_up_is_corrupt(manifest, whole_bytes):
    with pytest.raises(RemoteCorruptValue):
        Assembly(manifest, whole_bytes)

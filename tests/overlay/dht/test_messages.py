"""Members say only what the messages allow."""

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overlay.dht.contacts import Contact
from overlay.dht.errors import MalformedMessage
from overlay.dht.messages import (
    MOST_CONTACTS,
    FindNode,
    FindValue,
    Found,
    Nodes,
    Ping,
    Pong,
    Store,
    Stored,
    decode_message_untrusted,
    encode_message,
)

CALL, NODE = b"c" * 16, b"n" * 20
HEAD = [CALL, NODE]
PEER = Contact(NODE, "127.0.0.1", 5)
MESSAGES = [
    Ping(CALL, NODE),
    Store(CALL, NODE, b"record"),
    FindNode(CALL, NODE, NODE),
    FindValue(CALL, NODE, NODE),
    Pong(CALL, NODE),
    Stored(CALL, NODE, True),
    Nodes(CALL, NODE, (PEER,) * MOST_CONTACTS),
    Found(CALL, NODE, b"record"),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_decodes_to_itself(message):
    assert decode_message_untrusted(encode_message(message)) == message


@given(st.binary(max_size=200))
def test_random_bytes_raise_nothing_but_malformed(data):
    with pytest.raises(MalformedMessage):
        decode_message_untrusted(data)


@given(st.sampled_from(MESSAGES), st.data())
def test_a_damaged_message_raises_nothing_but_malformed(message, data):
    encoded = bytearray(encode_message(message))
    for _ in range(data.draw(st.integers(1, 4))):
        encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(MalformedMessage):
        assert type(decode_message_untrusted(bytes(encoded))) in {type(known) for known in MESSAGES}


@pytest.mark.parametrize(
    "wrong",
    [
        [1, b"short", NODE],
        [1, CALL, b"short"],
        [1, *HEAD, "more"],
        [2, *HEAD, bytes(2000)],
        [2, *HEAD, "text"],
        [3, *HEAD, b"n" * 21],
        [3, *HEAD, 7],
        [6, *HEAD, 1],
        [7, *HEAD, [[NODE, "127.0.0.1", 5]] * (MOST_CONTACTS + 1)],
        [7, *HEAD, [[NODE, "127.0.0.1", 0]]],
        [7, *HEAD, [[NODE, "127.0.0.1", 65536]]],
        [7, *HEAD, [[NODE, "a.example.org", 5]]],
        [7, *HEAD, [[NODE, "255.255.255.255", 5]]],
        [7, *HEAD, [[NODE, "", 5]]],
        [7, *HEAD, [[NODE, None, None]]],
        [9, *HEAD],
        ["stun"],
        {},
        None,
    ],
    ids=lambda wrong: str(wrong)[:40],
)
def test_a_message_of_wrong_types_or_sizes_is_malformed(wrong):
    with pytest.raises(MalformedMessage):
        decode_message_untrusted(msgspec.msgpack.encode(wrong))


@pytest.mark.parametrize(
    "data",
    [
        b"\x91" * 8000,
        b"\x93\x07\xc4\x10" + CALL + b"\x91" * 8000,
        b"\xdd\xff\xff\xff\xff" + bytes(100),
        b"\x94\x07\xc4\x10" + CALL + b"\xc4\x14" + NODE + b"\xdd\xff\xff\xff\xff",
        b"\xc7\xff\xff" + bytes(300),
        b"\xd6\xff\xff\xff\xff\xff",
    ],
    ids=["deep", "deep inside", "long", "long inside", "extension", "time"],
)
def test_hostile_structures_cost_nothing(data):
    with pytest.raises(MalformedMessage):
        decode_message_untrusted(data)

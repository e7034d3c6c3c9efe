"""Envelopes: opened for what they are, and for nothing else."""

import dataclasses

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overlay.identity import (
    MalformedFrame,
    NotPermitted,
    Role,
    Signer,
    UnknownSigner,
    Untrusted,
    first_list,
    open_signed,
    sign,
    sign_compact,
)
from overlay.identity.keys import fresh_key
from tests.overlay.identity.networks import DAY, NOW, MemoryNet

NET = MemoryNet()
NONE = first_list("meteo", NET.intermediate, dht_key=1)


def signer_of(site="b", roles=(Role.SUBSCRIBER,), net=NET, key=None):
    key = key or fresh_key()
    return Signer.of(key, net.chain(key, site, roles), net.root)


B = signer_of()
SOURCE = signer_of("source", [Role.SOURCE])


def opened(data, kind="zone", **other):
    how = {"root": NET.root, "now": NOW, "required_role": Role.SUBSCRIBER, "revocations": NONE} | other
    return open_signed(data, kind, **how)


def known(*signers):
    return {signer.member.serial: signer.member for signer in signers}.get


def test_an_envelope_tells_who_said_what():
    found = opened(sign(B, "zone", b"payload"))
    assert (found.member, found.payload) == (B.member, b"payload")
    assert opened(sign_compact(B, "zone", b""), lookup=known(B)).payload == b""


def test_a_compact_envelope_leaves_a_dht_record_room():
    assert len(sign_compact(B, "zone", bytes(1000))) <= 1100
    assert len(sign(B, "zone", b"")) < 1500


@pytest.mark.parametrize("form", [sign, sign_compact])
def test_an_envelope_of_one_kind_is_not_taken_for_another(form):
    with pytest.raises(Untrusted, match="not that of b for the kind epoch"):
        opened(form(B, "zone", b"x"), "epoch", lookup=known(B))


@pytest.mark.parametrize("form", [sign, sign_compact])
def test_a_subscriber_cannot_pass_for_the_source(form):
    data = form(B, "epoch", b"x")
    with pytest.raises(NotPermitted, match="does not give it the role source"):
        opened(data, "epoch", required_role=Role.SOURCE, lookup=known(B, SOURCE))
    data = form(SOURCE, "epoch", b"x")
    assert opened(data, "epoch", required_role=Role.SOURCE, lookup=known(B, SOURCE)).member.site == "source"


def test_a_signature_does_not_count_under_another_certificate():
    for place in (sign(B, "zone", b"x"), sign_compact(B, "zone", b"x")):
        parts = msgspec.msgpack.decode(place)
        stolen = msgspec.msgpack.decode((sign if parts[0] == 1 else sign_compact)(SOURCE, "zone", b"x"))
        data = msgspec.msgpack.encode([parts[0], stolen[1], *parts[2:]])
        with pytest.raises(Untrusted, match="not that of source"):
            opened(data, lookup=known(B, SOURCE))


def test_not_even_under_another_certificate_of_the_same_key():
    twin = signer_of("b", [Role.PLANNER], key=B.key)
    serial = twin.member.serial.to_bytes(20, "big")
    _, _, signature, payload = msgspec.msgpack.decode(sign_compact(B, "zone", b"x"))
    with pytest.raises(Untrusted, match="not that of b"):
        opened(msgspec.msgpack.encode([2, serial, signature, payload]), lookup=known(B, twin))


def test_a_changed_payload_is_refused():
    with pytest.raises(Untrusted, match="not that of b"):
        opened(sign(B, "zone", b"payload").replace(b"payload", b"Payload"))


def test_a_signer_of_another_network_is_refused():
    other = MemoryNet("other")
    stranger = signer_of(net=other)
    with pytest.raises(Untrusted, match="not issued by"):
        opened(sign(stranger, "zone", b"x"))
    with pytest.raises(Untrusted, match="looked up is not"):
        opened(sign_compact(stranger, "zone", b"x"), lookup=known(stranger))


def test_a_compact_envelope_of_an_unknown_signer_says_which_certificate_to_get():
    for lookup in (None, known(SOURCE)):
        with pytest.raises(UnknownSigner) as refused:
            opened(sign_compact(B, "zone", b"x"), lookup=lookup)
        assert refused.value.serial == B.member.serial


def test_a_lookup_that_answers_with_another_certificate_is_not_believed():
    with pytest.raises(Untrusted, match="looked up is not"):
        opened(
            sign_compact(B, "zone", b"x"), lookup=lambda serial: dataclasses.replace(B.member, serial=serial + 1)
        )


@pytest.mark.parametrize("form", [sign, sign_compact])
def test_an_expired_or_revoked_signer_counts_no_longer(form):
    data = form(B, "zone", b"x")
    with pytest.raises(Untrusted, match="it ended"):
        opened(data, now=NOW + 31 * DAY, lookup=known(B))
    revoked = NONE.extended(NET.intermediate, NOW, dht_key=2, sites=["b"])
    with pytest.raises(NotPermitted, match="it is revoked"):
        opened(data, revocations=revoked, lookup=known(B))


def test_an_envelope_too_large_is_not_read():
    with pytest.raises(MalformedFrame, match="at most 1,200"):
        opened(sign(B, "zone", bytes(1200)), most_bytes=1200)


@pytest.mark.parametrize(
    "data", [b"", b"\x91" * 5000, b"\x94\x03", b"\x94\x01", msgspec.msgpack.encode([2, b"", b"", b""])]
)
def test_what_is_no_envelope_is_malformed(data):
    with pytest.raises(MalformedFrame):
        opened(data)


@given(st.binary(max_size=300))
def test_random_bytes_are_malformed(data):
    with pytest.raises(MalformedFrame):
        opened(data, lookup=known(B))


@given(st.integers(0, len(sign(B, "zone", b"x")) - 1), st.integers(0, 7))
def test_no_bit_of_an_envelope_may_change(place, bit):
    data = bytearray(sign(B, "zone", b"x"))
    data[place] ^= 1 << bit
    with pytest.raises((MalformedFrame, Untrusted)):
        opened(bytes(data), lookup=known(B))

"""Revocation lists: signed by the authority, moving forward only, and fair to those invited again."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overlay.identity import (
    BadName,
    MalformedFrame,
    Role,
    Signer,
    StaleList,
    Untrusted,
    decode_list_untrusted,
    first_list,
    read_own_list,
    verify_chain,
)
from overlay.identity.domains import text_to_sign
from overlay.identity.issuing import Issuer, make_intermediate
from overlay.identity.keys import fresh_key
from overlay.identity.revocation import _Said
from tests.overlay.identity.networks import DAY, NOW, MemoryNet

NET = MemoryNet()
KEY = fresh_key()
NONE = first_list("meteo", NET.intermediate, dht_key=1)


def member(site="b", since=0):
    return verify_chain(NET.chain(KEY, site, since=since), NET.root, NOW)


def revoking(held=NONE, now=NOW, **what):
    return held.extended(NET.intermediate, now, dht_key=held.dht_key + 1, **what)


def test_the_first_list_revokes_nobody():
    assert (NONE.number, NONE.dht_key) == (0, 1)
    assert not NONE.is_revoked(member())


def test_a_list_is_read_back():
    held = revoking(sites=["b", "a"], serials=[member().serial, 5])
    read = decode_list_untrusted(held.encoded, NET.root, NOW)
    assert read == held
    assert read.encoded == held.encoded
    assert (read.number, read.dht_key, set(read.sites), len(read.serials)) == (1, 2, {"a", "b"}, 2)


def test_all_certificates_of_a_revoked_site_count_no_longer():
    held = revoking(sites=["b"])
    assert held.is_revoked(member())
    assert held.is_revoked(member())
    assert not held.is_revoked(member("c"))


def test_a_site_that_is_invited_again_is_accepted_until_it_is_revoked_again():
    held = revoking(sites=["b"])
    again = member(since=held.number)
    assert not held.is_revoked(again)
    held = revoking(held, sites=["c"])
    assert not held.is_revoked(again)
    assert held.is_revoked(member())
    held = revoking(held, sites=["b"])
    assert held.is_revoked(again)


def test_an_invitation_from_before_the_revocation_admits_nobody():
    held = revoking(revoking(sites=["c"]), sites=["b"])
    assert held.is_revoked(member(since=1))
    assert not held.is_revoked(member(since=2))


def test_a_single_certificate_is_revoked_by_its_serial():
    stolen, other = member(), member()
    held = revoking(serials=[stolen.serial])
    assert held.is_revoked(stolen)
    assert not held.is_revoked(other)


def test_entries_are_left_out_once_every_certificate_they_mean_has_ended():
    held = revoking(sites=["b"], serials=[5])
    late = revoking(held, NOW + 30 * DAY, sites=["c"])
    assert set(late.sites) == {"b", "c"}
    late = revoking(late, NOW + 32 * DAY)
    assert set(late.sites) == {"c"}
    assert late.serials == {}


def test_lists_move_forward_only():
    first, second = revoking(sites=["b"]), revoking(revoking(sites=["b"]), sites=["c"])
    assert first.replaced_by(second) is second
    assert first.replaced_by(first) is first
    with pytest.raises(StaleList, match="revocation list 1 is older than 2"):
        second.replaced_by(first)


def test_two_lists_of_one_number_or_of_two_networks_do_not_replace_each_other():
    with pytest.raises(Untrusted, match="two different lists with the number 1"):
        revoking(sites=["b"]).replaced_by(revoking(sites=["c"]))
    other = MemoryNet("other")
    with pytest.raises(Untrusted, match="not of the network meteo"):
        NONE.replaced_by(first_list("other", other.intermediate, dht_key=1))


def test_lists_that_went_apart_are_merged_and_nobody_is_forgotten():
    common = revoking(sites=["a"])
    lost = revoking(revoking(common, sites=["b"]), sites=["a"], serials=[7])
    restored = revoking(common.renumbered(1000, NET.intermediate, dht_key=9), sites=["c"], serials=[8])
    merged = restored.merged(lost, NET.intermediate, dht_key=10)
    assert merged == decode_list_untrusted(merged.encoded, NET.root, NOW)
    assert (merged.number, merged.dht_key) == (1002, 10)
    assert {site: entry.number for site, entry in merged.sites.items()} == {"a": 3, "b": 2, "c": 1001}
    assert set(merged.serials) == {7, 8}
    assert restored.replaced_by(merged) == lost.replaced_by(merged) == merged
    with pytest.raises(ValueError, match="not be newer"):
        lost.renumbered(3, NET.intermediate, dht_key=1)


def test_a_list_of_another_authority_is_refused():
    other = MemoryNet()
    forged = first_list("meteo", other.intermediate, dht_key=1)
    with pytest.raises(Untrusted, match="not issued by"):
        decode_list_untrusted(forged.encoded, NET.root, NOW)


def test_a_site_cannot_sign_a_list():
    chain = NET.chain(KEY, roles=[Role.SOURCE])
    signer = Signer.of(KEY, chain, NET.root)
    said, _, _ = msgspec.msgpack.decode(NONE.encoded)
    signature = signer.key.sign(text_to_sign("revocation list", b"meteo", said))
    for intermediate in chain:
        with pytest.raises(Untrusted):
            decode_list_untrusted(msgspec.msgpack.encode([said, intermediate, signature]), NET.root, NOW)


def test_a_changed_list_is_refused():
    said, intermediate, signature = msgspec.msgpack.decode(revoking(sites=["b"]).encoded)
    changed = msgspec.msgpack.encode([said.replace(b"\xa1b", b"\xa1c"), intermediate, signature])
    with pytest.raises(Untrusted, match="signature is not the authority's"):
        decode_list_untrusted(changed, NET.root, NOW)


def test_what_the_intermediate_signed_for_another_purpose_is_no_list():
    said = msgspec.msgpack.encode(_Said("meteo", 9, 9, [], []))
    for text in (said, text_to_sign("envelope", b"meteo", said), text_to_sign("revocation list", b"other", said)):
        data = msgspec.msgpack.encode([said, NET.intermediate.der, NET.intermediate.key.sign(text)])
        with pytest.raises(Untrusted, match="signature is not"):
            decode_list_untrusted(data, NET.root, NOW)


@pytest.mark.parametrize("said", [_Said("other", 9, 9, [], []), ["revocations-1", "meteo", -1, 1, [], []], b"x"])
def test_a_signed_list_that_makes_no_sense_is_refused(said):
    said = msgspec.msgpack.encode(said)
    signature = NET.intermediate.key.sign(text_to_sign("revocation list", b"meteo", said))
    with pytest.raises(MalformedFrame):
        decode_list_untrusted(msgspec.msgpack.encode([said, NET.intermediate.der, signature]), NET.root, NOW)


def test_a_list_is_good_on_ones_own_disk_after_its_signer_has_ended_but_not_from_elsewhere():
    held, late = revoking(sites=["b"]), NOW + 731 * DAY
    with pytest.raises(Untrusted, match="it ended"):
        decode_list_untrusted(held.encoded, NET.root, late)
    assert read_own_list(held.encoded, NET.root).is_revoked(member())
    key = fresh_key()
    newer = Issuer(make_intermediate(key.public_key(), NET.root_issuer, "meteo", late), key)
    again = decode_list_untrusted(held.signed_again(newer).encoded, NET.root, late)
    assert held.replaced_by(again) is again


def test_only_names_of_sites_are_revoked():
    with pytest.raises(BadName):
        revoking(sites=["../b"])


def test_a_list_too_large_is_not_read():
    with pytest.raises(MalformedFrame, match="at most 1,048,576"):
        decode_list_untrusted(bytes((1 << 20) + 1), NET.root, NOW)


@given(st.binary(max_size=300) | st.integers(0, len(NONE.encoded) - 1))
def test_random_and_spoilt_bytes_are_no_list(data):
    if isinstance(data, int):
        data = NONE.encoded[:data] + bytes([NONE.encoded[data] ^ 1]) + NONE.encoded[data + 1 :]
    with pytest.raises((MalformedFrame, Untrusted)):
        decode_list_untrusted(data, NET.root, NOW)

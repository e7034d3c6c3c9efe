"""Invitations: a token that is pasted, and a secret that admits one machine once."""

import base64
import json
import string
from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overlay.identity import (
    Address,
    Admission,
    BadName,
    BadToken,
    InvitationRefused,
    Invitations,
    NotPermitted,
    Refusal,
    Role,
    Token,
    invite,
)
from overlay.identity import invitation as module
from overlay.identity.keys import fresh_bytes, fresh_key, public_bytes
from tests.overlay.identity.networks import ADDRESS, DAY, NOW, MemoryNet

NET = MemoryNet()
KEY = public_bytes(fresh_key())
OTHER = public_bytes(fresh_key())
HOUR = timedelta(hours=1)
TOKEN = Token("meteo", (ADDRESS, Address("::1", 7400)), NET.root.fingerprint, fresh_bytes(20))


def invited(invitations, site="b", roles=(Role.SUBSCRIBER,), since=2, addresses=(ADDRESS,)):
    text = invite(invitations, site, roles, NOW, ttl=HOUR, root=NET.root, addresses=addresses, since=since)
    return Token.parse(text)


# --- the token ------------------------------------------------------------------------------------------------


def test_a_token_is_read_back():
    assert Token.parse(TOKEN.text()) == TOKEN


def test_a_token_says_whom_it_is_for_and_those_of_before_are_read_too():
    assert invited(Invitations(), site="paris").site == "paris"
    data = msgspec.msgpack.encode([TOKEN.network, [str(ADDRESS)], TOKEN.fingerprint, TOKEN.secret])
    word = base64.b32encode(data + module._checksum(data)).decode().rstrip("=").lower()
    assert Token.parse("dst1" + word) == Token("meteo", (ADDRESS,), TOKEN.fingerprint, TOKEN.secret)


def test_a_token_is_one_word_that_needs_no_quoting():
    text = TOKEN.text()
    assert set(text) <= set(string.ascii_lowercase + string.digits)
    assert text.startswith("dst1")
    assert len(text) < 250


def test_line_breaks_and_capitals_do_a_token_no_harm():
    text = TOKEN.text()
    assert Token.parse(f"  {text[:50]}\n {text[50:].upper()}\r\n") == TOKEN


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda text: text[:-1], "missing or wrong|a length"),
        (lambda text: text[:60], "missing or wrong|a length"),
        (lambda text: text[:30] + ("b" if text[30] == "a" else "a") + text[31:], "missing or wrong"),
        (lambda text: text + "aaaaaaaa", "missing or wrong"),
        (lambda text: text + "!", "letters or a length"),
        (lambda text: text[1:], "does not begin with dst1"),
        (lambda text: "dst2" + text[4:], "another version"),
        (lambda text: text * 30, "too long"),
        (lambda text: "", "does not begin"),
        (lambda text: "dst1", "missing or wrong"),
        (lambda text: "dst1é", "letters or a length"),
    ],
)
def test_a_spoilt_token_is_said_to_be_one(spoil, why):
    with pytest.raises(BadToken, match=why):
        Token.parse(spoil(TOKEN.text()))


@pytest.mark.parametrize(
    "parts",
    [
        ["a b", ["a:1"], bytes(32), bytes(20)],
        ["a", [], bytes(32), bytes(20)],
        ["a", ["a"], bytes(32), bytes(20)],
        ["a", ["a:1"], bytes(31), bytes(20)],
        ["a", ["a:1"], bytes(32), bytes(15)],
        ["a", ["a:1"] * 9, bytes(32), bytes(20)],
        {},
    ],
)
def test_a_token_with_wrong_parts_is_refused_whatever_its_checksum(parts, monkeypatch):
    monkeypatch.setattr(module, "_Written", lambda *_: parts)
    text = TOKEN.text()
    with pytest.raises(BadToken):
        Token.parse(text)


@given(st.text(max_size=80), st.binary(max_size=80))
def test_random_texts_are_no_tokens(text, data):
    checked = data + module._checksum(data)
    for candidate in (text, "dst1" + text, "dst1" + module.base64.b32encode(checked).decode().rstrip("=")):
        with pytest.raises(BadToken):
            Token.parse(candidate)


def test_a_token_does_not_show_its_secret():
    assert repr(TOKEN.secret) not in repr(TOKEN)


# --- the source's invitations ---------------------------------------------------------------------------------


def test_an_invitation_admits_to_what_it_was_made_for():
    invitations = Invitations()
    token = invited(invitations, "b", [Role.PLANNER, Role.PUBLISHER], since=7)
    assert (token.network, token.addresses, token.fingerprint) == ("meteo", (ADDRESS,), NET.root.fingerprint)
    admission = invitations.redeem(token.secret, KEY, NOW)
    assert admission == Admission("b", frozenset({Role.PLANNER, Role.PUBLISHER}), 7)


def test_each_invitation_has_its_own_secret():
    invitations = Invitations()
    tokens = [invited(invitations, f"site{i}") for i in range(5)]
    assert len({token.secret for token in tokens}) == 5
    for i in (3, 0, 4, 1, 2):
        assert invitations.redeem(tokens[i].secret, KEY, NOW).site == f"site{i}"


def test_the_same_key_may_redeem_again_and_another_may_not():
    invitations = Invitations()
    secret = invited(invitations).secret
    first = invitations.redeem(secret, KEY, NOW)
    assert invitations.redeem(secret, KEY, NOW) == first
    with pytest.raises(InvitationRefused, match="already used by another machine") as refused:
        invitations.redeem(secret, OTHER, NOW)
    assert refused.value.reason is Refusal.USED
    assert invitations.redeem(secret, KEY, NOW) == first


def test_an_unknown_secret_is_refused():
    invitations = Invitations()
    invited(invitations)
    with pytest.raises(InvitationRefused, match="not known here"):
        invitations.redeem(fresh_bytes(20), KEY, NOW)


def test_an_expired_invitation_is_refused_and_long_after_forgotten():
    invitations = Invitations()
    secret = invited(invitations).secret
    with pytest.raises(InvitationRefused, match="it has expired; ask the source for a new one"):
        invitations.redeem(secret, KEY, NOW + HOUR)
    later = NOW + 8 * DAY
    invitations.add(fresh_bytes(20), Admission("c", frozenset({Role.PLANNER}), 0), later, HOUR)
    assert [entry["site"] for entry in invitations.export()] == ["c"]


def test_a_refused_try_uses_nothing_up():
    invitations = Invitations()
    secret = invited(invitations).secret
    before = invitations.export()
    with pytest.raises(InvitationRefused):
        invitations.redeem(secret, KEY, NOW + HOUR)
    with pytest.raises(InvitationRefused):
        invitations.redeem(secret[::-1], KEY, NOW)
    assert invitations.export() == before


def test_what_is_exported_is_plain_holds_no_secret_and_is_all_there_is():
    invitations = Invitations()
    used, unused = invited(invitations).secret, invited(invitations, "c").secret
    invitations.redeem(used, KEY, NOW)
    text = json.dumps(invitations.export())
    assert used.hex() not in text
    restored = Invitations.restored(json.loads(text))
    assert restored.redeem(used, KEY, NOW).site == "b"
    with pytest.raises(InvitationRefused, match="already used"):
        restored.redeem(used, OTHER, NOW)
    assert restored.redeem(unused, OTHER, NOW).site == "c"


def test_data_of_another_shape_is_not_restored():
    with pytest.raises(msgspec.ValidationError):
        Invitations.restored([{"site": "b"}])


def test_withdrawing_forgets_all_invitations_of_a_site():
    invitations = Invitations()
    secret, kept = invited(invitations).secret, invited(invitations, "c").secret
    invited(invitations)
    assert invitations.withdraw("b") == 2
    with pytest.raises(InvitationRefused, match="withdrawn"):
        invitations.redeem(secret, KEY, NOW)
    assert invitations.redeem(kept, KEY, NOW).site == "c"


@pytest.mark.parametrize(
    "how",
    [{"site": "a b"}, {"roles": ()}, {"roles": (Role.SOURCE,)}, {"addresses": ()}, {"addresses": (ADDRESS,) * 9}],
)
def test_only_what_can_be_admitted_is_invited(how):
    invitations = Invitations()
    with pytest.raises(BadName):
        invited(invitations, **how)
    assert invitations.export() == []


def test_the_number_of_invitations_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "MOST_INVITATIONS", 3)
    invitations = Invitations()
    for i in range(3):
        invited(invitations, f"site{i}")
    with pytest.raises(NotPermitted, match="3 invitations are open"):
        invited(invitations)

"""Renewal: a member gets its own next certificate, and nobody else's."""

from datetime import timedelta

import pytest

from overlay.identity import Credential, NotPermitted, Role, Untrusted, create_network
from overlay.identity.keys import fresh_key, public_bytes
from overlay.identity.renewal import ask_renewal, check_renewal, renew_source, renewal_due, take_renewal
from tests.overlay.identity.networks import DAY, NOW, Net


@pytest.fixture
def net(tmp_path):
    return Net(tmp_path)


def renewed(net, credential, now):
    public_key, proof = ask_renewal(credential)
    check_renewal(credential.member, public_key, proof)
    return net.authority.renew(credential.member, public_key, now, net.revocations)


def test_a_renewed_certificate_is_the_same_members_and_lasts_longer(net):
    before = net.join("p1", (Role.SUBSCRIBER, Role.PUBLISHER), since=0)
    after = take_renewal(before, renewed(net, before, NOW + 20 * DAY), NOW + 20 * DAY)
    assert (after.member.site, after.member.roles) == ("p1", {Role.SUBSCRIBER, Role.PUBLISHER})
    assert after.member.not_after == before.member.not_after + 20 * DAY
    assert after.member.public_key != before.member.public_key
    assert Credential.load(before.folder) == after


def test_the_question_can_be_asked_again_with_the_same_key(net):
    credential = net.join("p1")
    assert ask_renewal(credential) == ask_renewal(credential)


def test_a_proof_is_good_for_its_own_member_and_key_only(net):
    one, two = net.join("p1"), net.join("p2")
    public_key, proof = ask_renewal(one)
    with pytest.raises(Untrusted, match="does not hold the key"):
        check_renewal(two.member, public_key, proof)
    with pytest.raises(Untrusted, match="does not hold the key"):
        check_renewal(one.member, public_bytes(fresh_key()), proof)
    again = take_renewal(one, renewed(net, one, NOW + DAY), NOW + DAY)
    with pytest.raises(Untrusted, match="does not hold the key"):
        check_renewal(again.member, public_key, proof)


def test_what_is_answered_is_not_taken_for_another_site_or_role(net):
    credential = net.join("p1")
    key = ask_renewal(credential)[0]
    later = NOW + 20 * DAY
    for site, roles, since in [
        ("p2", {Role.SUBSCRIBER}, 0),
        ("p1", {Role.PUBLISHER}, 0),
        ("p1", {Role.SUBSCRIBER}, 1),
    ]:
        chain = net.authority.issue(key, site, roles, later, since=since)
        with pytest.raises(Untrusted, match="site and the roles"):
            take_renewal(credential, chain, later)
    with pytest.raises(Untrusted, match="ends no later"):
        take_renewal(credential, net.authority.issue(key, "p1", {Role.SUBSCRIBER}, NOW, since=0), NOW)
    assert Credential.load(credential.folder) == credential


def test_the_revoked_and_the_ended_are_not_renewed(net):
    credential = net.join("p1")
    with pytest.raises(Untrusted, match="ended"):
        renewed(net, credential, NOW + 31 * DAY)
    net.revocations = net.revocations.extended(net.authority.intermediate, NOW, dht_key=2, sites=["p1"])
    with pytest.raises(NotPermitted, match="revoked"):
        renewed(net, credential, NOW + DAY)


def test_renewal_is_due_well_before_the_end(net):
    member = net.join("p1").member
    first, last = renewal_due(member, 0.0), renewal_due(member, 0.999)
    assert NOW + 19 * DAY < first < last < NOW + 23 * DAY


def test_the_source_renews_itself_even_after_its_certificate_has_ended(tmp_path):
    made = create_network(tmp_path, "meteo", NOW)
    later = NOW + 100 * DAY
    after = renew_source(made.credential, made.authority, later)
    assert after.member.roles == {Role.SOURCE}
    assert after.member.not_after > later + timedelta(days=29)

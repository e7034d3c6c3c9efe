"""Making a network, issuing and renewing, with and without the root's key."""

import os
import stat

import pytest

from overlay.identity import (
    Authority,
    BadCredential,
    BadName,
    Credential,
    NotPermitted,
    Role,
    Untrusted,
    create_network,
    verify_chain,
)
from overlay.identity import authority as module
from overlay.identity.keys import fresh_key, public_bytes, save_key
from tests.overlay.identity.networks import DAY, NOW, Net

PUBLIC = public_bytes(fresh_key())


@pytest.fixture
def own(tmp_path):
    return Net(tmp_path)


def test_a_new_network_has_an_authority_and_a_source(own):
    assert sorted(path.name for path in own.authority.folder.iterdir()) == [
        "intermediate.key",
        "intermediate.pem",
        "root.key",
        "root.pem",
    ]
    member = own.source.member
    assert (member.network, member.site, member.roles) == ("meteo", "source", {Role.SOURCE})
    assert own.source.settings.dht_keys.current.number == 1


def test_every_file_and_folder_of_a_new_network_is_closed_to_others(own):
    for path in (own.home / "source").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


def test_the_advice_is_to_move_the_root_key_away(own):
    assert f"Move {own.authority.folder / 'root.key'} to a place that is not on any network" in own.made.advice
    assert "from 2032-02-16 on" in own.made.advice


def test_without_the_root_key_everything_works_but_renewing_the_intermediate(own):
    (own.authority.folder / "root.key").unlink()
    authority = Authority.load(own.authority.folder)
    member = verify_chain(authority.issue(PUBLIC, "b", {Role.PLANNER}, NOW, since=0), own.root, NOW)
    authority.renew(member, PUBLIC, NOW, own.revocations)
    authority.issue_to_source(PUBLIC, "source", NOW)
    own.revocations.extended(authority.intermediate, NOW, dht_key=2, sites=["b"])
    with pytest.raises(BadCredential, match=r"bring root\.key back from where it is kept offline"):
        authority.renew_intermediate(NOW)


def test_a_second_network_in_the_same_folder_is_refused(own):
    with pytest.raises(BadCredential, match="a member of a network already"):
        create_network(own.home / "source", "meteo", NOW)


def test_names_are_checked_before_anything_is_made(tmp_path):
    for name, site in [("a b", "source"), ("meteo", "../x")]:
        with pytest.raises(BadName):
            create_network(tmp_path / "home", name, NOW, site=site)
    assert not (tmp_path / "home").exists()


def test_a_crash_while_a_network_is_made_is_finished_by_the_next_try(tmp_path, monkeypatch):
    real = os.replace
    for crash_at in range(1, 10):
        home = tmp_path / str(crash_at)
        calls = []

        def crash(source, target, calls=calls, crash_at=crash_at):
            calls.append(target)
            if len(calls) == crash_at:
                raise KeyboardInterrupt
            real(source, target)

        monkeypatch.setattr(os, "replace", crash)
        with pytest.raises(KeyboardInterrupt):
            create_network(home, "meteo", NOW)
        monkeypatch.undo()
        if (home / "identity" / "chain.pem").exists():
            assert crash_at == 9
            assert Credential.load(home / "identity").root == Authority.load(home / "authority").root
        else:
            made = create_network(home, "meteo", NOW)
            assert made.authority.root == made.credential.root
    assert len(calls) == 9


def test_what_a_crash_left_is_not_finished_under_another_name(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "prepare_key", lambda folder: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        create_network(tmp_path, "meteo", NOW)
    monkeypatch.undo()
    with pytest.raises(BadCredential, match="it is the authority of meteo"):
        create_network(tmp_path, "other", NOW)
    create_network(tmp_path, "meteo", NOW)


def test_nobody_is_issued_the_role_of_the_source(own):
    with pytest.raises(NotPermitted, match="one source"):
        own.authority.issue(PUBLIC, "b", {Role.SUBSCRIBER, Role.SOURCE}, NOW, since=0)


def test_a_renewed_certificate_keeps_site_roles_and_since_and_changes_the_rest(own):
    old = own.signer("b", [Role.PUBLISHER], since=4).member
    new = verify_chain(own.authority.renew(old, PUBLIC, NOW + 20 * DAY, own.revocations), own.root, NOW + 20 * DAY)
    assert (new.site, new.roles, new.since) == (old.site, old.roles, old.since)
    assert new.serial != old.serial
    assert new.public_key == PUBLIC
    assert new.not_after == old.not_after + 20 * DAY


def test_the_source_renews_like_everybody(own):
    chain = own.authority.renew(own.source.member, PUBLIC, NOW, own.revocations)
    assert verify_chain(chain, own.root, NOW).roles == {Role.SOURCE}


def test_the_expired_the_revoked_and_strangers_are_not_renewed(own, tmp_path):
    member = own.signer("b").member
    with pytest.raises(Untrusted, match="it ended"):
        own.authority.renew(member, PUBLIC, NOW + 31 * DAY, own.revocations)
    revoked = own.revocations.extended(own.authority.intermediate, NOW, dht_key=2, sites=["b"])
    with pytest.raises(NotPermitted, match="a new invitation"):
        own.authority.renew(member, PUBLIC, NOW, revoked)
    other = Net(tmp_path / "other", "other")
    with pytest.raises(Untrusted, match="not of the network meteo"):
        own.authority.renew(other.signer("b").member, PUBLIC, NOW, own.revocations)


def test_an_intermediate_is_renewed_in_time_and_old_chains_stay_good(own):
    old = own.signer("b", now=NOW + 639 * DAY)
    assert not own.authority.intermediate_needs_renewal(NOW + 639 * DAY)
    assert own.authority.intermediate_needs_renewal(NOW + 640 * DAY)
    authority = own.authority.renew_intermediate(NOW + 640 * DAY)
    assert authority == Authority.load(own.authority.folder)
    assert authority.intermediate.der != own.authority.intermediate.der
    later = NOW + 640 * DAY
    assert verify_chain(old.chain, own.root, later).site == "b"
    assert verify_chain(authority.issue(PUBLIC, "c", {Role.PLANNER}, later, since=0), own.root, later).site == "c"


def test_an_intermediate_that_has_ended_issues_nothing(own):
    with pytest.raises(BadCredential, match=r"bring root\.key back"):
        own.authority.issue(PUBLIC, "b", {Role.PLANNER}, NOW + 730 * DAY, since=0)


def test_a_root_key_of_another_network_renews_nothing(own):
    save_key(own.authority.folder / "root.key", fresh_key())
    with pytest.raises(BadCredential, match="not this network's"):
        own.authority.renew_intermediate(NOW)


def test_an_authority_that_is_damaged_is_refused(own, tmp_path):
    other = Net(tmp_path / "other")
    root = own.authority.folder / "root.pem"
    root.write_bytes((other.authority.folder / "root.pem").read_bytes())
    with pytest.raises(BadCredential, match="not issued by this network's authority"):
        Authority.load(own.authority.folder)
    root.write_bytes(b"nothing")
    with pytest.raises(BadCredential, match="restore the folder"):
        Authority.load(own.authority.folder)

"""A site's identity on disk: saved, loaded, renewed, refused."""

import os

import pytest

from overlay.identity import BadCredential, Credential, NetworkSettings, Role, Untrusted, install, prepare_key
from overlay.identity.keys import fresh_key, public_bytes, save_key
from tests.overlay.identity.networks import ADDRESS, DAY, MINUTE, NOW, Net, settings


@pytest.fixture
def own(tmp_path):
    return Net(tmp_path)


@pytest.fixture
def site(own):
    return own.join("b", [Role.PUBLISHER])


def renewed(own, site, now):
    key = prepare_key(site.folder)
    chain = own.authority.renew(site.member, public_bytes(key), now, own.revocations)
    return install(site.folder, own.root, site.settings, chain)


def test_a_credential_is_read_back(site):
    loaded = Credential.load(site.folder)
    assert (loaded.member, loaded.root, loaded.settings) == (site.member, site.root, site.settings)
    assert sorted(path.name for path in site.folder.iterdir()) == [
        "chain.pem",
        "key.pem",
        "network.json",
        "root.pem",
    ]


def test_a_machine_that_has_not_joined_is_told_how_to(tmp_path):
    with pytest.raises(BadCredential, match="not a member of a network; run: distributary network join"):
        Credential.load(tmp_path)


def test_a_certificate_is_renewed_when_a_third_of_its_life_is_left(site):
    assert not site.needs_renewal(NOW + 19 * DAY)
    assert site.needs_renewal(NOW + 20 * DAY)
    assert not site.is_expired(NOW + 30 * DAY - MINUTE)
    assert site.is_expired(NOW + 30 * DAY)


def test_renewing_brings_a_new_key_and_keeps_the_rest(own, site):
    new = renewed(own, site, NOW + 20 * DAY)
    assert new == Credential.load(site.folder)
    assert new.member.public_key != site.member.public_key
    assert (new.member.site, new.member.roles, new.settings) == ("b", {Role.PUBLISHER}, site.settings)
    assert not new.needs_renewal(NOW + 20 * DAY)


def test_a_crash_at_any_step_of_renewing_leaves_the_old_or_the_new_credential(own, site, monkeypatch):
    real = os.replace
    outcomes = []
    for crash_at in range(1, 7):
        before = Credential.load(site.folder)
        calls = []

        def crash(source, target, calls=calls, crash_at=crash_at):
            calls.append(target)
            if len(calls) == crash_at:
                raise KeyboardInterrupt
            real(source, target)

        monkeypatch.setattr(os, "replace", crash)
        try:
            renewed(own, before, NOW)
        except KeyboardInterrupt:
            monkeypatch.undo()
        after = Credential.load(site.folder)
        after.server_context()
        outcomes.append(after.member.serial != before.member.serial)
        monkeypatch.undo()
    assert outcomes == [False, False, False, True, True, True]


def test_a_chain_for_another_key_is_not_installed(own, site):
    chain = own.authority.issue(public_bytes(fresh_key()), "b", {Role.PUBLISHER}, NOW, since=0)
    with pytest.raises(Untrusted, match="not for the key"):
        install(site.folder, own.root, site.settings, chain)
    assert Credential.load(site.folder).member == site.member


def test_a_folder_of_one_network_is_not_given_to_another(own, site, tmp_path):
    other = Net(tmp_path / "other", "other")
    chain = other.authority.issue(public_bytes(prepare_key(site.folder)), "b", {Role.PUBLISHER}, NOW, since=0)
    with pytest.raises(BadCredential, match="belongs to another network"):
        install(site.folder, other.root, settings("other"), chain)
    assert Credential.load(site.folder).member == site.member


def test_settings_are_replaced_durably(site):
    keys = site.settings.dht_keys.rotated(NOW)
    changed = site.with_settings(NetworkSettings("meteo", (ADDRESS, ADDRESS), keys))
    loaded = Credential.load(site.folder)
    assert loaded == changed
    assert loaded.settings.dht_keys.previous == site.settings.dht_keys.current


def test_a_credential_whose_parts_do_not_fit_is_refused(own, site, tmp_path):
    other = Net(tmp_path / "other", "other").join("b")
    for name, reason in [
        ("key.pem", "it is not the key of chain.pem"),
        ("root.pem", "not issued by this network's authority"),
        ("network.json", "not of the network meteo"),
    ]:
        good = (site.folder / name).read_bytes()
        (site.folder / name).write_bytes((other.folder / name).read_bytes())
        with pytest.raises(BadCredential, match=reason):
            Credential.load(site.folder)
        (site.folder / name).write_bytes(good)
    assert Credential.load(site.folder).member == site.member


@pytest.mark.parametrize("name", ["key.pem", "root.pem", "network.json", "chain.pem"])
@pytest.mark.parametrize("content", [b"", b"nothing", b"{}", b"[" * 5000, b"\xff"])
def test_a_damaged_file_is_refused_in_one_line(site, name, content):
    (site.folder / name).write_bytes(content)
    with pytest.raises(BadCredential) as refused:
        Credential.load(site.folder)
    assert refused.value.path.name == name
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"version": 1', '"version": 2'),
        ("source.example:7400", "source.example"),
        ('"secret": "', '"secret": "zz'),
        ('"number": 1', '"number": 0'),
    ],
)
def test_settings_that_make_no_sense_are_refused(site, old, new):
    path = site.folder / "network.json"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(BadCredential, match=r"network\.json"):
        Credential.load(site.folder)


@pytest.mark.parametrize("name", ["key.pem", "network.json"])
def test_secrets_that_others_may_read_are_refused(site, name):
    (site.folder / name).chmod(0o644)
    with pytest.raises(BadCredential, match="chmod 600"):
        Credential.load(site.folder)


@pytest.mark.parametrize("name", ["chain.pem", "root.pem"])
def test_what_is_no_secret_may_be_read_by_others(site, name):
    (site.folder / name).chmod(0o644)
    assert Credential.load(site.folder).member == site.member


def test_secrets_are_not_shown(site):
    assert site.settings.dht_keys.current.secret.hex() not in repr(site)
    assert repr(site.settings.dht_keys.current.secret) not in repr(site)
    assert "PrivateKey" not in repr(site)


def test_a_context_for_files_that_are_gone_is_refused(own, site):
    save_key(site.folder / "key.pem", fresh_key())
    with pytest.raises(BadCredential, match="TLS cannot use it"):
        site.server_context()
    (own.source.folder / "root.pem").unlink()
    with pytest.raises(BadCredential, match="TLS cannot use it"):
        own.source.client_context()

"""Keys on disk: closed to others, and never half written."""

import os
import stat

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from overlay.identity import BadCredential
from overlay.identity.keys import KeyPlace, fresh_key, is_signed, load_key, public_bytes, save_key
from overlay.identity.private_files import LARGEST_FILE, read_private, write_private
from tests.overlay.identity.networks import MemoryNet

NET = MemoryNet()


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


class PowerLoss(BaseException):
    """The machine stops here: nothing that would tidy up runs."""


def stop(*_, **__):
    raise PowerLoss


def test_a_key_is_read_back(tmp_path):
    key = fresh_key()
    save_key(tmp_path / "k" / "key.pem", key)
    assert public_bytes(load_key(tmp_path / "k" / "key.pem")) == public_bytes(key)


def test_a_key_and_its_folder_are_closed_to_others_whatever_the_umask(tmp_path):
    old = os.umask(0)
    try:
        save_key(tmp_path / "k" / "key.pem", fresh_key())
    finally:
        os.umask(old)
    assert mode(tmp_path / "k") == 0o700
    assert mode(tmp_path / "k" / "key.pem") == 0o600


def test_a_folder_that_was_open_is_closed(tmp_path):
    (tmp_path / "k").mkdir(mode=0o755)
    save_key(tmp_path / "k" / "key.pem", fresh_key())
    assert mode(tmp_path / "k") == 0o700


@pytest.mark.parametrize("bits", [0o640, 0o604, 0o620, 0o644])
def test_a_key_that_others_may_use_is_refused_with_the_command_to_run(tmp_path, bits):
    path = tmp_path / "k" / "key.pem"
    save_key(path, fresh_key())
    path.chmod(bits)
    with pytest.raises(BadCredential) as refused:
        load_key(path)
    assert str(refused.value) == f"{path}: others may use it (mode {bits:o}); run: chmod 600 '{path}'"


def test_a_missing_key_is_said_to_be_missing(tmp_path):
    with pytest.raises(BadCredential, match="No such file or directory; restore it"):
        load_key(tmp_path / "key.pem")


@pytest.mark.parametrize(
    "content", [b"", b"no key", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"]
)
def test_what_is_no_key_is_refused(tmp_path, content):
    write_private(tmp_path / "key.pem", content)
    with pytest.raises(BadCredential, match="no private key that can be read"):
        load_key(tmp_path / "key.pem")


def test_a_key_of_another_kind_is_refused(tmp_path):
    other = generate_private_key(SECP256R1())
    write_private(tmp_path / "key.pem", other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(BadCredential, match="not an Ed25519 key"):
        load_key(tmp_path / "key.pem")


def test_a_file_too_large_is_refused_before_it_is_read_whole(tmp_path):
    write_private(tmp_path / "key.pem", bytes(LARGEST_FILE + 1))
    with pytest.raises(BadCredential, match="too large"):
        read_private(tmp_path / "key.pem", "try again")


@pytest.mark.parametrize("step", ["fsync", "replace", "fdopen"])
def test_a_crash_before_the_renaming_leaves_the_old_file(tmp_path, monkeypatch, step):
    path = tmp_path / "file"
    write_private(path, b"old")
    monkeypatch.setattr(os, step, stop)
    with pytest.raises(PowerLoss):
        write_private(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    write_private(path, b"newer")
    assert path.read_bytes() == b"newer"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_the_content_and_then_the_name_are_forced_to_disk(tmp_path, monkeypatch):
    steps = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (steps.append(stat.S_ISDIR(os.fstat(fd).st_mode)), fsync(fd)))
    monkeypatch.setattr(os, "replace", lambda a, b: (steps.append("replace"), replace(a, b)))
    write_private(tmp_path / "file", b"new")
    assert steps == [False, "replace", True]


def test_a_signature_is_that_of_one_key_on_one_text():
    key = fresh_key()
    signature = key.sign(b"text")
    assert is_signed(public_bytes(key), signature, b"text")
    assert not is_signed(public_bytes(key), signature, b"texts")
    assert not is_signed(public_bytes(fresh_key()), signature, b"text")
    assert not is_signed(b"short", signature, b"text")


# --- a key that changes with its certificates ----------------------------------------------------------------


@pytest.fixture
def place(tmp_path):
    return KeyPlace(tmp_path / "key.pem", tmp_path / "chain.pem")


def pem_for(key):
    return b"".join(x509.load_der_x509_certificate(der).public_bytes(Encoding.PEM) for der in NET.chain(key))


def test_the_next_key_stays_the_same_until_it_is_in_use(place):
    first = place.prepare()
    assert public_bytes(place.prepare()) == public_bytes(first)
    place.commit(pem_for(first))
    assert public_bytes(place.load("")[0]) == public_bytes(first)
    assert public_bytes(place.prepare()) != public_bytes(first)
    assert public_bytes(place.load("")[0]) == public_bytes(first)


@pytest.mark.parametrize(("crash_at", "changed"), [(1, False), (2, True)])
def test_a_crash_between_certificates_and_key_leaves_a_pair(place, monkeypatch, crash_at, changed):
    old = place.prepare()
    place.commit(pem_for(old))
    new = place.prepare()
    calls = []
    replace = os.replace

    def crash(source, target):
        calls.append(target)
        if len(calls) == crash_at:
            raise PowerLoss
        replace(source, target)

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(PowerLoss):
        place.commit(pem_for(new))
    monkeypatch.undo()
    assert public_bytes(place.load("")[0]) == public_bytes(new if changed else old)
    assert place.next_key.exists() is not changed


def test_a_key_that_is_not_that_of_its_certificates_is_refused(place):
    place.commit(pem_for(place.prepare()))
    save_key(place.key, fresh_key())
    with pytest.raises(BadCredential, match=r"it is not the key of chain\.pem; try"):
        place.load("try")


def test_certificates_that_cannot_be_read_are_refused(place):
    write_private(place.certificates, b"nothing")
    with pytest.raises(BadCredential, match="no certificate that can be read"):
        place.load("try")

"""Ed25519 keys, and the folder where a key and its certificates change together.

A renewal may bring a new key, and two files cannot be renamed at once. So the new key waits on disk as the *next
key* from before it is first shown to anybody; the moment of change is the renaming of the certificates; then the
next key takes the key's place. Whoever loads the pair after a crash between the two finishes the change.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from overlay.identity.errors import BadCredential
from overlay.identity.private_files import (
    make_private_folder,
    read_private,
    read_public,
    sync_folder,
    write_private,
)

if TYPE_CHECKING:
    from pathlib import Path

PUBLIC_KEY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64


def fresh_key() -> Ed25519PrivateKey:
    """Make a key, from the operating system's randomness."""
    return Ed25519PrivateKey.generate()


def fresh_bytes(size: int) -> bytes:
    """Return random bytes fit for secrets, from the operating system."""
    return secrets.token_bytes(size)


def public_bytes(key: Ed25519PrivateKey | Ed25519PublicKey) -> bytes:
    """Return the 32 bytes of the public key."""
    public = key.public_key() if isinstance(key, Ed25519PrivateKey) else key
    return public.public_bytes(Encoding.Raw, PublicFormat.Raw)


def is_signed(public_key: bytes, signature: bytes, data: bytes) -> bool:
    """Tell whether the holder of a public key signed the data."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True


def save_key(path: Path, key: Ed25519PrivateKey) -> None:
    """Write a private key, durably, for its owner alone; its folder is closed to others."""
    make_private_folder(path.parent)
    write_private(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def load_key(path: Path, remedy: str = "restore it from a backup, or join the network again") -> Ed25519PrivateKey:
    """Read a private key, or raise ``BadCredential``: also when others may read it."""
    try:
        key = load_pem_private_key(read_private(path, remedy), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as exc:
        raise BadCredential(path, "it holds no private key that can be read", remedy) from exc
    if not isinstance(key, Ed25519PrivateKey):
        raise BadCredential(path, "its key is not an Ed25519 key", remedy)
    return key


@dataclass(frozen=True, slots=True)
class KeyPlace:
    """Where a key and its certificates lie: the first certificate is the key's own."""

    key: Path
    certificates: Path

    @property
    def next_key(self) -> Path:
        """Where a key waits until its certificates come."""
        return self.key.with_name(f"{self.key.stem}.next{self.key.suffix}")

    def prepare(self) -> Ed25519PrivateKey:
        """Return the next key, made and saved if there is none: asking again after a crash shows the same one."""
        if not self.next_key.exists():
            save_key(self.next_key, fresh_key())
        return load_key(self.next_key, "remove it and try again")

    def commit(self, pem: bytes) -> None:
        """Install the certificates of the next key, and that key with them."""
        write_private(self.certificates, pem)
        self._promote()

    def load(self, remedy: str) -> tuple[Ed25519PrivateKey, tuple[x509.Certificate, ...]]:
        """Read the pair, finishing a change that a crash cut short; ``BadCredential`` if they are no pair."""
        try:
            certificates = tuple(x509.load_pem_x509_certificates(read_public(self.certificates, remedy)))
            wanted = certificates[0].public_key()
        except (ValueError, UnsupportedAlgorithm) as exc:
            raise BadCredential(self.certificates, "it holds no certificate that can be read", remedy) from exc
        if self.next_key.exists() and load_key(self.next_key, remedy).public_key() == wanted:
            self._promote()
        key = load_key(self.key, remedy)
        if key.public_key() != wanted:
            raise BadCredential(self.key, f"it is not the key of {self.certificates.name}", remedy)
        return key, certificates

    def _promote(self) -> None:
        with contextlib.suppress(FileNotFoundError):  # another process that loads the pair may have been faster
            os.replace(self.next_key, self.key)
        sync_folder(self.key.parent)

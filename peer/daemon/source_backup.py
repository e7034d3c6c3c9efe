"""The source's state in one file, and a source made from it.

A backup is a copy of the log as it was at one moment, taken while the source runs, with the files of the identity,
of the authority and of the options in its table of state: one file, for its owner alone, which holds every secret
of the network.

A source that is restored does not know what it did after the backup was made: which numbers it gave to documents,
which lists of the revoked it signed, which DHT keys it made. So it counts on from where it cannot have come to.

- The log's generation, the list's number and the DHT key's number become the time of the restore, in seconds since
  1970: above all that counting by ones can have reached, and different in two restores of one backup.
- Numbers of documents go on as if ``MOST_PER_S`` entries had been written in every second since the backup. What
  lies between is a hole in the log: who is owed something in it and finds it with no other machine gets a gap.
- Spaces begin a generation too, so that nobody takes a grant of the lost source for one of this (``declared``).
- Invitations are forgotten: some may have been redeemed since.

``members`` says how the rest comes back, when machines greet.
"""

from __future__ import annotations

import re
import shutil
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from overlay.identity import Authority, BadCredential, Credential
from overlay.identity.dht_keys import fresh_dht_key
from overlay.identity.private_files import (
    make_private_folder,
    read_private,
    read_public,
    sync_folder,
    write_private,
)
from peer.daemon.declared import decode_declared, encode_declared
from peer.daemon.members import RESTORED, Restored
from peer.daemon.source_state import known_revocations
from peer.http.access import TOKEN_FILE
from peer.storage.errors import BrokenStore
from peer.storage.restoring import read_backup, restore
from peer.storage.source_log import SourceLog
from peer.storage.store_file import put_in_place, refuse_existing, remove_store

if TYPE_CHECKING:
    from pathlib import Path

MOST_PER_S: Final = 20_000
"""More than a source can write: group commits on a fast disk reach about this."""
_FOLDERS: Final = ("authority", "identity")
_PREFIX: Final = "backup/"
_ABOUT: Final = _PREFIX + "about"
_FILE: Final = re.compile(r"backup/(authority|identity|\.)/([a-z][a-z0-9._-]{0,60})")
_OPTIONS: Final = ("distributary.toml", TOKEN_FILE)
"""What else in the home says how a source runs."""


class About(msgspec.Struct, frozen=True):
    """What a backup says of itself; ``made_at`` in seconds since 1970."""

    network: str
    made_at: float
    version: int = 1


def secrets_of(home: Path) -> dict[str, bytes]:
    """Read the files of a source that are not in its log, by their keys in a backup; quick."""
    found = {}
    for folder in _FOLDERS:
        for path in sorted((home / folder).iterdir()):
            key = f"{_PREFIX}{folder}/{path.name}"
            if path.is_file() and _FILE.fullmatch(key) and not path.name.endswith(".partial"):
                found[key] = read_private(path, f"run: chmod 600 '{path}'")
    for name in _OPTIONS:
        if (home / name).is_file():
            found[f"{_PREFIX}./{name}"] = read_public(home / name, f"run: chmod u+r '{home / name}'")
    return found


def write_backup(log: SourceLog, secrets: dict[str, bytes], path: Path, about: About) -> dict[str, Any]:
    """Write a backup to a file that is not there yet, while the log is in use; it may be large."""
    if not path.parent.is_dir():  # a disk that is not mounted, most likely
        raise BrokenStore(path, f"no such folder: {path.parent}; make it first, or mount it")
    refuse_existing(path)
    partial = path.with_name(path.name + ".unfinished")
    remove_store(partial)
    try:
        log.backup(partial)
        with SourceLog.open(partial) as copy, copy.transaction():
            for key, data in secrets.items():
                copy.put_state(key, data)
            copy.put_state(_ABOUT, msgspec.json.encode(about))
            extent = copy.extent()
        put_in_place(partial, path)
    finally:
        remove_store(partial)
    return {
        "file": str(path), "network": about.network, "generation": extent.generation, "last": extent.last,
        "bytes": path.stat().st_size, "has_root_key": f"{_PREFIX}authority/root.key" in secrets,
    }  # fmt: skip


def restore_home(backup: Path, home: Path, *, above: int = 0, now: datetime | None = None) -> dict[str, Any]:
    """Make a source's home from a backup, where there is none; all or nothing.

    ``above``: a number that documents must lie above, if more is known than the time says.
    """
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        raise BadCredential(home, "there is something already", "name a folder that is empty or not there")
    now = now or datetime.now(UTC)
    last, told = read_backup(backup, _ABOUT)
    if told is None:
        raise BrokenStore(backup, "it is a log without keys; make backups with 'distributary network backup'")
    about = msgspec.json.decode(told, type=About)
    if about.version != 1:
        raise BrokenStore(backup, f"it is a backup of version {about.version}; use the release that made it")
    passed_s = max(now.timestamp() - about.made_at, 0) + 1
    base = max(last + int(MOST_PER_S * passed_s), above)
    partial = home.with_name(home.name + ".restoring")
    if partial.exists():
        shutil.rmtree(partial)
    make_private_folder(partial)
    try:
        extent = restore(backup, partial / "source.sqlite", above=base, generation_above=int(now.timestamp()) - 1)
        lost = _count_on(partial, extent.generation, extent.last)
        partial.replace(home)
        sync_folder(home.parent)
    finally:
        if partial.exists():
            shutil.rmtree(partial)
    return {
        "home": str(home), "network": about.network, "made_at": about.made_at, "generation": extent.generation,
        "kept": last, "base": extent.last, "invitations_forgotten": lost,
    }  # fmt: skip


def _count_on(home: Path, moment: int, base: int) -> int:
    """Put the files in place, and let numbers go on from a moment; return how many invitations were forgotten."""
    with SourceLog.open(home / "source.sqlite") as log:
        kept = log.states(_PREFIX)
        for folder in _FOLDERS:
            make_private_folder(home / folder)
        for key, data in kept.items():
            if found := _FILE.fullmatch(key):
                write_private(home / found[1] / found[2], data)
        credential, authority = Credential.load(home / "identity"), Authority.load(home / "authority")
        keys = credential.settings.dht_keys
        keys = keys.succeeded_by(fresh_dht_key(max(keys.current.number + 1, moment)), datetime.now(UTC))
        credential.with_settings(replace(credential.settings, dht_keys=keys))
        revoked = known_revocations(log, credential, authority)
        fresh = revoked.renumbered(
            max(revoked.number + 1, moment), authority.intermediate, dht_key=keys.current.number
        )
        invitations = msgspec.json.decode(log.get_state("invitations") or b"[]")
        with log.transaction():
            log.put_state("revocations", fresh.encoded)
            log.put_state(RESTORED, msgspec.json.encode(Restored(base, revoked.number, fresh.number)))
            log.put_state("invitations", None)
            for key in kept:
                log.put_state(key, None)
            for name, body in log.spaces.spaces().items():
                before = decode_declared(body)
                after = before.restored(time.time_ns(), base)
                log.spaces.put_space(name, encode_declared(after))
                log.spaces.rename(before.key, after.key)
        return len(invitations)

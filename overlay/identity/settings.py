"""What a site knows of its network besides certificates: where the source is, and the DHT's keys.

Kept as JSON that people may read; times are seconds since 1970. The DHT keys in it are secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

from overlay.identity.address import parse_addresses
from overlay.identity.dht_keys import DhtKey, DhtKeys
from overlay.identity.errors import BadCredential, BadName
from overlay.identity.private_files import read_private, write_private

if TYPE_CHECKING:
    from pathlib import Path

    from overlay.identity.address import Address

_REMEDY: Final = "restore it from a backup, or join the network again"


class _Key(msgspec.Struct, frozen=True):
    number: int
    secret: str


class _File(msgspec.Struct, frozen=True):
    network: str
    source: list[str]
    dht_key: _Key
    previous_dht_key: _Key | None = None
    previous_until_s: float = 0.0
    version: int = 1


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """The network's name, the source's addresses and the DHT keys."""

    network: str
    source: tuple[Address, ...]
    dht_keys: DhtKeys

    @classmethod
    def load(cls, path: Path) -> NetworkSettings:
        """Read the settings, or raise ``BadCredential``."""
        data = read_private(path, _REMEDY)
        try:
            file = msgspec.json.decode(data, type=_File)
            if file.version != 1:
                raise BadCredential(path, f"it has version {file.version}", "use the release that wrote it")
            return cls(file.network, parse_addresses(file.source), _keys(file))
        except (msgspec.MsgspecError, RecursionError, ValueError, OverflowError, BadName) as exc:
            raise BadCredential(path, f"it cannot be read: {exc}", _REMEDY) from exc

    def save(self, path: Path) -> None:
        """Write the settings, durably; the folder is there."""
        keys = self.dht_keys
        until = keys.previous_until
        file = _File(
            self.network,
            [str(address) for address in self.source],
            _written(keys.current),
            None if keys.previous is None else _written(keys.previous),
            0.0 if until is None else until.timestamp(),
        )
        write_private(path, msgspec.json.format(msgspec.json.encode(file)) + b"\n")


def _written(key: DhtKey) -> _Key:
    return _Key(key.number, key.secret.hex())


def _keys(file: _File) -> DhtKeys:
    current = DhtKey(file.dht_key.number, bytes.fromhex(file.dht_key.secret))
    if file.previous_dht_key is None:
        return DhtKeys(current)
    previous = DhtKey(file.previous_dht_key.number, bytes.fromhex(file.previous_dht_key.secret))
    return DhtKeys(current, previous, datetime.fromtimestamp(file.previous_until_s, UTC))

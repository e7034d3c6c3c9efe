"""Values that do not fit a record: a tree of content-addressed chunks.

The value is cut into pieces of 960 bytes, each a chunk. The SHA-256 of the pieces, joined, are cut in the same
way, and so on until what is left fits a record: the manifest. The number of chunks in each level follows from the
value's size, so a reader knows before each step exactly how many chunks it asks for and how long each is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from overlay.dht.errors import LocalTooMany, RemoteCorruptValue
from overlay.dht.records import MOST_WHOLE, Record, make_chunk

if TYPE_CHECKING:
    from collections.abc import Mapping

PIECE: Final = 960
_HASH: Final = 32


@dataclass(frozen=True, slots=True)
class LargeValue:
    """A value in pieces: its record's ``payload`` and ``whole_bytes``, and the chunks to put before it."""

    manifest: bytes
    whole_bytes: int
    chunks: tuple[Record, ...]


def split(value: bytes, expires_at: int) -> LargeValue:
    """Cut a value into chunks that expire with its record.

    >>> large = split(bytes(2000), 10**9)
    >>> len(large.manifest), large.whole_bytes, [len(chunk.payload) for chunk in large.chunks]
    (96, 2000, [960, 80])
    """
    if not 0 < len(value) <= MOST_WHOLE:
        raise LocalTooMany("bytes in a value (and fewer than one are not allowed)", MOST_WHOLE)
    chunks: dict[str, Record] = {}
    level = value
    for _ in level_sizes(len(value)):
        records = [make_chunk(piece, expires_at) for piece in _pieces(level)]
        chunks |= {record.name: record for record in records}  # equal pieces are one chunk
        level = b"".join(bytes.fromhex(record.name) for record in records)
    return LargeValue(level, len(value), tuple(chunks.values()))


def level_sizes(whole_bytes: int) -> list[int]:
    """List how many bytes each level of a value has, from the value up; the manifest is not among them.

    >>> level_sizes(1), level_sizes(100_000), level_sizes(1 << 20)
    ([1], [100000, 3360], [1048576, 34976, 1184])
    """
    sizes = [whole_bytes]
    while (above := -(-sizes[-1] // PIECE) * _HASH) > PIECE:
        sizes.append(above)
    return sizes


def _pieces(level: bytes) -> list[bytes]:
    return [level[at : at + PIECE] for at in range(0, len(level), PIECE)]


@dataclass(slots=True)
class Assembly:
    """Puts a large value together, level by level: fetch ``wanted``, ``give`` the payloads, until ``value``."""

    manifest: bytes
    whole_bytes: int
    value: bytes | None = None
    _sizes: list[int] = field(default_factory=list)
    _hashes: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not 0 < self.whole_bytes <= MOST_WHOLE:
            raise RemoteCorruptValue(f"it claims {self.whole_bytes} bytes")
        self._sizes = level_sizes(self.whole_bytes)
        self._descend(self.manifest)

    @property
    def wanted(self) -> list[str]:
        """List the names of the chunks of the next level, each once."""
        return [] if self.value is not None else list(dict.fromkeys(name.hex() for name in self._hashes))

    def give(self, payloads: Mapping[str, bytes]) -> None:
        """Take the payloads of all wanted chunks; ``RemoteCorruptValue`` unless they are what their names say."""
        size = self._sizes.pop()
        level = []
        for i, name in enumerate(self._hashes):
            piece = payloads.get(name.hex())
            if piece is None or len(piece) != min(PIECE, size - i * PIECE) or sha256(piece).digest() != name:
                raise RemoteCorruptValue(f"chunk {name.hex()} is missing or is not what its name says")
            level.append(piece)
        joined = b"".join(level)
        if self._sizes:
            self._descend(joined)
        else:
            self.value = joined

    def _descend(self, hashes: bytes) -> None:
        if len(hashes) != -(-self._sizes[-1] // PIECE) * _HASH:
            raise RemoteCorruptValue(f"{len(hashes)} bytes of hashes for {self._sizes[-1]} bytes")
        self._hashes = [hashes[at : at + _HASH] for at in range(0, len(hashes), _HASH)]

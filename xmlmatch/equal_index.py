"""Finds the atoms ``label[.='constant']`` by a document's values, so that matching never tries each constant.

A chained hash table in arrays that the kernel reads: ``head`` by bucket, ``next`` by atom. The hash is CRC-32 of
the constant's bytes, begun with the label, computed by zlib here and by ``crc32`` in compiled code.
"""

from __future__ import annotations

import zlib
from typing import Any, Final

import numba
import numpy as np

from xmlmatch.kernels import kernel

_NONE: Final = -1


def _table() -> Any:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0xEDB88320), table >> 1)
    return table.astype(np.int64)


_TABLE: Final = _table()


@kernel
def crc32(chars: Any, start: int, end: int, begun: int) -> Any:
    """CRC-32 of a slice as ``zlib.crc32(bytes, begun)`` gives it."""
    h = numba.int64(begun) ^ 0xFFFFFFFF
    for i in range(start, end):
        h = _TABLE[(h ^ numba.int64(chars[i])) & 0xFF] ^ (h >> 8)
    return h ^ 0xFFFFFFFF


class EqualIndex:
    """The chained table; ``add`` and ``remove`` cost one chain, which stays short by doubling."""

    def __init__(self) -> None:
        self.head = np.full(64, _NONE, np.int32)
        self.next = np.full(64, _NONE, np.int32)
        self._hash = np.zeros(64, np.int64)
        self._in_use = np.zeros(64, np.bool_)
        self._count = 0

    def add(self, atom: int, label: int, constant: bytes) -> None:
        """Enter an atom."""
        if atom >= len(self.next):
            self._resize(2 * atom)
        self._hash[atom] = zlib.crc32(constant, label)
        self._in_use[atom] = True
        self._count += 1
        if self._count > len(self.head):
            self._rehash(2 * len(self.head))
        else:
            self._link(atom)

    def remove(self, atom: int) -> None:
        """Take an atom out."""
        self._in_use[atom] = False
        self._count -= 1
        bucket = int(self._hash[atom]) & (len(self.head) - 1)
        at = int(self.head[bucket])
        if at == atom:
            self.head[bucket] = self.next[atom]
            return
        while self.next[at] != atom:
            at = int(self.next[at])
        self.next[at] = self.next[atom]

    def _link(self, atom: int) -> None:
        bucket = int(self._hash[atom]) & (len(self.head) - 1)
        self.next[atom] = self.head[bucket]
        self.head[bucket] = atom

    def _rehash(self, buckets: int) -> None:
        self.head = np.full(buckets, _NONE, np.int32)
        for atom in np.flatnonzero(self._in_use).tolist():
            self._link(atom)

    def _resize(self, atoms: int) -> None:
        more = atoms - len(self.next)
        self.next = np.concatenate((self.next, np.full(more, _NONE, np.int32)))
        self._hash = np.concatenate((self._hash, np.zeros(more, np.int64)))
        self._in_use = np.concatenate((self._in_use, np.zeros(more, np.bool_)))

"""Keys that live while they are used: a table of numbered, counted, reusable slots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

Key = TypeVar("Key")


class Slots(Generic[Key]):
    """Gives every distinct key a small number; a key released as often as acquired frees its number for reuse."""

    __slots__ = ("_free", "_keys", "_slot_of", "_uses")

    def __init__(self) -> None:
        self._slot_of: dict[Key, int] = {}
        self._keys: list[Key | None] = []
        self._uses: list[int] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        """How many numbers were ever given out: the length arrays over them need."""
        return len(self._keys)

    @property
    def live(self) -> int:
        """How many keys are in use."""
        return len(self._slot_of)

    def key(self, slot: int) -> Key:
        """Return the key that has a number."""
        key = self._keys[slot]
        if key is None:
            raise KeyError(slot)
        return key

    def find(self, key: Key) -> int | None:
        """Return the number of a key in use, or None."""
        return self._slot_of.get(key)

    def find_all(self, keys: Iterable[Key]) -> list[int | None]:
        """Return, for each key, its number or None."""
        return list(map(self._slot_of.get, keys))

    def acquire(self, key: Key) -> tuple[int, bool]:
        """Count one more use of ``key``; return its number and whether it is new."""
        slot = self._slot_of.get(key)
        if slot is not None:
            self._uses[slot] += 1
            return slot, False
        if self._free:
            slot = self._free.pop()
            self._keys[slot] = key
            self._uses[slot] = 1
        else:
            slot = len(self._keys)
            self._keys.append(key)
            self._uses.append(1)
        self._slot_of[key] = slot
        return slot, True

    def release(self, slot: int) -> Key | None:
        """Count one use less; return the key if that was the last, and its number is free now."""
        self._uses[slot] -= 1
        if self._uses[slot]:
            return None
        key = self.key(slot)
        self._keys[slot] = None
        del self._slot_of[key]
        self._free.append(slot)
        return key

    def numbers(self) -> list[int]:
        """List the numbers in use."""
        return list(self._slot_of.values())

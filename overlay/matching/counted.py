"""Numbers for things that are kept as long as somebody mentions them."""

from __future__ import annotations

import sys
from typing import Generic, TypeVar

Key = TypeVar("Key")


class Counted(Generic[Key]):
    """Numbers from 0 on; that of a thing nobody mentions any more is given to another.

    >>> texts = Counted[str]()
    >>> texts.keep(texts.number("a")), texts.number("b"), texts.find("c")
    ('a', 1, -1)
    """

    def __init__(self) -> None:
        self._numbers: dict[Key, int] = {}
        self._keys: list[Key | None] = []
        self._mentions: list[int] = []
        self._free: list[int] = []

    def __getitem__(self, number: int) -> Key:
        found = self._keys[number]
        assert found is not None
        return found

    @property
    def size_bytes(self) -> int:
        """How much memory it takes, elements of tuples left out."""
        held = (self._numbers, self._keys, self._mentions, self._free)
        return sum(map(sys.getsizeof, held)) + sum(map(sys.getsizeof, self._numbers))

    def find(self, key: Key) -> int:
        """Return a number, or -1."""
        return self._numbers.get(key, -1)

    def has(self, number: float) -> bool:
        """Say whether something has this number."""
        return 0 <= number < len(self._keys) and number == int(number) and self._keys[int(number)] is not None

    def number(self, key: Key) -> int:
        """Return the number of a thing, a new one if need be; it is not mentioned by that."""
        found = self._numbers.get(key)
        if found is None:
            if self._free:
                found = self._free.pop()
                self._keys[found] = key
            else:
                found = len(self._keys)
                self._keys.append(key)
                self._mentions.append(0)
            self._numbers[key] = found
        return found

    def keep(self, number: int) -> Key:
        """Mention a thing once more and return it."""
        self._mentions[number] += 1
        return self[number]

    def drop(self, number: int) -> Key:
        """Mention a thing once less and return it."""
        found = self[number]
        self._mentions[number] -= 1
        if self._mentions[number] == 0:
            del self._numbers[found]
            self._keys[number] = None
            self._free.append(number)
        return found

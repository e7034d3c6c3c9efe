"""Marks: the source says with a document which patterns match it, so that not every machine has to match it again.

Theory of operation. The source reads and matches every document anyway. Machines that take whole documents tell
it their patterns, and are told a *number* for each. From then on a document on its way to relays carries *marks*:
a bit for every number, set where the pattern matches. Relays pass marks on as they came, so one machine matches
for all, and the others look up a bit per pattern.

Marks are advice, never needed: whoever has none, cannot read them, or has a pattern without a number matches the
document itself, as everybody does with a document read back from a store, which keeps no marks. Numbers are
given once and stay as long as the *numbering* they are of, which has a name that no other has; a source that
starts again begins another. Marks say of which numbering they are and how many numbers it had then: a pattern
numbered later is not judged by them. Now and then a relay matches all the same and compares (``relay``).

    marks: the name of the numbering (8 bytes), how many numbers (4 bytes, big-endian), the bits from the lowest on
"""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, Final

import numpy as np

from overlay.wire.frames import MOST_MARKS
from xmlmatch import Matcher, Pattern, PatternError
from xmlmatch.errors import XmlMatchError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from xmlmatch import Document

NAME_BYTES: Final = 8
_HEAD: Final = NAME_BYTES + 4
MOST_NUMBERS: Final = 8 * (MOST_MARKS - _HEAD)
"""How many patterns are numbered: matching so many takes the source about two milliseconds per document."""
_FULL_S: Final = 3600.0
"""A full numbering is begun anew after so long: most of it may be of subscriptions that have ended."""
_BITS: Final = tuple(bytes(byte >> bit & 1 for bit in range(8)) for byte in range(256))


class Marking:
    """The patterns that have numbers, at the source. ``name``: of the first numbering; those that follow on it
    count up from there.

    >>> marking = Marking(b"numbers1")
    >>> name, numbers = marking.number(["//a{val}", "//b{val}"], now=0.0)
    >>> from xmlmatch import Document
    >>> marking.marks(Document.parse(b"<r><b/></r>")).hex(" ", -4)
    '6e756d62 65727331 00000002 02'
    """

    def __init__(self, name: bytes, most: int = MOST_NUMBERS) -> None:
        self._most = most
        self._begin(name, 0.0)

    def _begin(self, name: bytes, now: float) -> None:
        self._name, self._begun = name, now
        self._matcher = Matcher()
        self._numbers: dict[str, int] = {}

    def number(self, texts: Iterable[str], now: float) -> tuple[bytes, dict[str, int]]:
        """Give patterns numbers; return the name of the numbering, and the number of each pattern that has one:
        there is not always room, and what cannot be read has none."""
        known = {}
        for text in texts:
            number = self._number(text, now)
            if number is not None:
                known[text] = number
        return self._name, {text: number for text, number in known.items() if self._numbers.get(text) == number}

    def _number(self, text: str, now: float) -> int | None:
        known = self._numbers.get(text)
        if known is not None:
            return known
        if len(self._numbers) >= self._most:
            if now - self._begun < _FULL_S:
                return None
            following = (int.from_bytes(self._name) + 1) % (1 << 8 * NAME_BYTES)
            self._begin(following.to_bytes(NAME_BYTES), now)
        try:
            pattern = Pattern.parse(text)
        except PatternError:
            return None
        if pattern.text != text:
            return None
        # Nothing is ever removed from the matcher, so its keys are the numbers.
        self._numbers[text] = number = self._matcher.add(pattern)
        return number

    def marks(self, document: Document) -> bytes:
        """Say which patterns match a document; empty if nobody asked, or matching takes too much."""
        count = len(self._numbers)
        if not count:
            return b""
        try:
            keys = self._matcher.match(document).keys
        except XmlMatchError:
            return b""
        flags = np.zeros(count, np.bool_)
        flags[keys] = True
        return self._name + count.to_bytes(4) + np.packbits(flags, bitorder="little").tobytes()


class Marked:
    """Reads of marks which of some patterns match. ``numbers``: of every one of them.

    >>> marked = Marked(b"numbers1", {"//a{val}": 0, "//b{val}": 1})
    >>> marked.texts(bytes.fromhex("6e756d6265727331 00000002 02"))
    ['//b{val}']
    """

    def __init__(self, name: bytes, numbers: Mapping[str, int]) -> None:
        self._name, self._texts, self._numbers = name, list(numbers), list(numbers.values())
        self._count = max(self._numbers, default=-1) + 1

    def texts(self, marks: bytes) -> list[str] | None:
        """Return the patterns that match; None where these marks do not say."""
        count = int.from_bytes(marks[NAME_BYTES:_HEAD])
        bits = marks[_HEAD:]
        if not marks.startswith(self._name) or count < self._count or len(bits) != (count + 7) // 8:
            return None
        flags = b"".join(map(_BITS.__getitem__, bits))
        return list(compress(self._texts, map(flags.__getitem__, self._numbers)))


class Numbers:
    """The numbers that a machine was told, of the patterns that it wants now.

    >>> numbers = Numbers()
    >>> numbers.want("//a{val}"), numbers.missing()
    (None, ['//a{val}'])
    >>> numbers.told(b"numbers1", {"//a{val}": 5}), numbers.missing()
    (None, [])
    """

    def __init__(self) -> None:
        self._name = b""
        self._wanted: dict[str, None] = {}
        self._known: dict[str, int] = {}
        self._marked: Marked | None = None
        self._is_other = False

    def want(self, text: str) -> None:
        """A pattern is going to be asked for."""
        self._wanted[text], self._marked = None, None

    def unwant(self, text: str) -> None:
        """A pattern is not asked for any more."""
        self._wanted.pop(text, None)
        self._known.pop(text, None)
        self._marked = None

    def missing(self) -> list[str]:
        """List the patterns whose numbers the source is to be asked for: all if it uses another numbering now."""
        return [text for text in self._wanted if self._is_other or text not in self._known]

    def told(self, name: bytes, numbers: Mapping[str, int]) -> None:
        """The source has said what numbers some patterns have."""
        if name != self._name:
            self._known.clear()
        self._name, self._is_other, self._marked = name, False, None
        self._known |= {text: number for text, number in numbers.items() if text in self._wanted}

    def doubt(self) -> None:
        """What marks said was wrong: nothing is known any more."""
        self._known.clear()
        self._marked = None

    def texts(self, marks: bytes) -> list[str] | None:
        """Return which of the patterns match a document with these marks; None if that is to be found out here."""
        if not marks:
            return None
        if not marks.startswith(self._name):
            self._is_other = True
            return None
        if self._marked is None:
            if len(self._known) < len(self._wanted):
                return None
            self._marked = Marked(self._name, self._known)
        return self._marked.texts(marks)

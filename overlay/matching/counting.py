"""The counting algorithm: for each satisfied predicate, count one more for every conjunction that has it.

A conjunction matches when it has counted as many as it has predicates. What later algorithms are measured against.
Conjunctions stand on *lines*, which are reused only after a purge: to take a deleted one out of the long lists of
its predicates would take longer than matching, so its line is marked and the lists are cleaned when half of it is
dead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from overlay.matching.arena import Arena, block_class, free_block, take_block
from overlay.matching.codes import LISTS
from overlay.matching.kernels import grown, kernel
from overlay.matching.marking_kernels import holds, satisfy, unmark
from overlay.matching.predicate_fields import COUNT, OFFSET, Predicates

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from overlay.matching.predicate_index import PredicateIndex
    from overlay.matching.vocabulary import Event

_DEAD: Final = 255  # more predicates than a conjunction may have
# Fields of a line.
_ROW: Final = 0
_OFFSET: Final = 1
_SIZE: Final = 2
# Fields of a predicate's list of lines.
_AT: Final = 0
_CLASS: Final = 1
_COUNT: Final = 2


class _Lines(NamedTuple):
    lines: NDArray[np.int32]
    needed: NDArray[np.uint8]
    counts: NDArray[np.uint8]
    line_of: NDArray[np.int32]
    lists: NDArray[np.int32]
    arena: Arena


class Counting:
    """Finds matching rows by counting; rows are numbered by whoever uses it."""

    def __init__(self, index: PredicateIndex) -> None:
        self._index = index
        self._arrays = _Lines(
            np.zeros((0, 3), np.int32), np.zeros(0, np.uint8), np.zeros(0, np.uint8), np.zeros(0, np.int32),
            np.zeros((0, 3), np.int32), Arena.empty(),
        )  # fmt: skip
        self._used = 0
        self._dead = 0
        self._free: list[int] = []
        self._always: set[int] = set()
        """Rows without predicates."""

    @property
    def size_bytes(self) -> int:
        a = self._arrays
        return sum(x.nbytes for x in a if isinstance(x, np.ndarray)) + a.arena.data.nbytes

    def add(self, rows: NDArray[np.int64], numbers: NDArray[np.int32], ends: NDArray[np.int64]) -> None:
        """Add conjunctions of predicates, each under the number of a row."""
        lines = self._take_lines(len(rows))
        a = self._arrays
        self._arrays = a = a._replace(
            lines=grown(a.lines, self._used), needed=grown(a.needed, self._used),
            counts=grown(a.counts, self._used), line_of=grown(a.line_of, int(rows.max(initial=-1)) + 1, -1),
            lists=grown(a.lists, len(self._index.arrays.records), -1),
        )  # fmt: skip
        self._always.update(rows[np.diff(ends, prepend=0) == 0].tolist())
        done = 0
        while (done := _add(self._arrays, rows, lines, numbers, ends, done)) < len(rows):
            self._arrays = self._arrays._replace(arena=self._arrays.arena.grow(1 << 10))

    def predicates(self, row: int) -> NDArray[np.int32]:
        """Return the predicates of a row."""
        a = self._arrays
        line = a.lines[a.line_of[row]]
        return a.arena.data[line[_OFFSET] : line[_OFFSET] + line[_SIZE]].copy()

    def remove(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """Remove rows; return the predicates of all, of which the caller lets go."""
        found = np.empty(len(rows) * _DEAD, np.int32)
        count = _remove(self._arrays, rows, found)
        self._dead += len(rows)
        self._always.difference_update(rows.tolist())
        if self._dead > 1_000 + self._used // 2:
            self.purge()
        return found[:count]

    def purge(self) -> None:
        """Take dead lines out of all lists."""
        freed = np.empty(self._used, np.int32)
        count = _purge(self._arrays, self._used, freed)
        self._free += freed[:count].tolist()
        self._dead = 0

    def match(self, event: Event, reached: NDArray[np.int32], found: NDArray[np.int32]) -> int:
        """Put matching rows into ``found``; return how many there are, more than fit if it is too short."""
        always = len(self._always)
        if always > len(found):
            return always + len(self._arrays.lines)
        found[:always] = sorted(self._always)
        attributes, numbers, texts, prefixes = event
        return int(
            _count(self._index.arrays, self._arrays, attributes, numbers, texts, prefixes, reached, found, always)
        )

    def _take_lines(self, count: int) -> NDArray[np.int32]:
        old = [self._free.pop() for _ in range(min(count, len(self._free)))]
        new = np.arange(self._used, self._used + count - len(old), dtype=np.int32)
        self._used += len(new)
        return np.concatenate([np.array(old, np.int32), new])


@kernel
def _add(c: _Lines, rows: Any, lines: Any, numbers: Any, ends: Any, start: int) -> int:
    """Add rows from ``start`` on; return how many are done, fewer if the arena is full."""
    for i in range(start, len(rows)):
        begin = ends[i - 1] if i > 0 else 0
        size = ends[i] - begin
        for j in range(begin, ends[i]):
            if not _make_room(c, numbers[j]):
                return i
        offset = take_block(c.arena, block_class(size))
        if offset < 0:
            return i
        line = lines[i]
        for j in range(size):
            at = numbers[begin + j]
            c.arena.data[offset + j] = at
            entry = c.lists[at]
            c.arena.data[entry[_AT] + entry[_COUNT]] = line
            entry[_COUNT] += 1
        c.lines[line, _ROW], c.lines[line, _OFFSET], c.lines[line, _SIZE] = rows[i], offset, size
        c.needed[line] = size
        c.counts[line] = 0
        c.line_of[rows[i]] = line
    return len(rows)


@kernel
def _make_room(c: _Lines, at: int) -> bool:
    entry = c.lists[at]
    if entry[_AT] < 0:
        offset = take_block(c.arena, 1)
        if offset < 0:
            return False
        entry[_AT], entry[_CLASS], entry[_COUNT] = offset, 1, 0
    elif entry[_COUNT] == 1 << entry[_CLASS]:
        offset = take_block(c.arena, entry[_CLASS] + 1)
        if offset < 0:
            return False
        for i in range(entry[_COUNT]):
            c.arena.data[offset + i] = c.arena.data[entry[_AT] + i]
        free_block(c.arena, entry[_AT], entry[_CLASS])
        entry[_AT], entry[_CLASS] = offset, entry[_CLASS] + 1
    return True


@kernel
def _remove(c: _Lines, rows: Any, predicates: Any) -> int:
    """Let rows be dead; write their predicates, one row after the other, and return how many."""
    count = 0
    for row in rows:
        line = c.line_of[row]
        for i in range(c.lines[line, _SIZE]):
            predicates[count] = c.arena.data[c.lines[line, _OFFSET] + i]
            count += 1
        c.line_of[row] = -1
        c.needed[line] = _DEAD
    return count


@kernel
def _purge(c: _Lines, used: int, freed: Any) -> int:
    for at in range(len(c.lists)):
        entry = c.lists[at]
        kept = 0
        for i in range(entry[_AT], entry[_AT] + max(entry[_COUNT], 0)):
            line = c.arena.data[i]
            if c.needed[line] != _DEAD:
                c.arena.data[entry[_AT] + kept] = line
                kept += 1
        if entry[_AT] >= 0:
            entry[_COUNT] = kept
            if kept == 0:
                free_block(c.arena, entry[_AT], entry[_CLASS])
                entry[_AT] = -1
    count = 0
    for line in range(used):
        if c.needed[line] == _DEAD and c.lines[line, _SIZE] >= 0:
            free_block(c.arena, c.lines[line, _OFFSET], block_class(c.lines[line, _SIZE]))
            c.lines[line, _SIZE] = -1
            freed[count] = line
            count += 1
    return count


@kernel
def _count_list(c: _Lines, at: int, found: Any, count: int) -> int:
    if at >= len(c.lists):
        return count
    entry = c.lists[at]
    for i in range(entry[_AT], entry[_AT] + max(entry[_COUNT], 0)):
        line = c.arena.data[i]
        c.counts[line] += 1
        if c.counts[line] == c.needed[line]:
            if count < len(found):
                found[count] = c.lines[line, _ROW]
            count += 1
    return count


@kernel
def _count_lists(p: Predicates, c: _Lines, attribute: int, found: Any, count: int) -> int:
    """Count for the satisfied predicates in the lists of an attribute."""
    for place in range(attribute * LISTS, (attribute + 1) * LISTS):
        entry = p.lists[place]
        for i in range(entry[OFFSET], entry[OFFSET] + entry[COUNT]):
            at = p.arena.data[i]
            if holds(p, at):
                count = _count_list(c, at, found, count)
    return count


@kernel
def _count(
    p: Predicates, c: _Lines, attributes: Any, numbers: Any, texts: Any, prefixes: Any, reached: Any, found: Any,
    count: int,
) -> int:  # fmt: skip
    hit = satisfy(p, attributes, numbers, texts, prefixes, reached)
    for i in range(hit):
        count = _count_list(c, reached[i], found, count)
    for i in range(len(attributes)):
        count = _count_lists(p, c, attributes[i], found, count)
    unmark(p, attributes, numbers, texts, reached, hit)
    c.counts[:] = 0
    return count

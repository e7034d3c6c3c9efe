"""The predicates of a matcher: numbers for them, and for an event, those it satisfies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from overlay.matching import codes
from overlay.matching.arena import Arena
from overlay.matching.cell_kernels import LEVELS
from overlay.matching.kernels import grown
from overlay.matching.predicate_fields import (
    ALSO,
    ATTRIBUTE,
    CELLS,
    EVENTS,
    FIELDS,
    FREE,
    LEVEL,
    LIVE,
    NOW,
    OPERATOR,
    USED,
    Predicates,
)
from overlay.matching.predicate_kernels import intern_all, rehash, release_all

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from overlay.matching.batch import Batch
    from overlay.matching.vocabulary import Event, Vocabulary

_LIST_FIELDS: Final = 6
_START: Final = 64


class PredicateIndex:
    """Owns the arrays; ``arrays`` is what kernels take, and changes when something grows."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        counters = np.zeros(5, np.int64)
        counters[FREE] = -1
        self.arrays = Predicates(
            np.zeros((_START, FIELDS), np.int32), np.zeros(_START), np.zeros(_START, np.uint8),
            np.zeros(_START, np.int32), np.full(_START, -1, np.int32), np.zeros((0, _LIST_FIELDS), np.int32),
            np.full((0, 2), -1, np.int32), Arena.empty(), counters, np.zeros((0, LEVEL + LEVELS), np.int32),
            np.zeros((0, NOW + 1)),
        )  # fmt: skip
        self._members: dict[int, tuple[NDArray[np.int32], NDArray[np.int64]]] = {}
        self._free_links: list[int] = []

    def __len__(self) -> int:
        return int(self.arrays.counters[LIVE])

    @property
    def lists(self) -> int:
        """How many distinct ``in`` there are."""
        return len(self._members)

    def most_reached(self, event: Event) -> int:
        """Return how many predicates an event can reach: two equalities and two cells per level, and the rest."""
        attributes = len(event.attributes)
        cells = min(2 * LEVELS * attributes, int(self.arrays.counters[CELLS]))
        return 2 * attributes + len(event.prefixes) + self.lists + cells

    @property
    def size_bytes(self) -> int:
        """How much memory the arrays take."""
        a = self.arrays
        return sum(x.nbytes for x in a if isinstance(x, np.ndarray)) + a.arena.data.nbytes

    def add(self, batch: Batch) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Number the predicates of conjunctions; return the numbers, and where those of each conjunction end."""
        conditions = len(batch.attributes)
        self.reserve_attributes()
        numbers, ends = np.empty(conditions + len(batch), np.int32), np.zeros(len(batch), np.int64)
        changed = np.empty(conditions, np.int32)
        done = filled = 0
        while True:
            done, filled, altered = intern_all(
                self.arrays, batch.offsets, batch.attributes, batch.operators, batch.values, done, numbers, ends,
                changed,
            )  # fmt: skip
            for at in changed[:altered]:
                self._keep_name(int(at))
            if done == len(batch):
                return numbers[:filled], ends
            self._grow(int(batch.offsets[done + 1] - batch.offsets[done]) + 1)

    def remove(self, numbers: NDArray[np.int32]) -> None:
        """Use predicates once less each."""
        changed = np.empty(len(numbers), np.int32)
        altered = release_all(self.arrays, numbers, changed)
        for at in changed[:altered]:
            self._drop_name(int(at))

    def of(self, number: int) -> tuple[int, int, float]:
        """Return attribute, operator and value of a predicate."""
        record = self.arrays.records[number]
        return int(record[ATTRIBUTE]), int(record[OPERATOR]), float(self.arrays.values[number])

    def age(self) -> None:
        """Let what was seen of events count half."""
        self.arrays.hits[:] >>= 1
        self.arrays.counters[EVENTS] >>= 1

    def reserve_attributes(self) -> None:
        """Make room for the lists of every attribute."""
        a, attributes = self.arrays, len(self._vocabulary.attributes)
        if attributes * codes.LISTS > len(a.lists):
            lists = grown(a.lists, attributes * codes.LISTS)
            lists[len(a.lists) :, 0] = -1
            kinds, spans = grown(a.kinds, attributes), grown(a.spans, attributes)
            spans[len(a.spans) :] = np.inf, -np.inf, np.nan
            self.arrays = a._replace(lists=lists, kinds=kinds, spans=spans)

    def _grow(self, more: int) -> None:
        """Make room for the predicates of one more conjunction, or for what stands in lists."""
        a = self.arrays
        size = int(a.counters[USED]) + more
        if size <= len(a.records):
            self.arrays = a._replace(arena=a.arena.grow(1 << 10))
            return
        self.arrays = a = a._replace(
            records=grown(a.records, size), values=grown(a.values, size), satisfied=grown(a.satisfied, size),
            hits=grown(a.hits, size),
        )  # fmt: skip
        if len(a.records) > len(a.buckets):
            buckets = 1 << len(a.records).bit_length()
            self.arrays = a._replace(buckets=np.full(buckets, -1, np.int32))
            rehash(self.arrays)

    def _keep_name(self, at: int) -> None:
        attribute, operator, value = self.of(at)
        if operator != codes.IN:
            self._vocabulary.keep_text(int(value), attribute if operator == codes.PREFIX else None)
            return
        # The members are ordinary equalities, used by the ``in``; their texts are kept before it is.
        equals = self._vocabulary.equalities(int(value), attribute)
        members, _ = self.add(equals)
        links = np.array([self._link() for _ in members], np.int64)
        records, chain = self.arrays.records, self.arrays.links
        for member, link in zip(members, links, strict=True):
            chain[link] = at, records[member, ALSO]
            records[member, ALSO] = link
        self._members[at] = members.copy(), links

    def _drop_name(self, at: int) -> None:
        record = self.arrays.records[at]
        attribute, operator = -1 - int(record[ATTRIBUTE]), int(record[OPERATOR])
        value = int(self.arrays.values[at])
        if operator != codes.IN:
            self._vocabulary.drop_text(value, attribute if operator == codes.PREFIX else None)
            return
        members, links = self._members.pop(at)
        for member, link in zip(members, links, strict=True):
            self._unlink(int(member), int(link))
        self._vocabulary.drop_list(value)
        self.remove(members)

    def _link(self) -> int:
        if not self._free_links:
            size = len(self.arrays.links)
            self.arrays = self.arrays._replace(links=grown(self.arrays.links, size + 16, -1))
            self._free_links = list(range(len(self.arrays.links) - 1, size - 1, -1))
        return self._free_links.pop()

    def _unlink(self, member: int, link: int) -> None:
        records, chain = self.arrays.records, self.arrays.links
        at = int(records[member, ALSO])
        if at == link:
            records[member, ALSO] = chain[link, 1]
        else:
            while chain[at, 1] != link:
                at = int(chain[at, 1])
            chain[at, 1] = chain[link, 1]
        self._free_links.append(link)

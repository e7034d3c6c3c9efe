"""The one interface of all filtering algorithms.

A *subscription* has a number, given at ``insert``, and one or several conjunctions, each on a *row*. An engine
knows rows and predicates only. Numbers of deleted subscriptions are given out again, the latest first. What is
inserted and deleted one by one waits in ``pending``; nobody can tell but by the time that calls take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from overlay.matching import codes
from overlay.matching.dynamic import Dynamic
from overlay.matching.errors import BadBatch
from overlay.matching.explaining import Explanation, failures
from overlay.matching.kernels import grown
from overlay.matching.numbering import Numbering
from overlay.matching.ownership import Ownership
from overlay.matching.pending import MOST, Pending
from overlay.matching.predicate_index import PredicateIndex
from overlay.matching.vocabulary import Event, ValueType, Vocabulary
from rewriting.filters import Disjunction, Filter, OneOf

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from overlay.matching.batch import Batch
    from rewriting.filters import Condition, Value

MAX_PREDICATES: Final = 250
"""Of one conjunction: counts of satisfied ones are bytes."""
CHUNK: Final = 1 << 16
"""Conjunctions of a batch that are taken at once."""


class Engine(Protocol):
    """What an algorithm does with rows."""

    @property
    def size_bytes(self) -> int: ...

    def add(self, rows: NDArray[np.int64], numbers: NDArray[np.int32], ends: NDArray[np.int64]) -> None:
        """Add conjunctions of predicates, each under the number of a row."""

    def remove(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """Remove rows; return the predicates of all, of which the caller lets go."""

    def predicates(self, row: int) -> NDArray[np.int32]:
        """Return the predicates of a row."""

    def match(self, event: Event, reached: NDArray[np.int32], found: NDArray[np.int32]) -> int:
        """Put matching rows into ``found``; return how many there are, more than fit if it is too short."""


class Matcher:
    """Finds the subscriptions that an event matches, by one of ``ALGORITHMS``; not for several threads at once.

    >>> matcher = Matcher()
    >>> cheap = matcher.insert(Filter.parse("topic = 'sport' and price < 50"))
    >>> either = matcher.insert(Disjunction.parse("topic = 'art' or title prefix 'Row'"))
    >>> matcher.match({"topic": "sport", "price": 20, "title": "Rowing"}).tolist()
    [0, 1]
    >>> print(matcher.explain({"topic": "sport", "price": 60}, cheap))
    price < 50: is '60'
    >>> matcher.delete(cheap)
    >>> matcher.match({"topic": "sport", "price": 20}).tolist()
    []
    """

    def __init__(
        self,
        engine: Callable[[PredicateIndex], Engine] = Dynamic,
        *,
        types: Mapping[str, ValueType] | None = None,
    ) -> None:
        self._vocabulary = Vocabulary(types)
        self._index = PredicateIndex(self._vocabulary)
        self._engine = engine(self._index)
        self._subscriptions = Numbering()
        self._rows = Numbering()
        self._owned = Ownership()
        self._pending = Pending()
        self._reached: NDArray[np.int32] = np.zeros(0, np.int32)
        self._found: NDArray[np.int32] = np.zeros(64, np.int32)

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, number: int) -> bool:
        return number in self._owned or number in self._pending

    @property
    def engine(self) -> Engine:
        """The engine, with all rows in it."""
        self._flush()
        return self._engine

    @property
    def size_bytes(self) -> int:
        """How much memory the matcher takes."""
        own = (self._reached, self._found, self._rows.free, self._subscriptions.free)
        parts = (self._index, self._vocabulary, self.engine, self._owned)
        return sum(x.nbytes for x in own) + sum(x.size_bytes for x in parts)

    def attribute(self, name: str) -> int:
        """Return the number by which batches name an attribute."""
        return self._vocabulary.attribute(name)

    def text(self, text: str) -> int:
        """Return the number by which batches name a text."""
        self._flush()  # what a deletion that waits mentions last is forgotten by then
        return self._vocabulary.text(text)

    def one_of(self, test: OneOf) -> int:
        """Return the number by which batches name a list of constants."""
        self._flush()
        return self._vocabulary.one_of(test)

    def insert(self, wanted: Filter | Disjunction) -> int:
        """Add a subscription and return its number; ``WrongType`` if it goes against declared types."""
        filters = wanted.filters if isinstance(wanted, Disjunction) else (wanted,)
        for one in filters:
            _check_size(len(one.conditions) + len(one.select))
        written = self._vocabulary.encode(filters)
        number = self._subscriptions.take_one()
        self._pending.insert(number, written)
        if len(self._pending) >= MOST:
            self._flush()
        return number

    def insert_many(self, batch: Batch) -> NDArray[np.int64]:
        """Add a subscription for each conjunction of a batch, all or none; return their numbers."""
        self._flush()
        _check_size(int(np.diff(batch.offsets).max(initial=0)))
        self._vocabulary.check(batch)
        self._vocabulary.note_texts(batch)
        numbers = self._subscriptions.take(len(batch))
        for start in range(0, len(batch), CHUNK):
            self._add_rows(batch.part(start, start + CHUNK), numbers[start : start + CHUNK])
        return numbers

    def delete(self, number: int) -> None:
        """Remove a subscription; ``UnknownSubscription`` if there is none of this number."""
        if number in self._pending:
            self._flush()
        self._pending.removed += self._owned.forget(number)
        self._subscriptions.give(number)
        if len(self._pending) >= MOST:
            self._flush()

    def match(self, message: Mapping[str, Value]) -> NDArray[np.int64]:
        """Return the numbers of the subscriptions that a message satisfies, in order."""
        return self.match_event(self.encode(message))

    def match_event(self, event: Event) -> NDArray[np.int64]:
        """Return the same for a message that is written as arrays already."""
        self._flush()
        self._index.reserve_attributes()  # some may be known by name only
        if (most := self._index.most_reached(event)) > len(self._reached):
            self._reached = grown(self._reached, most)
        count = self._engine.match(event, self._reached, self._found)
        if count > len(self._found):
            self._found = np.zeros(count + count // 4, np.int32)
            count = self._engine.match(event, self._reached, self._found)
        return self._owned.owners(self._found[:count])

    def encode(self, message: Mapping[str, Value]) -> Event:
        """Write a message as arrays, good until the next insertion or deletion."""
        self._flush()
        return self._vocabulary.event(message)

    def explain(self, message: Mapping[str, Value], number: int) -> Explanation:
        """Say which predicates of a subscription a message fails."""
        self._flush()
        return Explanation(tuple(failures(self._asked(row), message) for row in self._owned.rows(number)))

    def _asked(self, row: int) -> list[tuple[str, Condition | None]]:
        predicates = [self._index.of(int(at)) for at in self._engine.predicates(row)]
        names = self._vocabulary.names
        return [
            (names[a], self._vocabulary.condition(a, operator, value))
            for a, operator, value in predicates
            if operator != codes.CELL
        ]

    def _flush(self) -> None:
        """Make the changes that wait."""
        if not self._pending:
            return
        changes, self._pending = self._pending, Pending()
        self._add_rows(changes.batch(), changes.owners())
        if changes.removed:
            rows = np.array(changes.removed)
            self._index.remove(self._engine.remove(rows))
            self._rows.give_all(rows)

    def _add_rows(self, batch: Batch, owners: NDArray[np.int64]) -> None:
        if not len(batch):
            return
        numbers, ends = self._index.add(batch)
        rows = self._rows.take(len(batch))
        self._engine.add(rows, numbers, ends)
        self._owned.add(rows, owners)


def _check_size(predicates: int) -> None:
    if predicates > MAX_PREDICATES:
        raise BadBatch(f"a conjunction has up to {MAX_PREDICATES} predicates, not {predicates}")

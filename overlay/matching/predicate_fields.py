"""The arrays that hold predicates, and what stands where in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from overlay.matching.arena import Arena

# Fields of a predicate.
ATTRIBUTE: Final = 0
OPERATOR: Final = 1
USES: Final = 2
NEXT: Final = 3  # in its bucket, or among the free
PLACE: Final = 4  # in its list
ALSO: Final = 5  # of an equality: the first link to an ``in``
ACCESS: Final = 6  # the access predicate that is this one alone
FIELDS: Final = 8
# Fields of a list.
OFFSET: Final = 0
CLASS: Final = 1
SORTED: Final = 2
COUNT: Final = 3
IDLE: Final = 4
ASKED: Final = 5  # whether its inequalities are compared when somebody asks
# Fields of an attribute, in ``kinds`` and ``spans``.
ALL_CELLS: Final = 2
LEVEL: Final = 3  # the lowest, with others behind
LEAST: Final = 0
GREATEST: Final = 1
NOW: Final = 2
# Counters.
USED: Final = 0
FREE: Final = 1
EVENTS: Final = 2
LIVE: Final = 3
CELLS: Final = 4
ASK: Final = 2
"""In ``satisfied``: compare."""


class Predicates(NamedTuple):
    """The arrays of an index; few, because a compiled call passes each of them."""

    records: NDArray[np.int32]
    values: NDArray[np.float64]
    satisfied: NDArray[np.uint8]
    hits: NDArray[np.int32]
    """How often each reached predicate was satisfied lately."""
    buckets: NDArray[np.int32]
    lists: NDArray[np.int32]
    links: NDArray[np.int32]
    """Pairs: an ``in``, and the next link behind the same equality."""
    arena: Arena
    counters: NDArray[np.int64]
    kinds: NDArray[np.int32]
    """Per attribute: how many numbers and how many texts equalities mention, and how many cells of each level."""
    spans: NDArray[np.float64]
    """Per attribute: the least and the greatest number among constants, and that of the event at hand, or NaN."""

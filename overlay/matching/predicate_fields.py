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
CONSTANT: Final = 2  # of an inequality, among ``doubles``: where others have PLACE and ALSO
FIELDS: Final = 8
# Fields of a list.
OFFSET: Final = 0
CLASS: Final = 1
SORTED: Final = 2
COUNT: Final = 3
IDLE: Final = 4
ASKED: Final = 5  # whether its inequalities are compared when somebody asks
# Counters.
USED: Final = 0
FREE: Final = 1
EVENTS: Final = 2
LIVE: Final = 3
CELLS: Final = 4
ASK: Final = 2
"""In ``satisfied``: compare."""


class Predicates(NamedTuple):
    """The arrays of an index."""

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
    """Per attribute: how many numbers and how many texts equalities mention."""
    spans: NDArray[np.float64]
    """Per attribute: the least and the greatest number among constants."""
    levels: NDArray[np.int32]
    """Per attribute and level: how many cells there are; and at the end of all levels together."""
    doubles: NDArray[np.float64]
    """The records as doubles: an inequality has its constant there too, so that comparing reads one place."""
    now: NDArray[np.float64]
    """Per attribute: what number the event at hand has, NaN if none."""

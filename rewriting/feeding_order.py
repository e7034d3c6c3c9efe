"""Who may feed whom: the fixed order that keeps every mix of rewritings free of cycles.

A subscription's *feeding key* is, in this order of weight: what its pattern returns (more first), the capacity
tier its machine had when it joined (higher first, zero last), its number in the catalog (lower first). Keys never
change, and no two are equal.

A view may feed a query if it embeds in the query and, where the query embeds in the view too, its key is smaller.
Why no cycle can arise, whatever rewritings are mixed: embedding is transitive, so all members of a cycle embed in
each other; then each has a smaller key than the next, around the cycle and back to the first.

More attributes first: of two patterns that embed in each other, the one that returns more can provide for the
other, and hardly ever the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import total_ordering
from typing import TYPE_CHECKING

from rewriting.table import WEIGHTS

if TYPE_CHECKING:
    from xmlmatch import Pattern


def weight(pattern: Pattern) -> int:
    """Return how much a pattern returns: 1 for each ``val``, 2 for each ``cont``; IDs travel anyway."""
    return sum(WEIGHTS[what] for node in pattern.nodes for what in node.returns)


@total_ordering
@dataclass(frozen=True, slots=True)
class FeedingKey:
    """The place of a subscription in the feeding order; smaller keys feed larger ones.

    >>> FeedingKey(3, 0, 9) < FeedingKey(2, 5, 1) < FeedingKey(2, 4, 0) < FeedingKey(2, 4, 1) < FeedingKey(2, 0, 0)
    True
    """

    weight: int
    tier: int
    number: int

    @property
    def rank(self) -> tuple[int, int, int]:
        """What keys are compared by."""
        return (-self.weight, -self.tier, self.number)

    def __lt__(self, other: FeedingKey) -> bool:
        return self.rank < other.rank

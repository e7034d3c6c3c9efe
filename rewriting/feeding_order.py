"""Who may feed whom: the fixed order that keeps every mix of rewritings free of cycles.

A pattern's *feeding key* is, in this order of weight: what it returns (more first), a hash of its text, the text.
It hangs on the pattern alone: subscriptions come and go, plans are made anew, sources restart, and no key changes.
Nothing about it is stored; whoever has two patterns knows which comes first, the planner as well as the source. No
two keys are equal. Equal patterns are ordered by their subscriptions, which is not for this module to say.

A view may feed a query if it embeds in the query and, where the query embeds in the view too, its key is smaller.
Why no cycle can arise, whatever rewritings are mixed: embedding is transitive, so all members of a cycle embed in
each other; then each has a smaller key than the next, around the cycle and back to the first.

More attributes first: of two patterns that embed in each other, the one that returns more can provide for the
other, and hardly ever the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import total_ordering
from hashlib import blake2b
from typing import TYPE_CHECKING

from rewriting.embedding import embeds
from rewriting.table import WEIGHTS

if TYPE_CHECKING:
    from xmlmatch import Pattern


def weight(pattern: Pattern) -> int:
    """Return how much a pattern returns: 1 for each ``val``, 2 for each ``cont``; IDs travel anyway."""
    return sum(WEIGHTS[what] for node in pattern.nodes for what in node.returns)


def text_hash(pattern: Pattern) -> int:
    """Hash a pattern by its text to 63 bits: the same on every machine."""
    return int.from_bytes(blake2b(pattern.text.encode(), digest_size=8).digest(), "big") >> 1


@total_ordering
@dataclass(frozen=True, slots=True)
class FeedingKey:
    """The place of a pattern in the feeding order; smaller keys feed larger ones.

    >>> FeedingKey(3, 0, "//c") < FeedingKey(2, 5, "//a") < FeedingKey(2, 4, "//a") < FeedingKey(2, 4, "//b")
    True
    """

    weight: int
    mark: int
    text: str

    @property
    def rank(self) -> tuple[int, int, str]:
        """What keys are compared by."""
        return (-self.weight, -self.mark, self.text)

    def __lt__(self, other: FeedingKey) -> bool:
        return self.rank < other.rank


def feeding_key(pattern: Pattern) -> FeedingKey:
    """Return a pattern's place.

    >>> from xmlmatch import Pattern
    >>> feeding_key(Pattern.parse("//a{cont}")) < feeding_key(Pattern.parse("//a{val}"))
    True
    """
    return FeedingKey(weight(pattern), text_hash(pattern), pattern.text)


def may_feed(view: Pattern, query: Pattern) -> bool:
    """Say whether the feeding order lets a pattern feed a different one.

    >>> from xmlmatch import Pattern
    >>> a, b = Pattern.parse("//a{cont}"), Pattern.parse("//a[b]{val}")
    >>> may_feed(a, b), may_feed(b, a), may_feed(a, a)
    (True, False, False)
    """
    return embeds(view, query) and (feeding_key(view) < feeding_key(query) or not embeds(query, view))

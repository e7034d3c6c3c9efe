"""The feeding order of a network that lives long: between different patterns it hangs on the patterns alone.

``rewriting.graph`` orders patterns of the same weight by their first subscription. That one may leave, and its
place would be lost at the next restart or full plan; then two patterns could feed each other, one in an old
configuration and one in a new. Here the text decides instead: more attributes first, then a hash of the text.
Nothing about it is stored, and a pattern that comes back has its old place. Equal patterns are ordered by the tier
and the catalog number that their subscriptions had when they joined.

Why every mix of configurations is free of circles: members of a circle would all embed in each other; from one to
the next the pattern's place rises or, between equal patterns, the subscription's does; so it never gets back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewriting.candidates import text_hash
from rewriting.embedding import embeds
from rewriting.feeding_order import weight
from rewriting.graph import Change, EmbeddingGraph

if TYPE_CHECKING:
    from xmlmatch import Pattern


class SteadyGraph(EmbeddingGraph):
    """An embedding graph in which a pattern's place in the feeding order never changes."""

    def add(self, pattern: Pattern, *, tier: int = 0) -> Change:
        """Add a subscription to a pattern; its place is that of the pattern, whatever the tier."""
        return super().add(pattern, tier=text_hash(pattern))

    def enter(self, pattern: Pattern) -> int:
        """Add one of many without finding its edges; call ``finish`` after the last."""
        return self._take([pattern], text_hash(pattern))[0]

    def finish(self) -> None:
        """Make what was entered quick to find."""
        self._rebuild()


def place(pattern: Pattern) -> tuple[int, int]:
    """Return a pattern's place in the feeding order; smaller ones feed larger ones.

    >>> from xmlmatch import Pattern
    >>> place(Pattern.parse("//a{cont}")) < place(Pattern.parse("//a{val}"))
    True
    """
    return -weight(pattern), -text_hash(pattern)


def may_feed(view: Pattern, query: Pattern) -> bool:
    """Say whether the feeding order lets a pattern feed a different one.

    >>> from xmlmatch import Pattern
    >>> a, b = Pattern.parse("//a{cont}"), Pattern.parse("//a[b]{val}")
    >>> may_feed(a, b), may_feed(b, a), may_feed(a, a)
    (True, False, False)
    """
    return embeds(view, query) and (place(view) < place(query) or not embeds(query, view))

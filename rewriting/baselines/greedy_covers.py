"""Algorithm 4 of the Delta paper (CGR) in its own order: views that add most attributes first, by backtracking.

The interest of a view is how many attributes of the query it would newly cover; ties go to the one that covers
attributes of more nodes. Found covers are made minimal by taking views out as long as they still cover. Costs play
no part; ``rewriting.candidates`` is what we use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rewriting.providers import Feeder
    from xmlmatch import Pattern


def greedy_covers(
    query: Pattern, feeders: Sequence[Feeder], k: int = 30, tries: int = 10_000
) -> Iterator[frozenset[int]]:
    """Yield up to ``k`` distinct minimal covers as sets of feeders, looking at no more than ``tries`` sets.

    >>> from rewriting.providers import feeders
    >>> from xmlmatch import Pattern
    >>> views = [Pattern.parse(t) for t in ["/a{id}/b{cont}", "/a{cont}/b{id}"]]
    >>> query = Pattern.parse("/a{cont}/b{cont}")
    >>> [sorted(cover) for cover in greedy_covers(query, feeders(query, views))]
    [[0, 1]]
    """
    weights = {n: 1 + len(node.returns) for n, node in enumerate(query.nodes)}
    provided = [frozenset(f.provisions) for f in feeders]
    everything = frozenset(weights)
    if frozenset().union(*provided) != everything:
        return
    seen: set[frozenset[int]] = set()
    given: set[frozenset[int]] = set()
    stack: list[frozenset[int]] = [frozenset()]
    while stack and tries and len(given) < k:
        tries -= 1
        chosen = stack.pop()
        if chosen in seen:
            continue
        seen.add(chosen)
        covered = frozenset().union(*(provided[v] for v in chosen))
        if covered == everything:
            minimal = _minimal(chosen, provided, everything)
            if minimal not in given:
                given.add(minimal)
                yield minimal
            continue
        interest = {
            v: sum(weights[n] for n in provided[v] - covered) for v in range(len(feeders)) if v not in chosen
        }
        best_last = sorted((v for v in interest if interest[v]), key=lambda v: (interest[v], len(provided[v]), -v))
        stack += [chosen | {v} for v in best_last]


def _minimal(
    chosen: frozenset[int], provided: Sequence[frozenset[int]], everything: frozenset[int]
) -> frozenset[int]:
    for v in sorted(chosen):
        rest = chosen - {v}
        if frozenset().union(*(provided[w] for w in rest)) == everything:
            chosen = rest
    return chosen

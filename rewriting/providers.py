"""Providers: which view node can stand in for which query node, and what must travel for it.

A view node *provides* a query node if it covers it and carries what the query node needs:

* the value, if the query returns it: the view has ``val``, ``cont``, or a ``=`` with a string, which fixes it;
* the content, if the query returns that;
* something to filter by, if the view's predicates do not already imply the query's: the value or the content;
* the name, if the view says ``*`` and the query does not; a ``*`` node's names are always at hand.

One provider per query node is enough: the lists of IDs so sent, reduced by the query's own edges, are exactly the
query's node sets. The twin of ``rewriting.batch`` for one query at a time, for patterns of any size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rewriting.conditions import implies
from rewriting.embedding import cover
from rewriting.statistics import ROWS, Statistics, link_cost, thinning
from rewriting.table import ID_LEVEL, VAL_LEVEL, carries, is_fixed, needs
from xmlmatch.pattern import ANY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from xmlmatch import Pattern, PatternNode


class Provision(NamedTuple):
    """How a view provides one query node.

    ``payload``: 0 IDs only, 1 values, 2 contents travel. ``by_value``, ``by_name``: what the sender filters by.
    ``names``: names travel, for the query's own ``*``. Estimated per thousand documents: ``cost`` in bytes,
    ``rows`` sent, ``view_rows`` the view has; ``least`` and ``least_rows`` if only what the query keeps were sent.
    """

    query_node: int
    view_node: int
    payload: int
    by_value: bool
    by_name: bool
    names: bool
    cost: int = 0
    least: int = 0
    rows: int = 0
    least_rows: int = 0
    view_rows: int = 0


@dataclass(frozen=True, slots=True)
class Feeder:
    """A view that may feed the query: its cheapest provision of each query node it provides."""

    view: Pattern
    provisions: dict[int, Provision]


def provision(view: Pattern, m: int, query: Pattern, n: int) -> Provision | None:
    """Say how view node ``m``, which covers ``n``, provides it; None if it lacks something."""
    have, want = view.nodes[m], query.nodes[n]
    by_value = not implies(have.predicates, want.predicates)
    if carries(have) < max(needs(want), VAL_LEVEL if by_value else ID_LEVEL):
        return None
    names = have.label == ANY and want.label == ANY
    return Provision(n, m, _payload(want), by_value, have.label == ANY and not names, names)


def _payload(node: PatternNode) -> int:
    """Return what travels for a query node; a value that its own predicate fixes need not."""
    level = needs(node)
    return ID_LEVEL if level == VAL_LEVEL and is_fixed(node.predicates) else level


def _priced(found: Provision, view: NDArray[np.int64], query: NDArray[np.int64]) -> Provision:
    """Add the estimates."""
    m, n, payload = found.view_node, found.query_node, found.payload
    theirs, ours = int(view[ROWS, m]), int(query[ROWS, n])
    carried, own = (int(view[payload, m]), int(query[payload, n])) if payload else (0, 0)
    flags = found.by_value, found.by_name, found.names
    return found._replace(
        cost=link_cost(theirs, carried, ours, own, *flags),
        least=link_cost(ours, own, ours, own, *flags),
        rows=max(theirs >> thinning(*flags[:2]), ours),
        least_rows=ours,
        view_rows=theirs,
    )


def feeder(view: Pattern, query: Pattern, statistics: Statistics) -> Feeder | None:
    """Find what a view provides for a query, each node as cheaply as it can; None if it provides nothing."""
    taken = cover(view, query)
    if len(taken[0]) == 0:
        return None
    ours, theirs = statistics.of(query), statistics.of(view)
    best: dict[int, Provision] = {}
    for m, nodes in enumerate(taken):
        for n in nodes.tolist():
            found = provision(view, m, query, n)
            if found is None:
                continue
            priced = _priced(found, theirs, ours)
            if n not in best or priced.cost < best[n].cost:
                best[n] = priced
    return Feeder(view, best) if best else None


def feeders(query: Pattern, views: Iterable[Pattern], statistics: Statistics | None = None) -> Sequence[Feeder]:
    """List the distinct views that provide something for the query, with what each provides."""
    known = statistics or Statistics()
    found = (feeder(view, query, known) for view in dict.fromkeys(views))
    return [f for f in found if f is not None]

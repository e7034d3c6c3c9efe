"""What candidates and results cost, for the verifier: from patterns and statistics, one pair at a time.

The planner has its own, compiled; this shares nothing with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from rewriting.embedding import embeds
from rewriting.providers import feeder
from rewriting.statistics import CONT, DOCUMENTS, ID_BYTES, NAME_BYTES, ROWS, VAL
from rewriting.table import CONT_LEVEL, VAL_LEVEL, is_fixed, needs
from xmlmatch.pattern import ANY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.problem import Problem
    from rewriting.providers import Feeder, Provision
    from xmlmatch import Pattern


class Price(NamedTuple):
    """What a candidate costs per thousand documents when every link crosses machines.

    ``wrong``: why it is none. ``against``: places of the views that come after the query in the feeding order.
    """

    wrong: str = ""
    against: tuple[int, ...] = ()
    total: int = 0
    nodes: int = 0
    joint: int = -1
    sent: tuple[int, ...] = ()


@dataclass(slots=True)
class Pricing:
    """What candidates and results cost, from patterns and statistics; all per thousand documents."""

    problem: Problem
    _prices: dict[tuple[int, ...], Price] = field(default_factory=dict)
    _results: dict[int, tuple[int, int]] = field(default_factory=dict)

    def of(self, number: int, views: Sequence[int]) -> Price:
        """Price a pattern computed from these views, given by their numbers."""
        key = (number, *views)
        if key not in self._prices:
            graph = self.problem.graph
            query = graph.pattern(number)
            found = [feeder(graph.pattern(u), query, self.problem.statistics) for u in views]
            against = tuple(i for i, u in enumerate(views) if not self._may_feed(u, number, found[i]))
            self._prices[key] = self._cheapest(query, found)._replace(against=against)
        return self._prices[key]

    def results(self, number: int) -> tuple[int, int]:
        """Return the bytes and nodes of a pattern's own results."""
        if number not in self._results:
            pattern = self.problem.graph.pattern(number)
            figures = self.problem.statistics.of(pattern).T.tolist()
            size = 0
            for node, sizes in zip(pattern.nodes, figures, strict=True):
                size += sizes[ROWS] * (ID_BYTES + (NAME_BYTES if node.label == ANY else 0))
                if needs(node) == CONT_LEVEL:
                    size += sizes[CONT]
                elif needs(node) == VAL_LEVEL and not is_fixed(node.predicates):
                    size += sizes[VAL]
            self._results[number] = size, sum(sizes[ROWS] for sizes in figures)
        return self._results[number]

    def _may_feed(self, u: int, q: int, found: Feeder | None) -> bool:
        graph = self.problem.graph
        view, query = graph.pattern(u), graph.pattern(q)
        if u == q or (found is None and not embeds(view, query)):  # what provides something embeds
            return False
        return graph.key(u) < graph.key(q) or not embeds(query, view)

    def _cheapest(self, query: Pattern, found: Sequence[Feeder | None]) -> Price:
        """Give each node to its cheapest provider, each link its cheaper plan, and join where that is cheaper."""
        shares: list[list[Provision]] = [[] for _ in found]
        for n, node in enumerate(query.nodes):
            able = [
                (f.provisions[n].cost, i, f) for i, f in enumerate(found) if f is not None and n in f.provisions
            ]
            if not able:
                return Price(f"no view provides {node.label}, which is node {n} of {query}")
            _, i, best = min(able, key=lambda one: one[:2])
            shares[i].append(best.provisions[n])
        links = [self._link(query, share) for share in shares]
        sent, nodes, costs = (tuple(column) for column in zip(*links, strict=True))
        cheapest = Price(total=sum(costs), nodes=sum(nodes), sent=sent)
        if not self.problem.weights.joins or len(shares) == 1:
            return cheapest
        size = sum(p.least for share in shares for p in share)
        rows = sum(p.least_rows for share in shares for p in share)
        for i, share in enumerate(shares):
            onward = self._cost(size, sum(p.view_rows + 2 * p.rows for p in share), rows)
            if sum(costs) - costs[i] + onward < cheapest.total:
                to = (*sent[:i], size, *sent[i + 1 :])
                cheapest = Price(total=sum(costs) - costs[i] + onward, nodes=2 * rows, joint=i, sent=to)
        return cheapest

    def _link(self, query: Pattern, share: list[Provision]) -> tuple[int, int, int]:
        """Return the bytes, the receiver's nodes and the cost of a link: filtered or, where cheaper, reduced."""
        connected = _connected(query, [p.query_node for p in share])
        plans = []
        for reduced in (set(), connected):
            halved = [p for p in share if p.query_node in reduced]
            size = sum(p.cost for p in share) - sum(p.cost - (p.cost + p.least) // 2 for p in halved)
            rows = sum(p.rows for p in share) - sum(p.rows - (p.rows + p.least_rows) // 2 for p in halved)
            handled = sum(p.view_rows for p in share) + sum(2 * p.rows for p in halved)
            plans.append((size, 2 * rows, self._cost(size, handled, rows)))
        return min(plans, key=lambda plan: plan[2])

    def _cost(self, size: int, handled: int, rows: int) -> int:
        w = self.problem.weights
        both = w.sent + w.received
        return both * size + w.sender_node * handled + w.receiver_node * 2 * rows + w.link * DOCUMENTS


def _connected(query: Pattern, provided: list[int]) -> set[int]:
    """Return those of the nodes provided that stand above or below another."""
    found: set[int] = set()
    for n in provided:
        above = query.nodes[n].parent
        while above >= 0:
            if above in provided:
                found |= {n, above}
            above = query.nodes[above].parent
    return found

"""What candidates cost, by trying every physical plan: the slow twin of ``rewriting.pricing.price``.

A plan says for every link whether its sender only filters or also reduces, and whether the inputs meet at the
machine of one of them. The cheapest wins; of equally cheap ones the one without a meeting, then the one that meets
at the first input, then the one with the smallest number of its reducing links, read as bits.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from rewriting.execution import Link
from rewriting.providers import feeders
from xmlmatch import Operator, Return

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rewriting.pricing import Weights
    from rewriting.statistics import Statistics
    from xmlmatch import Pattern

JOIN = 1 << 30
ROWS, VAL, CONT = range(3)


class PlanPrice(NamedTuple):
    """Per thousand documents: utilization, the plan's number, the receiver's nodes, the bytes of every link."""

    utilization: int
    plan: int
    nodes: int
    link_bytes: tuple[int, ...]


class ResultPrice(NamedTuple):
    """Of results per thousand documents: bytes, nodes, and utilization from the source or as a copy."""

    bytes: int
    nodes: int
    source: int
    copy: int


class _Sent(NamedTuple):
    """What goes over a link: bytes, nodes that the sender handles, and nodes that arrive."""

    bytes: int
    handled: int
    rows: int

    def cost(self, weights: Weights) -> int:
        at_sender = weights.sent * self.bytes + weights.sender_node * self.handled
        at_receiver = weights.received * self.bytes + weights.receiver_node * 2 * self.rows
        return at_sender + at_receiver + weights.link * 1000


def links_of(query: Pattern, views: Sequence[Pattern], statistics: Statistics) -> list[Link] | None:
    """Give every query node to the first view that provides it most cheaply; None if one has no provider."""
    able = {feeder.view: feeder.provisions for feeder in feeders(query, views, statistics)}
    shares = {view: [] for view in views}
    for n in range(len(query.nodes)):
        costs = [(able[view][n].cost, i) for i, view in enumerate(views) if n in able.get(view, {})]
        if not costs:
            return None
        view = views[min(costs)[1]]
        shares[view].append(able[view][n])
    return [Link(view, query, tuple(share)) for view, share in shares.items()]


def candidate_price(
    query: Pattern, views: Sequence[Pattern], statistics: Statistics, weights: Weights
) -> PlanPrice | None:
    """Price the computation of a query from views; None if they do not cover it."""
    links = links_of(query, views, statistics)
    if links is None:
        return None
    meetings = [-1, *(range(len(links)) if weights.joins and len(links) > 1 else ())]
    plans = []
    for meeting in meetings:
        for reduces in product((False, True), repeat=len(links)):
            sent = [_sent(link, reduced) for link, reduced in zip(links, reduces, strict=True)]
            if meeting >= 0:
                sent[meeting] = _onward(links, meeting)
            nodes = 2 * sum(s.rows for s in (sent if meeting < 0 else [sent[meeting]]))
            number = sum(1 << i for i, reduced in enumerate(reduces) if reduced)
            total = sum(s.cost(weights) for s in sent)
            plans.append((total, meeting, number, nodes, tuple(s.bytes for s in sent)))
    total, meeting, number, nodes, link_bytes = min(plans)
    return PlanPrice(total, number if meeting < 0 else JOIN + meeting, nodes, link_bytes)


def _sent(link: Link, reduced: bool) -> _Sent:
    """Say what a link carries to whoever computes the query."""
    connected = {n for _, members in link.parts if len(members) > 1 for n in members}
    bytes_, handled, rows = 0, 0, 0
    for p in link.provisions:
        if reduced and p.query_node in connected:
            bytes_ += (p.cost + p.least) // 2
            rows += (p.rows + p.least_rows) // 2
            handled += p.view_rows + 2 * p.rows
        else:
            bytes_ += p.cost
            rows += p.rows
            handled += p.view_rows
    return _Sent(bytes_, handled, rows)


def _onward(links: Sequence[Link], meeting: int) -> _Sent:
    """Say what the input where all met sends on: the query's result. It filters and reduces its own share."""
    everything = [p for link in links for p in link.provisions]
    handled = sum(p.view_rows + 2 * p.rows for p in links[meeting].provisions)
    return _Sent(sum(p.least for p in everything), handled, sum(p.least_rows for p in everything))


def result_price(pattern: Pattern, statistics: Statistics, weights: Weights) -> ResultPrice:
    """Price a pattern's own results, as the source or an equal one sends them."""
    figures = statistics.of(pattern)
    bytes_, nodes = 0, 0
    for n, node in enumerate(pattern.nodes):
        rows = int(figures[ROWS, n])
        nodes += rows
        bytes_ += rows * (5 if node.label == "*" else 4)
        known = any(p.operator is Operator.EQ and isinstance(p.constant, str) for p in node.predicates)
        if Return.CONT in node.returns:
            bytes_ += int(figures[CONT, n])
        elif Return.VAL in node.returns and not known:
            bytes_ += int(figures[VAL, n])
    at_sender = weights.sent * bytes_ + weights.sender_node * nodes + weights.link * 1000
    at_receiver = weights.received * bytes_ + weights.receiver_node * 2 * nodes
    return ResultPrice(bytes_, nodes, weights.source * at_sender + at_receiver, at_sender + at_receiver)

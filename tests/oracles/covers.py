"""Covers and their costs by trying every set of views; shares no code with ``rewriting``."""

from itertools import combinations

from tests.oracles.containment import all_embeddings
from tests.oracles.implication import implies_by_representatives


def fixed(node):
    return any(p.operator.value == "=" and isinstance(p.constant, str) for p in node.predicates)


def provides(view_node, query_node):
    """Say whether a view node that covers a query node carries what it needs (PATTERNS, section 3)."""
    have = {r.value for r in view_node.returns}
    wanted = {r.value for r in query_node.returns}
    value = bool(have & {"val", "cont"}) or fixed(view_node)
    if "cont" in wanted and "cont" not in have:
        return False
    if "val" in wanted and not value:
        return False
    return value or implies_by_representatives(view_node.predicates, query_node.predicates)


def provided(view, query):
    """Return pairs (view node, query node) where the view provides."""
    return {
        (m, n)
        for places in all_embeddings(view, query)
        for m, n in enumerate(places)
        if provides(view.nodes[m], query.nodes[n])
    }


def covers(query, views):
    """Yield every set of views (by position) that covers the query."""
    nodes = [{n for _, n in provided(view, query)} for view in views]
    for size in range(1, len(views) + 1):
        for chosen in combinations(range(len(views)), size):
            if set().union(*(nodes[v] for v in chosen)) == set(range(len(query.nodes))):
                yield chosen


def least_cost(costs, link):
    """Return the least cost of any set: ``costs[v][n]`` by view and node, None where it does not provide."""
    best = None
    for size in range(1, len(costs) + 1):
        for chosen in combinations(range(len(costs)), size):
            nodes = [
                min((costs[v][n] for v in chosen if costs[v][n] is not None), default=None)
                for n in range(len(costs[0]))
            ]
            if None not in nodes:
                total = sum(nodes) + link * size
                best = total if best is None else min(best, total)
    return best

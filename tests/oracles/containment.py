"""Embeddings by trying every assignment: the obvious twin of ``rewriting.embedding``."""

from itertools import product

from tests.oracles.implication import implies_by_representatives as implied


def below(query, node, above, axis):
    """Say whether query node ``node`` hangs from ``above`` (-1: the document) as a view's axis asks."""
    if axis == 0:
        return query.nodes[node].parent == above and query.nodes[node].axis == 0
    while node >= 0:
        node = query.nodes[node].parent
        if node == above:
            return True
    return False


def fits(view_node, query_node):
    if view_node.label == "*" and query_node.label.startswith("@"):
        return False
    if view_node.label not in ("*", query_node.label):
        return False
    return implied(query_node.predicates, view_node.predicates)


def all_embeddings(view, query):
    """List every way to map the view's nodes to the query's."""
    found = []
    for places in product(range(len(query.nodes)), repeat=len(view.nodes)):
        good = all(
            fits(node, query.nodes[place])
            and below(query, place, places[node.parent] if node.parent >= 0 else -1, node.axis)
            for node, place in zip(view.nodes, places, strict=True)
        )
        if good:
            found.append(places)
    return found

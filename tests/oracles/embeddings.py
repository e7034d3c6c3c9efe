"""Matching by definition: every embedding of a pattern in a document, one after the other."""

from tests.oracles.numbers import compare
from xmlmatch import Axis


def embeddings(pattern, nodes):
    """Yield every embedding: for each pattern node, in order, the number of a document node."""
    yield from _extend(pattern, nodes, ())


def _extend(pattern, nodes, chosen):
    if len(chosen) == len(pattern.nodes):
        yield chosen
        return
    wanted = pattern.nodes[len(chosen)]
    for pre, node in enumerate(nodes):
        if _fits(wanted, node) and _hangs(wanted, chosen, nodes, pre):
            yield from _extend(pattern, nodes, (*chosen, pre))


def _fits(wanted, node):
    labelled = node.is_element if wanted.label == "*" else node.label == wanted.label
    return labelled and all(compare(node.value, p.operator.value, p.constant) for p in wanted.predicates)


def _hangs(wanted, chosen, nodes, pre):
    """Say whether the axis to the parent (for the first node: to the document) is kept."""
    child = wanted.axis is Axis.CHILD
    if wanted.parent < 0:
        return nodes[pre].parent == -1 if child else True
    above = chosen[wanted.parent]
    if child:
        return nodes[pre].parent == above
    while pre >= 0:
        pre = nodes[pre].parent
        if pre == above:
            return True
    return False


def node_sets(pattern, nodes):
    """Return, for each pattern node, the sorted numbers it takes in some embedding."""
    found = [set() for _ in pattern.nodes]
    for embedding in embeddings(pattern, nodes):
        for taken, pre in zip(found, embedding, strict=True):
            taken.add(pre)
    return [sorted(taken) for taken in found]


def rows(pattern, nodes):
    """Return the distinct combinations of returning nodes, sorted column by column in the user's order."""
    order = list(dict.fromkeys(column.node for column in pattern.selection))
    return sorted({tuple(embedding[i] for i in order) for embedding in embeddings(pattern, nodes)})

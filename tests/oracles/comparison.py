"""What the property tests and the mutants ask alike: does matching agree with its definition?"""

from dataclasses import replace

from tests.oracles import embeddings
from xmlmatch import Column, NodeSets, Return, matching


def in_ids(sets):
    """Return node sets whose rows hold one ID per returning node."""
    pattern = sets.pattern
    ids = tuple(Column(node, Return.ID) for node in pattern.returning)
    return NodeSets(replace(pattern, selection=ids), sets.document, sets.sets)


def plain_rows(sets):
    """List the rows as tuples of node numbers."""
    return [tuple(node_id.pre for node_id in row) for row in in_ids(sets).rows()]


def plain_sets(sets):
    """List the node sets as lists of numbers."""
    return [s.tolist() for s in sets.sets]


def differences(pattern, document, nodes):
    """Say where ``match`` differs from the brute force; nothing where they agree."""
    found = matching.match(pattern, document)
    told = []
    if plain_sets(found) != embeddings.node_sets(pattern, nodes):
        told.append("node sets")
    if plain_rows(found) != embeddings.rows(pattern, nodes):
        told.append("rows")
    return told

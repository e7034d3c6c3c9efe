"""The embedding graph, looked at from a view: in which queries does it embed?

A signature per pattern rules most queries out at once: one bit per label, and one per pair of labels that stand
above each other, both hashed to 64. A view's bits must be among the query's; ``*`` has none. The rest are tested
pair by pair.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rewriting.conditions import pointers_to
from rewriting.kernels import MASK_BITS, kernel
from rewriting.table import ANY_LABEL, LABEL, PARENT
from rewriting.trie import Q_ROWS, forget_labels, pair_embeds, query_masks

LABELS, PAIRS, LABEL_SET, SIGNATURES = range(4)


@kernel
def _mixed(a: int, b: int) -> Any:
    x = (np.uint64(a) << np.uint64(32) | np.uint64(b)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ x >> np.uint64(29)) * np.uint64(0xBF58476D1CE4E5B9)
    return np.int64(x >> np.uint64(1))


@kernel
def sign(nodes: Any, first: Any, start: int, out: Any) -> None:
    """Write the signatures of the patterns from ``start`` on: labels, pairs, and a hash of the label set."""
    for slot in range(start, first.size - 1):
        labels, pairs, whole = np.int64(0), np.int64(0), np.int64(0)
        for row in range(first[slot], first[slot + 1]):
            label = nodes[row, LABEL]
            if label == ANY_LABEL:
                continue
            labels |= np.int64(1) << (_mixed(label, 1) & 63)
            again = False
            for before in range(first[slot], row):
                again |= nodes[before, LABEL] == label
            if not again:
                whole ^= _mixed(label, 2)
            above = nodes[row, PARENT]
            while above >= 0:
                other = nodes[first[slot] + above, LABEL]
                if other != ANY_LABEL:
                    pairs |= np.int64(1) << (_mixed(other + 3, label) & 63)
                above = nodes[first[slot] + above, PARENT]
        out[slot, LABELS], out[slot, PAIRS], out[slot, LABEL_SET] = labels, pairs, whole


@kernel
def queries_of(
    nodes: Any, first: Any, attribute: Any, arrays: Any, signs: Any, wanted: Any, view: int, out: Any
) -> int:
    """Collect the slots, ascending, in which the view embeds; return how many.

    ``wanted`` says by slot which count; none of those may have over 64 nodes.
    """
    conditions = pointers_to(arrays)
    labels, masks = np.zeros(attribute.size, np.int64), np.zeros((Q_ROWS, MASK_BITS), np.int64)
    row, length = first[view], first[view + 1] - first[view]
    at = np.empty(length, np.int64)
    count = 0
    for slot in range(first.size - 1):
        if (
            not wanted[slot]
            or signs[view, LABELS] & ~signs[slot, LABELS]
            or signs[view, PAIRS] & ~signs[slot, PAIRS]
        ):
            continue
        query, size = first[slot], first[slot + 1] - first[slot]
        query_masks(nodes, query, size, attribute, labels, masks)
        if pair_embeds(nodes, row, length, nodes, query, conditions, labels, masks, at):
            out[count] = slot
            count += 1
        forget_labels(nodes, query, size, labels)
    return count


@kernel
def views_of(
    nodes: Any, first: Any, attribute: Any, arrays: Any, signs: Any, slots: Any, query: int, out: Any
) -> int:
    """Collect those of ``slots`` that embed in the query, which has at most 64 nodes; return how many."""
    conditions = pointers_to(arrays)
    labels, masks = np.zeros(attribute.size, np.int64), np.zeros((Q_ROWS, MASK_BITS), np.int64)
    query_masks(nodes, first[query], first[query + 1] - first[query], attribute, labels, masks)
    at = np.empty(0, np.int64)
    count = 0
    for slot in slots:
        if signs[slot, LABELS] & ~signs[query, LABELS] or signs[slot, PAIRS] & ~signs[query, PAIRS]:
            continue
        length = first[slot + 1] - first[slot]
        if length > at.size:
            at = np.empty(2 * length, np.int64)
        if pair_embeds(nodes, first[slot], length, nodes, first[query], conditions, labels, masks, at):
            out[count] = slot
            count += 1
    return count

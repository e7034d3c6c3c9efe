"""What each atom of a store (a label with predicates) is in one document: a label there and a node set.

Atoms with one string ``=`` are found through the document's own values (``equal_index.py``); what no value
names stays empty. The others are few, and try each node of their label.
"""

from __future__ import annotations

from typing import Any

from xmlmatch.equal_index import crc32
from xmlmatch.kernels import kernel
from xmlmatch.pointers import int64_at
from xmlmatch.set_algebra import EMPTY, FULL, POOL, commit
from xmlmatch.store import ANY_LABEL, OTHER
from xmlmatch.values import holds


@kernel
def place_atoms(
    label_here: Any, atom_label: Any, atom_first: Any, atom_count: Any, atom_kind: Any,
    lists: Any, predicate: Any, number: Any, text: Any,
    start: Any, end: Any, chars: Any, numbers: Any, order: Any, first: Any, elements: Any,
    state: Any, pool: Any, atom_here: Any, atom_set: Any,
) -> int:  # fmt: skip
    """Fill ``atom_here`` (an atom's label in the document, -1 for any element) and ``atom_set``; 0 or ``FULL``.

    ``EQUAL`` atoms stay empty: ``place_equal_atoms`` comes next.
    """
    at = int64_at(state.ctypes.data)
    for atom in range(atom_here.size):
        label = atom_label[atom]
        here = label_here[label] if label >= 0 else label
        atom_here[atom] = here
        atom_set[atom] = EMPTY
        if (label != ANY_LABEL and here < 0) or atom_kind[atom] != OTHER:
            continue  # not in this document; or a free number; or below
        if label == ANY_LABEL:
            low, high, nodes = 0, elements.size, elements
        else:
            low, high, nodes = first[here], first[here + 1], order
        base = state[POOL]
        if base + high - low > pool.size:
            return FULL
        n = 0
        for i in range(low, high):
            node = nodes[i]
            good = True
            for k in range(atom_first[atom], atom_first[atom] + atom_count[atom]):
                p = lists[k]
                numeric = predicate[1, p] == 1
                value = numbers[node] if numeric else 0.0
                if not holds(
                    chars, start[node], end[node], value, predicate[0, p], numeric, number[p], text,
                    predicate[2, p], predicate[3, p],
                ):  # fmt: skip
                    good = False
                    break
            if good:
                pool[base + n] = node
                n += 1
        found = commit(at, n)
        if found == FULL:
            return FULL
        atom_set[atom] = found
    return 0


@kernel
def place_equal_atoms(
    label_here: Any, label_longest: Any, atom_label: Any, atom_first: Any, equal_head: Any, equal_next: Any,
    lists: Any, predicate: Any, text: Any,
    start: Any, end: Any, chars: Any, order: Any, first: Any,
    state: Any, pool: Any, atom_set: Any,
) -> int:  # fmt: skip
    """Fill ``atom_set`` for the ``EQUAL`` atoms that some value of the document names; 0 or ``FULL``.

    ``label_longest`` is the length of the longest constant an ``EQUAL`` atom of each label has, -1 for none.
    """
    at = int64_at(state.ctypes.data)
    for label in range(label_longest.size):
        here = label_here[label]
        if here < 0 or label_longest[label] < 0:
            continue
        for i in range(first[here], first[here + 1]):
            node = order[i]
            length = end[node] - start[node]
            if length > label_longest[label]:
                continue
            atom = equal_head[crc32(chars, start[node], end[node], label) & (equal_head.size - 1)]
            while atom >= 0:
                p = lists[atom_first[atom]]
                low, high = predicate[2, p], predicate[3, p]
                if atom_label[atom] == label and atom_set[atom] == EMPTY and high - low == length:
                    # The first node with this value; collect the others too. They come in document order.
                    base, n = state[POOL], 0
                    if base + first[here + 1] - i > pool.size:
                        return FULL
                    for j in range(i, first[here + 1]):
                        other = order[j]
                        if holds(chars, start[other], end[other], 0.0, 0, False, 0.0, text, low, high):
                            pool[base + n] = other
                            n += 1
                    found = commit(at, n)
                    if found == FULL:
                        return FULL
                    atom_set[atom] = found
                atom = equal_next[atom]
    return 0

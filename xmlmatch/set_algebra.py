"""All patterns against one document: an algebra of hash-consed node sets.

Theory of operation
-------------------
In one document, very many sub-patterns have one of few answers. So every node set is stored once and known by
a number, and the three operations that matching needs are remembered by their operands' numbers, as BDD
packages do:

* ``UP(label, set)``: the nodes with a label that have a child (or descendant) in the set;
* ``AND(set, set)``;
* ``DOWN(above, set)``: the nodes of the set that have a parent (or ancestor) in ``above``.

Bottom-up, a sub-pattern's set is its atom's AND the UP of each child; it is computed on demand, once, and
stops at the first empty child. Then, for each body whose first set is not empty, DOWN gives the final set of
every node, in pre-order. With 100,000 patterns on a small document nearly every step is one look-up.

All memory is allocated by the caller (``Scratch``); when any of it is full the kernel returns ``FULL`` and the
caller starts again with more. Set 0 is the empty set, set 1 holds the root alone.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numba
import numpy as np

from xmlmatch.handlers import END, LEVEL_OF, PARENT, SIZE, START
from xmlmatch.semijoin import keep_below
from xmlmatch.store import ANY_LABEL
from xmlmatch.values import holds

_kernel = numba.njit(cache=True, nogil=True)

EMPTY: Final = 0
ROOT: Final = 1
FULL: Final = -1
_UNKNOWN: Final = -2

_UP, _AND, _DOWN = 0, 2, 3  # UP and DOWN add the axis

# Slots of Scratch.used.
SETS, POOL, MEMO, RESULTS, BODIES, STAMP = range(6)


class Target(NamedTuple):
    """The document as the kernel sees it."""

    nodes: Any
    chars: Any
    numbers: Any
    label: Any
    order: Any
    first: Any
    elements: Any
    label_here: Any
    """The document's label id for each label id of the store, -1 where the document has none."""


class Scratch(NamedTuple):
    """Working memory; ``used`` counts what is taken of each."""

    used: Any
    pool: Any
    set_first: Any
    """Where each set begins in ``pool``; a set ends where the next begins."""
    intern: Any
    memo_key: Any
    memo_set: Any
    sub_set: Any
    atom_set: Any
    stack: Any
    marks: Any
    results: Any
    body_first: Any
    matched: Any


@_kernel
def match_bodies(store: Any, target: Any, scratch: Any, bodies: Any) -> int:
    """Fill ``matched`` (positions in ``bodies``), ``body_first`` and ``results`` (a set per node); 0 or ``FULL``."""
    used = scratch.used
    used[:] = 0
    scratch.intern[:] = -1
    scratch.memo_key[:] = -1
    scratch.sub_set[:] = _UNKNOWN
    scratch.atom_set[:] = _UNKNOWN
    scratch.marks[:] = 0
    scratch.set_first[0] = 0
    _commit(scratch, 0)
    scratch.pool[0] = 0
    _commit(scratch, 1)
    for i in range(bodies.size):
        if bodies[i] < 0:
            continue
        found = _evaluate(store, target, scratch, bodies[i] >> 1)
        if found == FULL:
            return FULL
        if bodies[i] & 1 == 0 and found != EMPTY:
            found = ROOT if scratch.pool[scratch.set_first[found]] == 0 else EMPTY
        if found == EMPTY:
            continue
        at = used[BODIES]
        scratch.matched[at] = i
        scratch.body_first[at] = used[RESULTS]
        if _descend(store, target, scratch, bodies[i] >> 1, found) == FULL:
            return FULL
        used[BODIES] = at + 1
    scratch.body_first[used[BODIES]] = used[RESULTS]
    return 0


@_kernel
def _evaluate(store: Any, target: Any, scratch: Any, top: int) -> int:
    """Compute the set of a sub-pattern, and of those below it as far as needed, without recursion.

    A frame of the stack holds: sub-pattern, next child, set so far (``_UNKNOWN``: every node of the label).
    """
    sub_set, stack = scratch.sub_set, scratch.stack
    if sub_set[top] != _UNKNOWN:
        return sub_set[top]
    depth = 0
    _open_frame(store, target, scratch, top, 0)
    while depth >= 0:
        sub, child, so_far = stack[0, depth], stack[1, depth], stack[2, depth]
        if so_far == FULL:
            return FULL
        if so_far == EMPTY or child == store.sub_count[sub]:
            sub_set[sub] = so_far
            depth -= 1
            continue
        edge = store.lists[store.sub_first[sub] + child]
        below = sub_set[edge >> 1]
        if below == _UNKNOWN:
            depth += 1
            if depth == stack.shape[1]:
                return FULL
            _open_frame(store, target, scratch, edge >> 1, depth)
            continue
        if below != EMPTY:
            label = _label(store, target, sub)
            below = _up(target, scratch, label, edge & 1, below)
            if below != FULL and so_far != _UNKNOWN:
                below = _and(scratch, so_far, below)
        stack[1, depth] = child + 1
        stack[2, depth] = below
    return sub_set[top]


@_kernel
def _open_frame(store: Any, target: Any, scratch: Any, sub: int, depth: int) -> None:
    scratch.stack[0, depth] = sub
    scratch.stack[1, depth] = 0
    atom = store.sub_atom[sub]
    label = _label(store, target, sub)
    if label == -2:
        scratch.stack[2, depth] = EMPTY
    elif store.atom_count[atom] == 0 and store.sub_count[sub] > 0:
        scratch.stack[2, depth] = _UNKNOWN
    else:
        scratch.stack[2, depth] = _atom(store, target, scratch, atom, label)


@_kernel
def _label(store: Any, target: Any, sub: int) -> int:
    """The document's label of a sub-pattern's first node; -1 for any element, -2 if the document has none."""
    label = store.atom_label[store.sub_atom[sub]]
    if label == ANY_LABEL:
        return ANY_LABEL
    here = target.label_here[label]
    return here if here >= 0 else -2


@_kernel
def _labelled(target: Any, label: int) -> Any:
    if label == ANY_LABEL:
        return target.elements
    return target.order[target.first[label] : target.first[label + 1]]


@_kernel
def _atom(store: Any, target: Any, scratch: Any, atom: int, label: int) -> int:
    """The set of nodes with the label that satisfy the predicates, once per atom."""
    if scratch.atom_set[atom] != _UNKNOWN:
        return scratch.atom_set[atom]
    candidates = _labelled(target, label)
    start = scratch.used[POOL]
    if start + candidates.size > scratch.pool.size:
        return FULL
    n = 0
    for node in candidates:
        if _satisfies(store, target, atom, node):
            scratch.pool[start + n] = node
            n += 1
    found = _commit(scratch, n)
    if found != FULL:
        scratch.atom_set[atom] = found
    return found


@_kernel
def _satisfies(store: Any, target: Any, atom: int, node: int) -> bool:
    first = store.atom_first[atom]
    for i in range(first, first + store.atom_count[atom]):
        p = store.lists[i]
        text = store.text[store.predicate[2, p] : store.predicate[3, p]]
        numeric = store.predicate[1, p] == 1
        value = target.numbers[node] if numeric else 0.0
        start, end = target.nodes[START, node], target.nodes[END, node]
        if not holds(target.chars, start, end, value, store.predicate[0, p], numeric, store.number[p], text):
            return False
    return True


@_kernel
def _descend(store: Any, target: Any, scratch: Any, top: int, top_set: int) -> int:
    """Append the final sets of a body's nodes in pre-order; a frame holds sub-pattern, next child, final set."""
    stack, results, used = scratch.stack, scratch.results, scratch.used
    depth, sub, final = 0, top, top_set
    while True:
        if used[RESULTS] == results.size or depth == stack.shape[1]:
            return FULL
        results[used[RESULTS]] = final
        used[RESULTS] += 1
        stack[0, depth], stack[1, depth], stack[2, depth] = sub, 0, final
        while depth >= 0 and stack[1, depth] == store.sub_count[stack[0, depth]]:
            depth -= 1
        if depth < 0:
            return 0
        edge = store.lists[store.sub_first[stack[0, depth]] + stack[1, depth]]
        stack[1, depth] += 1
        sub = edge >> 1
        final = _down(target, scratch, stack[2, depth], edge & 1, scratch.sub_set[sub])
        if final == FULL:
            return FULL
        depth += 1


# --- the algebra -------------------------------------------------------------------------------------------


@_kernel
def _members(scratch: Any, number: int) -> Any:
    return scratch.pool[scratch.set_first[number] : scratch.set_first[number + 1]]


@_kernel
def _commit(scratch: Any, length: int) -> int:
    """Number the set that stands at the end of the pool, or find the equal one that is there already."""
    used, pool, intern = scratch.used, scratch.pool, scratch.intern
    start = used[POOL]
    h = np.uint64(length) + np.uint64(0x9E3779B97F4A7C15)
    for i in range(start, start + length):
        h = (h ^ np.uint64(pool[i])) * np.uint64(0xFF51AFD7ED558CCD)
        h ^= h >> np.uint64(29)
    mask = np.uint64(intern.size - 1)
    slot = h & mask
    while intern[slot] >= 0:
        known = intern[slot]
        first = scratch.set_first[known]
        if scratch.set_first[known + 1] - first == length:
            i = 0
            while i < length and pool[first + i] == pool[start + i]:
                i += 1
            if i == length:
                return known
        slot = (slot + np.uint64(1)) & mask
    number = used[SETS]
    if 2 * number >= intern.size or number + 2 > scratch.set_first.size:
        return FULL
    intern[slot] = number
    used[SETS] = number + 1
    used[POOL] = start + length
    scratch.set_first[number + 1] = start + length
    return number


@_kernel
def _slot(scratch: Any, key: int) -> int:
    """The place of a key in the memo: where it stands, or the free place where it may; ``FULL`` if too full."""
    keys = scratch.memo_key
    if 2 * scratch.used[MEMO] >= keys.size:
        return FULL
    mask = np.uint64(keys.size - 1)
    h = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    slot = (h ^ (h >> np.uint64(32))) & mask
    while keys[slot] != -1 and keys[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return np.int64(slot)


@_kernel
def _remember(scratch: Any, slot: int, key: int, value: int) -> int:
    if value != FULL:
        scratch.memo_key[slot] = key
        scratch.memo_set[slot] = value
        scratch.used[MEMO] += 1
    return value


@_kernel
def _key(operation: int, left: int, right: int) -> int:
    return (np.int64(operation) << 60) | (np.int64(left) << 30) | np.int64(right)


@_kernel
def _up(target: Any, scratch: Any, label: int, axis: int, number: int) -> int:
    key = _key(_UP + axis, label + 1, number)
    slot = _slot(scratch, key)
    if slot == FULL or scratch.memo_key[slot] == key:
        return FULL if slot == FULL else scratch.memo_set[slot]
    own = _members(scratch, number)
    start, pool, used = scratch.used[POOL], scratch.pool, scratch.used
    up, level, labels = target.nodes[PARENT], target.nodes[LEVEL_OF], target.label
    used[STAMP] += 1
    stamp, marks = used[STAMP], scratch.marks
    n, last, sorted_ = 0, -1, True
    if start + up.size > pool.size:
        return FULL
    for node in own:
        p = up[node]
        while p >= 0 and marks[p] != stamp:
            marks[p] = stamp
            # A parent is always an element, which is what ``*`` asks for.
            if label == ANY_LABEL or labels[p] == label:
                sorted_ = sorted_ and p > last
                last = p
                pool[start + n] = p
                n += 1
            if axis == 0:
                break
            p = up[p]
    if not sorted_:
        pool[start : start + n].sort()
    return _remember(scratch, slot, key, _commit(scratch, n))


@_kernel
def _and(scratch: Any, left: int, right: int) -> int:
    if left == right or left == EMPTY:
        return left
    if right == EMPTY:
        return right
    if left > right:
        left, right = right, left
    key = _key(_AND, left, right)
    slot = _slot(scratch, key)
    if slot == FULL or scratch.memo_key[slot] == key:
        return FULL if slot == FULL else scratch.memo_set[slot]
    a, b = _members(scratch, left), _members(scratch, right)
    start, pool = scratch.used[POOL], scratch.pool
    if start + min(a.size, b.size) > pool.size:
        return FULL
    n, i, j = 0, 0, 0
    while i < a.size and j < b.size:
        if a[i] == b[j]:
            pool[start + n] = a[i]
            n += 1
            i += 1
            j += 1
        elif a[i] < b[j]:
            i += 1
        else:
            j += 1
    return _remember(scratch, slot, key, _commit(scratch, n))


@_kernel
def _down(target: Any, scratch: Any, above: int, axis: int, number: int) -> int:
    key = _key(_DOWN + axis, above, number)
    slot = _slot(scratch, key)
    if slot == FULL or scratch.memo_key[slot] == key:
        return FULL if slot == FULL else scratch.memo_set[slot]
    own = _members(scratch, number)
    start, pool = scratch.used[POOL], scratch.pool
    if start + own.size > pool.size:
        return FULL
    scratch.used[STAMP] += 1
    n = keep_below(
        own, _members(scratch, above), axis, target.nodes[PARENT], target.nodes[SIZE], target.nodes[LEVEL_OF],
        scratch.marks, scratch.used[STAMP], pool[start:],
    )  # fmt: skip
    return _remember(scratch, slot, key, _commit(scratch, n))

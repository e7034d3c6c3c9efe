"""All patterns against one document: an algebra of hash-consed node sets.

Theory of operation
-------------------
In one document, very many sub-patterns have one of few answers. So every node set is stored once and known by
a number, and the three operations that matching needs are remembered by their operands' numbers, as BDD
packages do:

* ``UP(label, set)``: the nodes with a label that have a child (or descendant) in the set;
* ``AND(set, set)``;
* ``DOWN(above, set)``: the nodes of the set that have a parent (or ancestor) in ``above``.

Bottom-up, a sub-pattern's set is its atom's AND the UP of each child; it is computed once, and stops at the
first empty child. Then, for each body whose first set is not empty, DOWN gives the final set of
every node, in pre-order. With 100,000 patterns on a small document nearly every step is one look-up.

The functions share a *state* of counters, capacities and addresses (see ``pointers.py`` for why). The caller
allocates (``scratch.py``); when any memory is full the kernel returns ``FULL`` and the caller starts again with
more. Set 0 is the empty set, set 1 holds the root alone.
"""

from __future__ import annotations

from typing import Any, Final

import numba
import numpy as np
from numba import carray  # type: ignore[attr-defined]  # not in numba's __all__

from xmlmatch.kernels import kernel
from xmlmatch.pointers import int32_at, int64_at

EMPTY: Final = 0
ROOT: Final = 1
FULL: Final = -1
ALL: Final = -2  # every node of the label: no set is needed to say so
UNKNOWN: Final = -3

_UP, _AND, _DOWN = 0, 2, 3  # UP and DOWN add the axis

# Slots of the state: what is used, what there is, where it is.
SETS, POOL, MEMO, RESULTS, BODIES, STAMP = range(6)
_NODES, _POOL_SIZE, _INTERN_SIZE, _MEMO_SIZE, _RESULTS_SIZE, _STACK_SIZE = range(6, 12)
_UP_AT, _SIZE_AT, _LEVEL_AT, _LABELS_AT = range(12, 16)
_SUB_ATOM_AT, _SUB_FIRST_AT, _SUB_COUNT_AT, _LISTS_AT, _ATOM_COUNT_AT, _ATOM_HERE_AT, _ATOM_SET_AT = range(16, 23)
_POOL_AT, _SET_FIRST_AT, _INTERN_AT, _MEMO_AT, _SUB_SET_AT, _STACK_AT = range(23, 29)
_MARKS_AT, _RESULTS_AT, _MATCHED_AT, _BODY_FIRST_AT = range(29, 33)
STATE_SLOTS: Final = 33


@kernel
def begin(state: Any, up: Any, pool: Any, set_first: Any, intern: Any, marks: Any) -> None:
    """Reset the state and make the sets 0 and 1; afterwards ``commit`` works."""
    state[:] = 0
    state[_NODES] = up.size
    state[_POOL_SIZE] = pool.size
    state[_INTERN_SIZE] = intern.size
    state[_POOL_AT] = pool.ctypes.data
    state[_SET_FIRST_AT] = set_first.ctypes.data
    state[_INTERN_AT] = intern.ctypes.data
    intern[:] = -1
    marks[:] = 0
    set_first[0] = 0
    at = int64_at(state.ctypes.data)
    commit(at, 0)
    pool[0] = 0
    commit(at, 1)


@kernel
def match_bodies(
    state: Any, bodies: Any, sub_atom: Any, sub_first: Any, sub_count: Any, lists: Any, atom_count: Any,
    atom_here: Any, atom_set: Any, up: Any, size: Any, level: Any, labels: Any,
    memo: Any, sub_set: Any, stack: Any, marks: Any, results: Any, matched: Any,
    body_first: Any,
) -> Any:  # fmt: skip
    """Fill ``matched`` (positions in ``bodies``), ``body_first`` and ``results`` (a set per node); 0 or ``FULL``.

    ``atom_here`` and ``atom_set`` say what each atom is in this document (see ``atoms.py``).
    """
    sub_set[:] = UNKNOWN
    memo[:] = -1
    state[_MEMO_SIZE], state[_RESULTS_SIZE], state[_STACK_SIZE] = memo.size // 2, results.size, stack.shape[1]
    state[_UP_AT], state[_SIZE_AT] = up.ctypes.data, size.ctypes.data
    state[_LEVEL_AT], state[_LABELS_AT] = level.ctypes.data, labels.ctypes.data
    state[_SUB_ATOM_AT], state[_SUB_FIRST_AT] = sub_atom.ctypes.data, sub_first.ctypes.data
    state[_SUB_COUNT_AT], state[_LISTS_AT] = sub_count.ctypes.data, lists.ctypes.data
    state[_ATOM_COUNT_AT], state[_ATOM_HERE_AT] = atom_count.ctypes.data, atom_here.ctypes.data
    state[_ATOM_SET_AT] = atom_set.ctypes.data
    state[_MEMO_AT] = memo.ctypes.data
    state[_SUB_SET_AT], state[_STACK_AT] = sub_set.ctypes.data, stack.ctypes.data
    state[_MARKS_AT], state[_RESULTS_AT] = marks.ctypes.data, results.ctypes.data
    state[_MATCHED_AT], state[_BODY_FIRST_AT] = matched.ctypes.data, body_first.ctypes.data
    return _match_all(int64_at(state.ctypes.data), bodies, sub_set.size)


@kernel
def _match_all(state: Any, bodies: Any, sub_patterns: int) -> Any:
    if _evaluate_all(state, sub_patterns) == FULL:
        return FULL
    pool, set_first = int32_at(state[_POOL_AT]), int64_at(state[_SET_FIRST_AT])
    matched, body_first = int32_at(state[_MATCHED_AT]), int64_at(state[_BODY_FIRST_AT])
    sub_set = int32_at(state[_SUB_SET_AT])
    for position in range(bodies.size):
        body = bodies[position]
        if body < 0:
            continue
        found = numba.int64(sub_set[body >> 1])
        if found != EMPTY and body & 1 == 0:
            found = numba.int64(ROOT if pool[set_first[found]] == 0 else EMPTY)
        if found == EMPTY:
            continue
        matched[state[BODIES]] = position
        body_first[state[BODIES]] = state[RESULTS]
        state[BODIES] += 1
        if _descend(state, body >> 1, found) == FULL:
            return FULL
    body_first[state[BODIES]] = state[RESULTS]
    return 0


@kernel
def _evaluate_all(state: Any, sub_patterns: int) -> Any:
    """Compute the set of every sub-pattern in the order of their numbers.

    Children are numbered before their parents, except where a freed number was reused: ``_evaluate`` then first
    does what is missing below. (On demand from the bodies alone took a third longer: the order of numbers is
    the order in memory.)
    """
    sub_set, sub_atom = int32_at(state[_SUB_SET_AT]), int32_at(state[_SUB_ATOM_AT])
    for sub in range(sub_patterns):
        if sub_atom[sub] >= 0 and sub_set[sub] == UNKNOWN:
            found = _combine(state, sub)
            if found == UNKNOWN:
                found = _evaluate(state, sub)
            if found == FULL:
                return FULL
            sub_set[sub] = found
    return 0


@kernel
def _combine(state: Any, sub: int) -> Any:
    """The set of a sub-pattern from its children's; ``UNKNOWN`` if one of those is missing."""
    atom = int32_at(state[_SUB_ATOM_AT])[sub]
    found = numba.int64(int32_at(state[_ATOM_SET_AT])[atom])
    count = int32_at(state[_SUB_COUNT_AT])[sub]
    if found == EMPTY or count == 0:
        return found
    if int32_at(state[_ATOM_COUNT_AT])[atom] == 0:
        found = numba.int64(ALL)  # UP will see to the label
    sub_set, lists = int32_at(state[_SUB_SET_AT]), int32_at(state[_LISTS_AT])
    here = int32_at(state[_ATOM_HERE_AT])[atom]
    first = int32_at(state[_SUB_FIRST_AT])[sub]
    for i in range(first, first + count):
        edge = lists[i]
        below = numba.int64(sub_set[edge >> 1])
        if below in (EMPTY, UNKNOWN):
            return below
        below = _up(state, here, edge & 1, below)
        found = below if found == ALL or below == FULL else _and(state, found, below)
        if found in (EMPTY, FULL):
            return found
    return found


@kernel
def _evaluate(state: Any, top: int) -> Any:
    """Compute a sub-pattern after whatever is missing below it, without recursion."""
    sub_set, stack, rows = int32_at(state[_SUB_SET_AT]), int32_at(state[_STACK_AT]), state[_STACK_SIZE]
    sub_first, lists = int32_at(state[_SUB_FIRST_AT]), int32_at(state[_LISTS_AT])
    depth = 0
    stack[0] = top
    while depth >= 0:
        sub = stack[depth]
        found = _combine(state, sub)
        if found == FULL:
            return FULL
        if found != UNKNOWN:
            sub_set[sub] = found
            depth -= 1
            continue
        depth += 1
        if depth == rows:
            return FULL
        i = sub_first[sub]
        while sub_set[lists[i] >> 1] != UNKNOWN:
            i += 1
        stack[depth] = lists[i] >> 1
    return sub_set[top]


@kernel
def _descend(state: Any, top: int, top_set: int) -> Any:
    """Append the final sets of a body's nodes in pre-order; a frame holds: sub-pattern, next child, final set."""
    stack, rows, results = int32_at(state[_STACK_AT]), state[_STACK_SIZE], int32_at(state[_RESULTS_AT])
    sub_first, sub_count = int32_at(state[_SUB_FIRST_AT]), int32_at(state[_SUB_COUNT_AT])
    lists, sub_set = int32_at(state[_LISTS_AT]), int32_at(state[_SUB_SET_AT])
    depth = 0
    sub: Any = numba.int64(top)
    final: Any = numba.int64(top_set)
    while True:
        if state[RESULTS] == state[_RESULTS_SIZE] or depth == rows:
            return FULL
        results[state[RESULTS]] = final
        state[RESULTS] += 1
        stack[depth], stack[rows + depth], stack[2 * rows + depth] = sub, 0, final
        while depth >= 0 and stack[rows + depth] == sub_count[stack[depth]]:
            depth -= 1
        if depth < 0:
            return 0
        edge = lists[sub_first[stack[depth]] + stack[rows + depth]]
        stack[rows + depth] += 1
        sub = numba.int64(edge >> 1)
        final = _down(state, stack[2 * rows + depth], edge & 1, sub_set[sub])
        if final == FULL:
            return FULL
        depth += 1


# --- the algebra -------------------------------------------------------------------------------------------


@kernel
def commit(state: Any, length: int) -> Any:
    """Number the set that stands at the end of the pool, or find the equal one that is there already."""
    pool, set_first = int32_at(state[_POOL_AT]), int64_at(state[_SET_FIRST_AT])
    intern = int32_at(state[_INTERN_AT])
    start = state[POOL]
    h = np.uint64(length) + np.uint64(0x9E3779B97F4A7C15)
    for i in range(start, start + length):
        h = (h ^ np.uint64(pool[i])) * np.uint64(0xFF51AFD7ED558CCD)
        h ^= h >> np.uint64(29)
    mask = numba.int64(state[_INTERN_SIZE] - 1)
    slot = numba.int64(h >> np.uint64(8)) & mask
    while intern[slot] >= 0:
        known = numba.int64(intern[slot])
        first = set_first[known]
        if set_first[known + 1] - first == length:
            i = 0
            while i < length and pool[first + i] == pool[start + i]:
                i += 1
            if i == length:
                return known
        slot = (slot + 1) & mask
    number = state[SETS]
    if 2 * number >= state[_INTERN_SIZE]:
        return FULL
    intern[slot] = number
    state[SETS] = number + 1
    state[POOL] = start + length
    set_first[number + 1] = start + length
    return number


@kernel
def _slot(state: Any, key: int) -> Any:
    """Where a key stands in the memo (its set is the next entry), or the free place where it may."""
    memo = int64_at(state[_MEMO_AT])
    mask = numba.int64(state[_MEMO_SIZE] - 1)
    h = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    slot = numba.int64(h >> np.uint64(20)) & mask
    while memo[2 * slot] != -1 and memo[2 * slot] != key:
        slot = (slot + 1) & mask
    return 2 * slot


@kernel
def _key(operation: int, left: int, right: int) -> Any:
    return (numba.int64(operation) << 60) | (numba.int64(left) << 30) | numba.int64(right)


@kernel
def _remember(state: Any, slot: int, key: int, found: int) -> Any:
    if found != FULL:
        memo = int64_at(state[_MEMO_AT])
        memo[slot], memo[slot + 1] = key, found
        state[MEMO] += 1
        if 2 * state[MEMO] >= state[_MEMO_SIZE]:
            return FULL
    return found


@kernel
def _up(state: Any, label: int, axis: int, number: int) -> Any:
    key = _key(_UP + axis, label + 1, number)
    slot = _slot(state, key)
    memo = int64_at(state[_MEMO_AT])
    if memo[slot] == key:
        return memo[slot + 1]
    return _remember(state, slot, key, _compute_up(state, label, axis, number))


@kernel
def _and(state: Any, left: int, right: int) -> Any:
    low, high = min(left, right), max(left, right)
    if low in (high, EMPTY):
        return low
    key = _key(_AND, low, high)
    slot = _slot(state, key)
    memo = int64_at(state[_MEMO_AT])
    if memo[slot] == key:
        return memo[slot + 1]
    return _remember(state, slot, key, _compute_and(state, low, high))


@kernel
def _down(state: Any, above: int, axis: int, number: int) -> Any:
    key = _key(_DOWN + axis, above, number)
    slot = _slot(state, key)
    memo = int64_at(state[_MEMO_AT])
    if memo[slot] == key:
        return memo[slot + 1]
    return _remember(state, slot, key, _compute_down(state, above, axis, number))


@kernel
def _compute_up(state: Any, label: int, axis: int, number: int) -> Any:
    """The nodes with ``label`` (-1: any element) above the members of a set."""
    pool, set_first = int32_at(state[_POOL_AT]), int64_at(state[_SET_FIRST_AT])
    up, labels, marks = int32_at(state[_UP_AT]), int32_at(state[_LABELS_AT]), int32_at(state[_MARKS_AT])
    start = state[POOL]
    if start + state[_NODES] > state[_POOL_SIZE]:
        return FULL
    state[STAMP] += 1
    stamp = state[STAMP]
    n, last, ascending = 0, -1, True
    for i in range(set_first[number], set_first[number + 1]):
        p = numba.int64(up[pool[i]])
        while p >= 0 and marks[p] != stamp:
            marks[p] = stamp
            if label < 0 or labels[p] == label:  # whatever is above a node is an element
                ascending = ascending and p > last
                last = p
                pool[start + n] = p
                n += 1
            if axis == 0:
                break
            p = numba.int64(up[p])
    if not ascending:
        carray(int32_at(state[_POOL_AT] + 4 * start), n).sort()
    return commit(state, n)


@kernel
def _compute_and(state: Any, left: int, right: int) -> Any:
    pool, set_first = int32_at(state[_POOL_AT]), int64_at(state[_SET_FIRST_AT])
    start = state[POOL]
    i, i_end = set_first[left], set_first[left + 1]
    j, j_end = set_first[right], set_first[right + 1]
    if start + min(i_end - i, j_end - j) > state[_POOL_SIZE]:
        return FULL
    n = 0
    while i < i_end and j < j_end:
        if pool[i] == pool[j]:
            pool[start + n] = pool[i]
            n += 1
            i += 1
            j += 1
        elif pool[i] < pool[j]:
            i += 1
        else:
            j += 1
    return commit(state, n)


@kernel
def _compute_down(state: Any, above: int, axis: int, number: int) -> Any:
    """The same semijoin as ``semijoin.keep_below``, on numbered sets."""
    pool, set_first = int32_at(state[_POOL_AT]), int64_at(state[_SET_FIRST_AT])
    up, size, marks = int32_at(state[_UP_AT]), int32_at(state[_SIZE_AT]), int32_at(state[_MARKS_AT])
    start, first, last = state[POOL], set_first[number], set_first[number + 1]
    if start + last - first > state[_POOL_SIZE]:
        return FULL
    state[STAMP] += 1
    i, i_end = set_first[above], set_first[above + 1]
    n = 0
    if axis == 0:
        for k in range(i, i_end):
            marks[pool[k]] = state[STAMP]
        for k in range(first, last):
            p = up[pool[k]]
            if p >= 0 and marks[p] == state[STAMP]:
                pool[start + n] = pool[k]
                n += 1
        return commit(state, n)
    reach = -1
    for k in range(first, last):
        while i < i_end and pool[i] < pool[k]:
            reach = max(reach, pool[i] + size[pool[i]])
            i += 1
        if pool[k] <= reach:
            pool[start + n] = pool[k]
            n += 1
    return commit(state, n)

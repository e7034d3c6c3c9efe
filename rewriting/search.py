"""The search of ``rewriting.candidates``, compiled: the same steps in the same order on flat arrays.

``costs[f * size + n]`` is what feeder ``f`` asks for query node ``n``. A set is a row of up to ``MOST_MEMBERS``
members of the pool in ascending order, with its hash (also its identity) and its promise. ``work_area`` says what
is where.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rewriting.candidates import NEVER
from rewriting.kernels import MASK_BITS, kernel
from rewriting.pool import insert
from rewriting.work_area import (
    H_BEST,
    H_FOUND,
    H_HEAP,
    H_LINK,
    H_OVERFLOW,
    H_POOL,
    H_SETS,
    H_SIZE,
    H_STAMP,
    K_COVERS,
    K_FIELDS,
    K_PROMISE,
    K_TIE,
    MOST_MEMBERS,
    MOST_SETS,
    R_BEST,
    R_CURRENT,
    R_PRICE,
    R_PROVIDERS,
    R_SCARCE,
    S_COUNT,
    S_FIELDS,
    S_MEMBERS,
    TABLE,
)


@kernel
def _before(keys: Any, a: int, b: int) -> bool:
    """Say whether set ``a`` is more promising than ``b``."""
    if keys[K_FIELDS * a + K_PROMISE] != keys[K_FIELDS * b + K_PROMISE]:
        return bool(keys[K_FIELDS * a + K_PROMISE] < keys[K_FIELDS * b + K_PROMISE])
    return bool(keys[K_FIELDS * a + K_TIE] < keys[K_FIELDS * b + K_TIE])


@kernel
def _push(head: Any, keys: Any, heap: Any, which: int) -> None:
    i = head[H_HEAP]
    head[H_HEAP] += 1
    while i > 0 and _before(keys, which, heap[(i - 1) >> 1]):
        heap[i] = heap[(i - 1) >> 1]
        i = (i - 1) >> 1
    heap[i] = which


@kernel
def _pop(head: Any, keys: Any, heap: Any) -> int:
    top = heap[0]
    head[H_HEAP] -= 1
    last, n, i = heap[head[H_HEAP]], head[H_HEAP], 0
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and _before(keys, heap[child + 1], heap[child]):
            child += 1
        if not _before(keys, heap[child], last):
            break
        heap[i] = heap[child]
        i = child
    heap[i] = last
    return int(top)


@kernel
def _survey(work: Any) -> None:
    """Find the cheapest provider of each node in the pool, and order the nodes by how few they have."""
    head, _, _, _, _, _, _, nodes, _, costs, _ = work
    size = head[H_SIZE]
    for n in range(size):
        providers, best = 0, NEVER
        for f in range(head[H_POOL]):
            c = costs[f * size + n]
            providers += c < NEVER
            best = min(best, c)
        nodes[MASK_BITS * R_BEST + n], nodes[MASK_BITS * R_PROVIDERS + n] = best, providers
        at = n
        while at > 0 and nodes[MASK_BITS * R_PROVIDERS + nodes[MASK_BITS * R_SCARCE + at - 1]] > providers:
            nodes[MASK_BITS * R_SCARCE + at] = nodes[MASK_BITS * R_SCARCE + at - 1]
            at -= 1
        nodes[MASK_BITS * R_SCARCE + at] = n


@kernel
def _current(head: Any, sets: Any, costs: Any, nodes: Any, which: int) -> int:
    """Write the cheapest cost of each node within a set; return its scarcest uncovered node, or -1."""
    size = head[H_SIZE]
    for n in range(size):
        least = NEVER
        for i in range(sets[S_FIELDS * which + S_COUNT]):
            least = min(least, costs[sets[S_FIELDS * which + S_MEMBERS + i] * size + n])
        nodes[MASK_BITS * R_CURRENT + n] = least
    for i in range(size):
        if nodes[MASK_BITS * R_CURRENT + nodes[MASK_BITS * R_SCARCE + i]] >= NEVER:
            return int(nodes[MASK_BITS * R_SCARCE + i])
    return -1


@kernel
def _idle(head: Any, sets: Any, costs: Any, which: int) -> int:
    """Find a member whose removal neither breaks the cover nor raises the cost: its position, or -1."""
    size, link, count = head[H_SIZE], head[H_LINK], sets[S_FIELDS * which + S_COUNT]
    if count == 1:
        return -1
    for i in range(count):
        loss = np.int64(0)
        for n in range(size):
            own = costs[sets[S_FIELDS * which + S_MEMBERS + i] * size + n]
            if own >= NEVER:
                continue
            rest = NEVER
            for j in range(count):
                if j != i:
                    rest = min(rest, costs[sets[S_FIELDS * which + S_MEMBERS + j] * size + n])
            if rest > own:
                loss += rest - own
            if loss > link:
                break
        if loss <= link:
            return i
    return -1


@kernel
def _is_new(head: Any, table: Any, tie: int) -> bool:
    """Remember a set by its hash; say whether it was not known."""
    at = tie & (TABLE - 1)
    while table[2 * at + 0] == head[H_STAMP]:
        if table[2 * at + 1] == tie:
            return False
        at = (at + 1) & (TABLE - 1)
    table[2 * at + 0] = head[H_STAMP]
    table[2 * at + 1] = tie
    return True


@kernel
def _append(work: Any, which: int, member: int) -> bool:
    """Write a set and one member more at the end of the list; False where there is no room."""
    head, sets, keys, _, _, _, _, _, _, _, hashes = work
    count, new = sets[S_FIELDS * which + S_COUNT], head[H_SETS]
    if new >= MOST_SETS or count >= MOST_MEMBERS:
        return False
    at = count
    while at > 0 and sets[S_FIELDS * which + S_MEMBERS + at - 1] > member:
        sets[S_FIELDS * new + S_MEMBERS + at] = sets[S_FIELDS * which + S_MEMBERS + at - 1]
        at -= 1
    sets[S_FIELDS * new + S_MEMBERS + at] = member
    for i in range(at):
        sets[S_FIELDS * new + S_MEMBERS + i] = sets[S_FIELDS * which + S_MEMBERS + i]
    sets[S_FIELDS * new + S_COUNT] = count + 1
    keys[K_FIELDS * new + K_TIE] = keys[K_FIELDS * which + K_TIE] ^ hashes[member]
    head[H_SETS] += 1
    return True


@kernel
def _rate(work: Any, which: int) -> None:
    """Write a set's promise, and whether it covers."""
    head, sets, keys, _, _, _, _, nodes, _, costs, _ = work
    size, count = head[H_SIZE], sets[S_FIELDS * which + S_COUNT]
    promise, covers = head[H_LINK] * count, 1
    for n in range(size):
        least = NEVER
        for i in range(count):
            least = min(least, costs[sets[S_FIELDS * which + S_MEMBERS + i] * size + n])
        if least >= NEVER:
            least, covers = nodes[MASK_BITS * R_PRICE + n], 0
        promise += least
    keys[K_FIELDS * which + K_PROMISE], keys[K_FIELDS * which + K_COVERS] = promise, covers


@kernel
def _generate(work: Any, which: int) -> None:
    """Take up the sets from ``which`` to the end of the list: as candidates, and to be extended."""
    head, sets, keys, heap, found, table, _, nodes, _, costs, _ = work
    least = np.int64(0)
    for n in range(head[H_SIZE]):
        least += nodes[MASK_BITS * R_BEST + n]
    for new in range(which, head[H_SETS]):
        row = K_FIELDS * new
        if not _is_new(head, table, keys[row + K_TIE]) or _idle(head, sets, costs, new) >= 0:
            continue
        _rate(work, new)
        if keys[row + K_COVERS]:
            found[head[H_FOUND]] = new
            head[H_FOUND] += 1
            head[H_BEST] = min(head[H_BEST], keys[row + K_PROMISE])
        total = keys[row + K_PROMISE] - head[H_LINK] * sets[S_FIELDS * new + S_COUNT]
        if not keys[row + K_COVERS] or total - least > head[H_LINK]:
            _push(head, keys, heap, new)


@kernel
def _children(work: Any, which: int, width: int) -> int:
    """Choose the most promising extensions of a set, by providers or by savings; return how many."""
    head, sets, keys, _, _, _, children, nodes, _, costs, hashes = work
    size, link = head[H_SIZE], head[H_LINK]
    node = _current(head, sets, costs, nodes, which)
    base = link * (sets[S_FIELDS * which + S_COUNT] + 1)
    chosen = 0
    for v in range(head[H_POOL]):
        if node >= 0 and costs[v * size + node] >= NEVER:
            continue
        promise, saving = base, np.int64(0)
        for n in range(size):
            before, after = nodes[MASK_BITS * R_CURRENT + n], costs[v * size + n]
            if after < before:
                saving += before - after if node < 0 else 0
                before = after
            promise += nodes[MASK_BITS * R_PRICE + n] if before >= NEVER else before
        if node >= 0 or saving > link:
            chosen = insert(children, chosen, width, promise, keys[K_FIELDS * which + K_TIE] ^ hashes[v], v)
    return chosen


@kernel
def _finish(work: Any) -> None:
    """Complete the most promising set greedily, drop what is idle in it, and take it up."""
    head, sets, keys, heap, _, _, children, nodes, _, costs, hashes = work
    which = _pop(head, keys, heap) if head[H_HEAP] > 0 else 0
    head[H_SETS] = which + 1
    while _current(head, sets, costs, nodes, which) >= 0:
        _children(work, which, 1)
        if not _append(work, which, children[2]):
            return
        which += 1
    idle = _idle(head, sets, costs, which)
    while idle >= 0:
        keys[K_FIELDS * which + K_TIE] ^= hashes[sets[S_FIELDS * which + S_MEMBERS + idle]]
        for i in range(idle, sets[S_FIELDS * which + S_COUNT] - 1):
            sets[S_FIELDS * which + S_MEMBERS + i] = sets[S_FIELDS * which + S_MEMBERS + i + 1]
        sets[S_FIELDS * which + S_COUNT] -= 1
        idle = _idle(head, sets, costs, which)
    _generate(work, which)


@kernel
def search(work: Any, expansions: int, width: int, enough: int) -> None:
    """Find candidates in the pool of a query that can be covered.

    ``H_OVERFLOW`` is set where a covering set of ``MOST_MEMBERS`` could still be improved, and where only larger
    ones cover: then it must be done the slow way. Larger sets are dropped otherwise; they cost more than others.
    """
    head, sets, keys, heap, _, _, children, _, _, _, _ = work
    _survey(work)
    head[H_SETS], head[H_HEAP], head[H_FOUND], head[H_OVERFLOW] = 1, 0, 0, 0
    head[H_BEST] = NEVER
    head[H_STAMP] += 1
    sets[S_COUNT] = 0
    keys[K_PROMISE], keys[K_TIE], keys[K_COVERS] = 0, 0, 0
    _push(head, keys, heap, 0)
    for _ in range(expansions):
        if head[H_HEAP] == 0 or head[H_SETS] + width > MOST_SETS:
            break
        if head[H_FOUND] >= enough and keys[K_FIELDS * heap[0] + K_PROMISE] != head[H_BEST]:
            break
        which = _pop(head, keys, heap)
        chosen = _children(work, which, width)
        start = head[H_SETS]
        for i in range(chosen):
            if not _append(work, which, children[3 * i + 2]):
                if keys[K_FIELDS * which + K_COVERS]:
                    head[H_OVERFLOW] = 1
                break
        _generate(work, start)
    if head[H_FOUND] == 0:
        _finish(work)
    if head[H_FOUND] == 0:
        head[H_OVERFLOW] = 1


@kernel
def rank(work: Any, most: int, quota: int, order: Any) -> int:
    """Order the candidates by cost and hash, at most ``quota`` with one first input; return how many."""
    head, sets, keys, heap, found, _, uses, _, _, costs, hashes = work  # heap and extensions are free by now
    head[H_HEAP] = 0
    for i in range(head[H_FOUND]):
        _push(head, keys, heap, found[i])
    for i in range(head[H_POOL]):
        uses[i] = 0
    kept = 0
    while kept < most and head[H_HEAP] > 0:
        which = _pop(head, keys, heap)
        first = _first_input(head, sets, costs, hashes, which)
        uses[first] += 1
        if uses[first] <= quota:
            order[kept] = which
            kept += 1
    return kept


@kernel
def _first_input(head: Any, sets: Any, costs: Any, hashes: Any, which: int) -> int:
    """Return the member that provides most nodes; equals by hash."""
    size, count = head[H_SIZE], sets[S_FIELDS * which + S_COUNT]
    first, most = sets[S_FIELDS * which + S_MEMBERS], 0
    for i in range(count):
        v, share = sets[S_FIELDS * which + S_MEMBERS + i], 0
        for n in range(size):
            own, mine = costs[v * size + n], True
            for j in range(count):
                w = sets[S_FIELDS * which + S_MEMBERS + j]
                other = costs[w * size + n]
                if other < own or (other == own and hashes[w] < hashes[v]):
                    mine = False
            share += mine
        if share > most or (share == most and hashes[v] < hashes[first]):
            first, most = v, share
    return int(first)

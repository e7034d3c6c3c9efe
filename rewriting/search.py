"""The search of ``rewriting.candidates``, compiled: the same steps in the same order on flat arrays.

``costs[f * size + n]`` is what feeder ``f`` asks for query node ``n``. A set is a row of up to ``MOST_MEMBERS``
members of the pool in ascending order, with its hash (also its identity) and its promise. ``head`` keeps counters
and the query's size. Work areas are made once per thread: making arrays would take as long as the search.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rewriting.candidates import NEVER
from rewriting.kernels import MASK_BITS, kernel
from xmlmatch.pointers import int64_at

MOST_MEMBERS: Final = 8
MOST_SETS: Final = 2048
MOST_POOL: Final = 256
_TABLE: Final = 4 * MOST_SETS
_LIFTED: Final = np.int64(NEVER)

S_COUNT, S_MEMBERS, S_FIELDS = 0, 1, 1 + MOST_MEMBERS
K_PROMISE, K_TIE, K_COVERS, K_FIELDS = range(4)
H_SIZE, H_LINK, H_POOL, H_SETS, H_HEAP, H_FOUND, H_BEST, H_STAMP, H_OVERFLOW, H_FIELDS = range(10)
R_PRICE, R_BEST, R_SCARCE, R_CURRENT, R_PROVIDERS, R_FIRST, R_FIRST_PROMISE, R_FIRST_TIE, R_FIELDS = range(9)


def scratch() -> tuple[np.ndarray[Any, Any], ...]:
    """Make the work area of one thread; keep it alive as long as pointers to it are used."""
    return (
        np.zeros(H_FIELDS, np.int64),  # head
        np.zeros((MOST_SETS, S_FIELDS), np.int64),  # sets
        np.zeros((MOST_SETS, K_FIELDS), np.int64),  # their keys
        np.zeros(MOST_SETS, np.int64),  # heap of uncovered sets
        np.zeros(MOST_SETS, np.int64),  # candidates found
        np.zeros((_TABLE, 2), np.int64),  # sets seen
        np.zeros((MOST_POOL, 3), np.int64),  # extensions: promise, hash, member
        np.zeros((R_FIELDS, MASK_BITS), np.int64),  # by query node
        np.zeros(MOST_POOL, np.int64),  # pool: feeders
        np.zeros(MOST_POOL * MASK_BITS, np.int64),  # costs of the pool
        np.zeros(MOST_POOL, np.int64),  # hashes of the pool
    )


@kernel
def pointers(work: Any) -> Any:
    """Turn a work area into plain pointers."""
    a, b, c, d, e, f, g, h, i, j, k = work
    return (
        int64_at(a.ctypes.data), int64_at(b.ctypes.data), int64_at(c.ctypes.data), int64_at(d.ctypes.data),
        int64_at(e.ctypes.data), int64_at(f.ctypes.data), int64_at(g.ctypes.data), int64_at(h.ctypes.data),
        int64_at(i.ctypes.data), int64_at(j.ctypes.data), int64_at(k.ctypes.data),
    )  # fmt: skip


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
def _insert(best: Any, count: int, most: int, promise: int, tie: int, which: int) -> int:
    """Insert into a list ordered by promise and hash that keeps the best ``most``; return its new length."""
    at = count
    if count == most:
        at -= 1
        if promise > best[3 * at] or (promise == best[3 * at] and tie >= best[3 * at + 1]):
            return count
    while at > 0 and (
        promise < best[3 * (at - 1) + 0] or (promise == best[3 * (at - 1) + 0] and tie < best[3 * (at - 1) + 1])
    ):
        best[3 * (at) + 0], best[3 * (at) + 1], best[3 * (at) + 2] = (
            best[3 * (at - 1) + 0],
            best[3 * (at - 1) + 1],
            best[3 * (at - 1) + 2],
        )
        at -= 1
    best[3 * (at) + 0], best[3 * (at) + 1], best[3 * (at) + 2] = promise, tie, which
    return min(count + 1, most)


@kernel
def price(costs: Any, size: int, feeders: int, link: int, nodes: Any) -> bool:
    """Find the least each node can cost with its share of a link; False if a node has no provider."""
    for n in range(size):
        nodes[MASK_BITS * R_PRICE + n] = _LIFTED
    for f in range(feeders):
        provided = 0
        for n in range(size):
            provided += costs[f * size + n] < _LIFTED
        share = link // provided
        for n in range(size):
            if costs[f * size + n] < _LIFTED:
                nodes[MASK_BITS * R_PRICE + n] = min(nodes[MASK_BITS * R_PRICE + n], costs[f * size + n] + share)
    for n in range(size):
        if nodes[MASK_BITS * R_PRICE + n] >= _LIFTED:
            return False
    return True


@kernel
def _prefer(nodes: Any, n: int, feeder: int, promise: int, tie: int) -> None:
    """Make a feeder the first of a node unless the one there is more promising."""
    at = MASK_BITS * R_FIRST_PROMISE + n
    better = promise < nodes[at] or (promise == nodes[at] and tie < nodes[MASK_BITS * R_FIRST_TIE + n])
    if nodes[MASK_BITS * R_FIRST + n] < 0 or better:
        nodes[MASK_BITS * R_FIRST + n], nodes[at], nodes[MASK_BITS * R_FIRST_TIE + n] = feeder, promise, tie


@kernel
def _add_sorted(numbers: Any, count: int, number: int) -> int:
    """Insert a number into an ascending list unless it is there; return the new length."""
    at = count
    while at > 0 and numbers[at - 1] > number:
        at -= 1
    if at > 0 and numbers[at - 1] == number:
        return count
    for i in range(count, at, -1):
        numbers[i] = numbers[i - 1]
    numbers[at] = number
    return count + 1


@kernel
def choose_pool(work: Any, costs: Any, size: int, hashes: Any, feeders: int, link: int, most: int) -> None:
    """Copy to the work area the most promising feeders and the best one of each node; prices are set."""
    head, _, _, _, _, _, best, nodes, pool, pool_costs, pool_hashes = work
    count = 0
    for n in range(size):
        nodes[MASK_BITS * R_FIRST + n] = -1
    for f in range(feeders):
        promise, provided = link, 0
        for n in range(size):
            c = costs[f * size + n]
            provided += c < _LIFTED
            promise += nodes[MASK_BITS * R_PRICE + n] if c >= _LIFTED else c
        count = _insert(best, count, most, promise, hashes[f], f)
        share = link // provided
        for n in range(size):
            if costs[f * size + n] + share == nodes[MASK_BITS * R_PRICE + n]:
                _prefer(nodes, n, f, promise, hashes[f])
    kept = 0
    for i in range(count):
        kept = _add_sorted(pool, kept, best[3 * i + 2])
    for n in range(size):
        kept = _add_sorted(pool, kept, nodes[MASK_BITS * R_FIRST + n])
    for i in range(kept):
        pool_hashes[i] = hashes[pool[i]]
        for n in range(size):
            pool_costs[i * size + n] = costs[pool[i] * size + n]
    head[H_POOL], head[H_SIZE], head[H_LINK] = kept, size, link


@kernel
def _survey(work: Any) -> None:
    """Find the cheapest provider of each node in the pool, and order the nodes by how few they have."""
    head, _, _, _, _, _, _, nodes, _, costs, _ = work
    size = head[H_SIZE]
    for n in range(size):
        providers, best = 0, _LIFTED
        for f in range(head[H_POOL]):
            c = costs[f * size + n]
            providers += c < _LIFTED
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
        least = _LIFTED
        for i in range(sets[S_FIELDS * which + S_COUNT]):
            least = min(least, costs[sets[S_FIELDS * which + S_MEMBERS + i] * size + n])
        nodes[MASK_BITS * R_CURRENT + n] = least
    for i in range(size):
        if nodes[MASK_BITS * R_CURRENT + nodes[MASK_BITS * R_SCARCE + i]] >= _LIFTED:
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
            if own >= _LIFTED:
                continue
            rest = _LIFTED
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
    at = tie & (_TABLE - 1)
    while table[2 * at + 0] == head[H_STAMP]:
        if table[2 * at + 1] == tie:
            return False
        at = (at + 1) & (_TABLE - 1)
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
        least = _LIFTED
        for i in range(count):
            least = min(least, costs[sets[S_FIELDS * which + S_MEMBERS + i] * size + n])
        if least >= _LIFTED:
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
        if node >= 0 and costs[v * size + node] >= _LIFTED:
            continue
        promise, saving = base, np.int64(0)
        for n in range(size):
            before, after = nodes[MASK_BITS * R_CURRENT + n], costs[v * size + n]
            if after < before:
                saving += before - after if node < 0 else 0
                before = after
            promise += nodes[MASK_BITS * R_PRICE + n] if before >= _LIFTED else before
        if node >= 0 or saving > link:
            chosen = _insert(children, chosen, width, promise, keys[K_FIELDS * which + K_TIE] ^ hashes[v], v)
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
def search(work: Any, expansions: int, width: int, enough: int) -> int:
    """Find candidates in the pool of a query that can be covered; return how many.

    ``H_OVERFLOW`` is set where a covering set of ``MOST_MEMBERS`` could still be improved, and where only larger
    ones cover: then it must be done the slow way. Larger sets are dropped otherwise; they cost more than others.
    """
    head, sets, keys, heap, _, _, children, _, _, _, _ = work
    _survey(work)
    head[H_SETS], head[H_HEAP], head[H_FOUND], head[H_OVERFLOW] = 1, 0, 0, 0
    head[H_BEST] = _LIFTED
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
    return int(head[H_FOUND])


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

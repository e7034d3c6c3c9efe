"""Which feeders of a query a search looks at: the most promising ones, and the best one of each node."""

from __future__ import annotations

from typing import Any

from rewriting.candidates import NEVER
from rewriting.kernels import MASK_BITS, kernel
from rewriting.work_area import H_LINK, H_POOL, H_SIZE, R_FIRST, R_FIRST_PROMISE, R_FIRST_TIE, R_PRICE


@kernel
def insert(best: Any, count: int, most: int, promise: int, tie: int, which: int) -> int:
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
        nodes[MASK_BITS * R_PRICE + n] = NEVER
    for f in range(feeders):
        provided = 0
        for n in range(size):
            provided += costs[f * size + n] < NEVER
        share = link // provided
        for n in range(size):
            if costs[f * size + n] < NEVER:
                nodes[MASK_BITS * R_PRICE + n] = min(nodes[MASK_BITS * R_PRICE + n], costs[f * size + n] + share)
    for n in range(size):
        if nodes[MASK_BITS * R_PRICE + n] >= NEVER:
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
            provided += c < NEVER
            promise += nodes[MASK_BITS * R_PRICE + n] if c >= NEVER else c
        count = insert(best, count, most, promise, hashes[f], f)
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

"""Estimates: what a move would do to all latencies together, without making it.

The subscription's own gain times how many hang on it (*weight*: those whose latest input comes, directly or not,
from it), and what one feed more or less does to the others that its new and old feeders feed (*crowding*).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from planner.configuration import How
from planner.kernels import kernel
from planner.latency import (
    A_CANDIDATE,
    A_CLASS,
    A_COPIES,
    A_FEEDS,
    A_FIRST,
    A_HOW,
    A_INPUTS,
    A_LATENCY,
    A_LINK_BYTES,
    A_MEMBER_FIRST,
    A_MEMBERS,
    A_PLANS,
    A_RATED,
    A_REGION,
    A_RESULT_BYTES,
    A_RESULT_NODES,
    A_SHARE,
    A_SITE,
    A_SITE_FEEDS,
    A_WIDTH,
    HANDLING_S,
    NODE_S,
    computed,
    input_count,
    pointers,
    target_site,
    transfer,
    utilization_of,
)
from rewriting.pricing import JOIN

_TRIED: Final = 12
COPY: Final = -2
LEAST_GAIN: Final = 1e-9

# A work area: heap of places, which are in it, a log of latencies to put back, inputs of the best and one tried.
W_HEAP, W_QUEUED, W_LOGGED, W_LOG, W_BEST, W_TRY, W_OLD, W_FIELDS = range(8)


@kernel
def own_utilization(a: Any, s: int) -> int:
    """Return what a subscription that others feed costs per document."""
    how = a[A_HOW][s]
    if how == How.COPY:
        return int(a[A_COPIES][a[A_CLASS][s]])
    if how == How.REWRITING:
        return utilization_of(a, s, a[A_CANDIDATE][s], a[A_INPUTS], s * a[A_WIDTH])
    return 0


@kernel
def latest_input(a: Any, s: int) -> int:
    """Return which input a subscription's latency hangs on; -1 for none."""
    how = a[A_HOW][s]
    if how == How.COPY or how == How.LOCAL:
        return 0
    if how != How.REWRITING:
        return -1
    c, inputs = a[A_CANDIDATE][s], a[A_INPUTS]
    start, plan = a[A_MEMBER_FIRST][c], a[A_PLANS][c]
    joint = plan - JOIN if plan >= JOIN else -1
    to = inputs[s * a[A_WIDTH] + joint] if joint >= 0 else s
    best, latest = 0, -1.0
    for j in range(a[A_MEMBER_FIRST][c + 1] - start):
        u = inputs[s * a[A_WIDTH] + j]
        here = a[A_LATENCY][u]
        if j != joint:
            here += transfer(a, u, a[A_SITE][to], a[A_REGION][to], a[A_LINK_BYTES][start + j], a[A_RATED][u])
        if here > latest:
            best, latest = j, here
    return best


@kernel
def weigh(arrays: Any, sequence: Any, weight: Any, crowding: Any) -> None:
    """Count how many subscriptions hang on each, and what one feed more would cost those that it feeds."""
    a = pointers(arrays)
    weight[:] = 1.0
    crowding[:] = 0.0
    for at in range(sequence.size - 1, -1, -1):
        s = sequence[at]
        j = latest_input(a, s)
        if j < 0:
            continue
        u = a[A_INPUTS][s * a[A_WIDTH] + j]
        weight[u] += weight[s]
        how = a[A_HOW][s]
        if how == How.COPY:
            crowding[u] += weight[s] * a[A_RESULT_BYTES][a[A_CLASS][s]] * 1e-3 * a[A_SHARE][u]
        elif how == How.REWRITING:
            start, plan = a[A_MEMBER_FIRST][a[A_CANDIDATE][s]], a[A_PLANS][a[A_CANDIDATE][s]]
            if a[A_SITE][u] != target_site(a, s, j):
                crowding[u] += weight[s] * a[A_LINK_BYTES][start + j] * 1e-3 * a[A_SHARE][u]
            if plan >= JOIN and plan - JOIN != j:
                v = a[A_INPUTS][s * a[A_WIDTH] + plan - JOIN]
                if a[A_SITE][v] != a[A_SITE][s]:
                    crowding[v] += weight[s] * a[A_LINK_BYTES][start + plan - JOIN] * 1e-3 * a[A_SHARE][v]


@kernel
def _is_input(a: Any, s: int, u: int) -> bool:
    for j in range(input_count(a, s)):
        if a[A_INPUTS][s * a[A_WIDTH] + j] == u:
            return True
    return False


@kernel
def _has_room(a: Any, s: int, u: int, limits: Any, site_limits: Any) -> bool:
    """Say whether a subscription could feed another, which may be one of those it feeds already."""
    site = a[A_SITE][u]
    if site == a[A_SITE][s]:
        return True
    own = 1 if _is_input(a, s, u) else 0
    return bool(a[A_FEEDS][u] - own < limits[u] and a[A_SITE_FEEDS][site] - own < site_limits[site])


@kernel
def _best_member(a: Any, s: int, g: int, order: Any, class_first: Any, limits: Any, site_limits: Any) -> int:
    """Choose the member of a class that could feed a subscription soonest; -1 if none could."""
    best, soonest, tried = -1, np.inf, 0
    for i in range(class_first[g], class_first[g + 1]):
        u = order[i]
        if a[A_HOW][u] == How.PENDING or not _has_room(a, s, u, limits, site_limits):
            continue
        here = a[A_LATENCY][u] + transfer(
            a, u, a[A_SITE][s], a[A_REGION][s], a[A_RESULT_BYTES][g], a[A_RATED][u] + 1
        )  # fmt: skip
        if here < soonest:
            best, soonest = u, here
        tried += 1
        if tried == _TRIED:
            break
    return best


@kernel
def _crowd(a: Any, s: int, inputs: Any, count: int, crowding: Any) -> float:
    """Estimate what new feeders' other consumers lose and old ones' gain."""
    change = 0.0
    for j in range(count):
        if not _is_input(a, s, inputs[j]):
            change += crowding[inputs[j]]
    for j in range(input_count(a, s)):
        u, stays = a[A_INPUTS][s * a[A_WIDTH] + j], False
        for i in range(count):
            stays = stays or inputs[i] == u
        if not stays:
            change -= crowding[u]
    return change


@kernel
def _try_candidate(a: Any, w: Any, s: int, c: int, members: Any, limits: Any, site_limits: Any) -> bool:
    """Choose inputs for a candidate; False if a view has no member with room."""
    order, class_first = members
    start = a[A_MEMBER_FIRST][c]
    for j in range(a[A_MEMBER_FIRST][c + 1] - start):
        u = _best_member(a, s, a[A_MEMBERS][start + j], order, class_first, limits, site_limits)
        if u < 0:
            return False
        w[W_TRY][j] = u
    return True


@kernel
def best_move(
    a: Any, w: Any, s: int, members: Any, limits: Any, site_limits: Any, weights: Any, price: float, room: int
) -> Any:
    """Find the alternative with the best estimate; returns its candidate (-1: none) and its utilization."""
    weight, crowding = weights
    q = a[A_CLASS][s]
    cost = own_utilization(a, s)
    best, found, best_cost = -LEAST_GAIN, -1, 0
    for c in range(a[A_FIRST][q], a[A_FIRST][q + 1]):
        if a[A_HOW][s] == How.REWRITING and c == a[A_CANDIDATE][s] and members[1][q + 1] - members[1][q] == 1:
            continue
        if not _try_candidate(a, w, s, c, members, limits, site_limits):
            continue
        asked = utilization_of(a, s, c, w[W_TRY], 0)
        if asked - cost > room:
            continue
        count = a[A_MEMBER_FIRST][c + 1] - a[A_MEMBER_FIRST][c]
        gain = weight[s] * (computed(a, s, c, w[W_TRY], 0, 1) - a[A_LATENCY][s]) + price * (asked - cost)
        if gain < best:
            gain += _crowd(a, s, w[W_TRY], count, crowding)
            if gain < best:
                best, found, best_cost = gain, c, asked
                for j in range(count):
                    w[W_BEST][j] = w[W_TRY][j]
    order, class_first = members
    for i in range(class_first[q], class_first[q + 1]):
        u = order[i]
        if u == s or i - class_first[q] >= _TRIED:
            break
        asked = a[A_COPIES][q]
        if a[A_SITE][u] == a[A_SITE][s] or asked - cost > room or not _has_room(a, s, u, limits, site_limits):
            continue
        way = transfer(a, u, a[A_SITE][s], a[A_REGION][s], a[A_RESULT_BYTES][q], a[A_RATED][u] + 1)
        new = a[A_LATENCY][u] + way + HANDLING_S + 2 * a[A_RESULT_NODES][q] * 1e-3 * NODE_S
        gain = weight[s] * (new - a[A_LATENCY][s]) + price * (asked - cost)
        w[W_TRY][0] = u
        if gain < best:
            gain += _crowd(a, s, w[W_TRY], 1, crowding)
            if gain < best:
                best, found, best_cost = gain, COPY, asked
                w[W_BEST][0] = u
    return found, best_cost

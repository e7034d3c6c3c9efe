"""Moves: feeding one subscription otherwise, and what that does to everybody's latency.

A move is judged twice. First by an estimate: the subscription's own gain times how many hang on it (*weight*:
those whose latest input comes, directly or not, from it), and what one feed more or less does to the others that
its new and old feeders feed (*crowding*). The best by that is made, latencies are recomputed from there on, and
if the sum has not fallen after all, everything is put back.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from planner.configuration import How
from planner.kernels import kernel
from planner.latency import (
    A_BEFORE,
    A_CANDIDATE,
    A_CLASS,
    A_COPIES,
    A_FEEDS,
    A_FIRST,
    A_HEAD,
    A_HOW,
    A_INPUTS,
    A_LATENCY,
    A_LINK_BYTES,
    A_MEMBER_FIRST,
    A_MEMBERS,
    A_NEXT,
    A_PLACE,
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
    arrival,
    computed,
    input_count,
    link,
    pointers,
    target_site,
    transfer,
    utilization_of,
)
from rewriting.pricing import JOIN
from xmlmatch.pointers import bytes_at, float64_at, int32_at, int64_at

__all__ = ["A_BEFORE", "improve", "weigh", "work_area"]

_TRIED: Final = 12
_COPY: Final = -2
_LEAST_GAIN: Final = 1e-9
_RATED: Final = 4
"""Latencies take notice of a number of feeds that has changed by more than this share of it, or by this many."""
_NOTICED_S: Final = 1e-5

# A work area: heap of places, which are in it, a log of latencies to put back, inputs of the best and one tried.
W_HEAP, W_QUEUED, W_LOGGED, W_LOG, W_BEST, W_TRY, W_OLD, W_FIELDS = range(8)
# What changes along the way: the total latency, the total utilization, moves made, moves put back.
T_LATENCY, T_UTILIZATION, T_MADE, T_UNDONE, T_FIELDS = range(5)


def work_area(count: int, width: int) -> tuple[Any, ...]:
    """Make the arrays that moves work in."""
    return (
        np.empty(count + 1, np.int64), np.zeros(count, np.uint8), np.empty(count, np.int64), np.empty(count),
        np.empty(width, np.int32), np.empty(width, np.int32), np.empty(width, np.int32),
    )  # fmt: skip


@kernel
def _push(w: Any, size: int, place: int) -> int:
    heap, queued = w[W_HEAP], w[W_QUEUED]
    if queued[place]:
        return size
    queued[place] = True
    at = size
    while at > 0 and heap[(at - 1) // 2] > place:
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = place
    return size + 1


@kernel
def _pop(w: Any, size: int) -> int:
    """Take the first place out; it is left behind the heap."""
    heap = w[W_HEAP]
    first, last = heap[0], heap[size - 1]
    at = 0
    while 2 * at + 1 < size - 1:
        child = 2 * at + 1
        if child + 1 < size - 1 and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= last:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = last
    w[W_QUEUED][first] = False
    return int(first)


@kernel
def _push_fed(a: Any, w: Any, size: int, u: int) -> int:
    """Queue everybody that a subscription feeds."""
    width = a[A_WIDTH]
    e = a[A_HEAD][u]
    while e >= 0:
        size = _push(w, size, a[A_PLACE][e // width])
        e = a[A_NEXT][e]
    return size


@kernel
def _rate(a: Any, w: Any, size: int, u: int) -> int:
    """Let latencies know of a subscription's number of feeds, if it has changed by enough to matter."""
    feeds, rated = a[A_FEEDS][u], a[A_RATED][u]
    if abs(feeds - rated) > _RATED and abs(feeds - rated) * _RATED > rated:
        a[A_RATED][u] = feeds
        size = _push_fed(a, w, size, u)
    return size


@kernel
def _settle(a: Any, w: Any, size: int, sequence: Any, logged: int, total: Any) -> int:
    """Recompute latencies from the queued places on; return how many were logged."""
    latency = a[A_LATENCY]
    while size > 0:
        s = sequence[_pop(w, size)]
        size -= 1
        new = arrival(a, s)
        if abs(new - latency[s]) > _NOTICED_S:
            w[W_LOGGED][logged], w[W_LOG][logged] = s, latency[s]
            logged += 1
            total[T_LATENCY] += new - latency[s]
            latency[s] = new
            size = _push_fed(a, w, size, s)
    return logged


@kernel
def _feed(a: Any, s: int, candidate: int, inputs: Any) -> None:
    """Feed a subscription by a candidate, or a copy, from these inputs."""
    link(a, s, -1)
    a[A_HOW][s] = How.COPY if candidate == _COPY else How.REWRITING
    a[A_CANDIDATE][s] = -1 if candidate == _COPY else candidate
    after = input_count(a, s)
    for j in range(a[A_WIDTH]):
        a[A_INPUTS][s * a[A_WIDTH] + j] = inputs[j] if j < after else -1
    link(a, s, 1)


@kernel
def _refeed(a: Any, w: Any, s: int, candidate: int, inputs: Any, size: int) -> int:
    """Feed a subscription otherwise, and queue everybody whose latency may change."""
    before = input_count(a, s)
    for j in range(before):
        w[W_OLD][j] = a[A_INPUTS][s * a[A_WIDTH] + j]
    _feed(a, s, candidate, inputs)
    for j in range(before):
        size = _rate(a, w, size, w[W_OLD][j])
    for j in range(input_count(a, s)):
        size = _rate(a, w, size, inputs[j])
    return _push(w, size, a[A_PLACE][s])


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
def _best_move(
    a: Any, w: Any, s: int, members: Any, limits: Any, site_limits: Any, weights: Any, price: float, room: int
) -> Any:
    """Find the alternative with the best estimate; returns its candidate (-1: none) and its utilization."""
    weight, crowding = weights
    q = a[A_CLASS][s]
    cost = own_utilization(a, s)
    best, found, best_cost = -_LEAST_GAIN, -1, 0
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
                best, found, best_cost = gain, _COPY, asked
                w[W_BEST][0] = u
    return found, best_cost


@kernel
def _all_pointers(
    arrays: Any, work: Any, order: Any, members: Any, limits: Any, site_limits: Any, weights: Any, totals: Any
) -> Any:
    heap, queued, logged, log, best, trial, old = work
    return (
        pointers(arrays),
        (
            int64_at(heap.ctypes.data), bytes_at(queued.ctypes.data), int64_at(logged.ctypes.data),
            float64_at(log.ctypes.data), int32_at(best.ctypes.data), int32_at(trial.ctypes.data),
            int32_at(old.ctypes.data),
        ),
        int64_at(order.ctypes.data),
        (int64_at(members[0].ctypes.data), int64_at(members[1].ctypes.data)),
        int64_at(limits.ctypes.data), int64_at(site_limits.ctypes.data),
        (float64_at(weights[0].ctypes.data), float64_at(weights[1].ctypes.data)),
        float64_at(totals.ctypes.data),
    )  # fmt: skip


@kernel
def improve(
    arrays: Any, work: Any, order: Any, visits: Any, class_members: Any, own_limits: Any, machine_limits: Any,
    own_weights: Any, price: float, budget: int, totals: Any,
) -> None:  # fmt: skip
    """Visit subscriptions and make the best move of each, if there is one that lowers latency + price *
    utilization.

    Utilization never exceeds the budget, feeds never their limits, and nobody is moved to the source.
    """
    a, w, sequence, members, limits, site_limits, weights, total = _all_pointers(
        arrays, work, order, class_members, own_limits, machine_limits, own_weights, totals
    )
    keep = np.empty(a[A_WIDTH], np.int32)
    saved = int32_at(keep.ctypes.data)
    for s in visits:
        if a[A_HOW][s] != How.REWRITING and a[A_HOW][s] != How.COPY:
            continue
        room = budget - int(total[T_UTILIZATION])
        found, asked = _best_move(a, w, s, members, limits, site_limits, weights, price, room)
        if found == -1:
            continue
        cost, before = own_utilization(a, s), total[T_LATENCY]
        old = _COPY if a[A_HOW][s] == How.COPY else a[A_CANDIDATE][s]
        for j in range(a[A_WIDTH]):
            saved[j] = a[A_INPUTS][s * a[A_WIDTH] + j]
        size = _refeed(a, w, s, found, w[W_BEST], 0)
        logged = _settle(a, w, size, sequence, 0, total)
        if _within(a, s, limits, site_limits) and (
            total[T_LATENCY] - before + price * (asked - cost) < -_LEAST_GAIN
        ):
            total[T_UTILIZATION] += asked - cost
            total[T_MADE] += 1
            continue
        total[T_UNDONE] += 1
        size = _refeed(a, w, s, old, saved, 0)
        for i in range(size):  # nothing has to be recomputed: the log has it
            w[W_QUEUED][w[W_HEAP][i]] = False
        for i in range(logged - 1, -1, -1):
            a[A_LATENCY][w[W_LOGGED][i]] = w[W_LOG][i]
        total[T_LATENCY] = before


@kernel
def _within(a: Any, s: int, limits: Any, site_limits: Any) -> bool:
    """Say whether the feeders of a subscription are within their limits: two inputs may be on one machine."""
    for j in range(input_count(a, s)):
        u = a[A_INPUTS][s * a[A_WIDTH] + j]
        if a[A_FEEDS][u] > limits[u] or a[A_SITE_FEEDS][a[A_SITE][u]] > site_limits[a[A_SITE][u]]:
            return False
    return True


@kernel
def sweep(
    arrays: Any, work: Any, order: Any, class_members: Any, own_limits: Any, machine_limits: Any, own_weights: Any,
    price: float, budget: int, totals: Any,
) -> None:  # fmt: skip
    """Visit everybody after all its feeders, and make the best move by the estimate alone.

    Who comes later sees what was changed before it, so latencies are nearly exact all along without being
    followed up.
    """
    a, w, _sequence, members, limits, site_limits, weights, total = _all_pointers(
        arrays, work, order, class_members, own_limits, machine_limits, own_weights, totals
    )
    keep = np.empty(a[A_WIDTH], np.int32)
    saved = int32_at(keep.ctypes.data)
    for s in order:
        a[A_LATENCY][s] = arrival(a, s)
        if a[A_HOW][s] != How.REWRITING and a[A_HOW][s] != How.COPY:
            continue
        room = budget - int(total[T_UTILIZATION])
        found, asked = _best_move(a, w, s, members, limits, site_limits, weights, price, room)
        if found == -1:
            continue
        cost = own_utilization(a, s)
        old = _COPY if a[A_HOW][s] == How.COPY else a[A_CANDIDATE][s]
        for j in range(a[A_WIDTH]):
            saved[j] = a[A_INPUTS][s * a[A_WIDTH] + j]
        _feed(a, s, found, w[W_BEST])
        if _within(a, s, limits, site_limits):
            total[T_UTILIZATION] += asked - cost
            total[T_MADE] += 1
        else:
            _feed(a, s, old, saved)
            total[T_UNDONE] += 1
        a[A_LATENCY][s] = arrival(a, s)

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
from planner.estimates import (
    COPY,
    LEAST_GAIN,
    W_BEST,
    W_HEAP,
    W_LOG,
    W_LOGGED,
    W_OLD,
    W_QUEUED,
    best_move,
    own_utilization,
    weigh,
)
from planner.kernels import kernel
from planner.latency import (
    A_CANDIDATE,
    A_FEEDS,
    A_HEAD,
    A_HOW,
    A_INPUTS,
    A_LATENCY,
    A_NEXT,
    A_PLACE,
    A_RATED,
    A_SITE,
    A_SITE_FEEDS,
    A_WIDTH,
    arrival,
    input_count,
    link,
    pointers,
)
from xmlmatch.pointers import bytes_at, float64_at, int32_at, int64_at

__all__ = ["improve", "sweep", "weigh", "work_area"]

_RATED: Final = 4
"""Latencies take notice of a number of feeds that has changed by more than this share of it, or by this many."""
_NOTICED_S: Final = 1e-5

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
    a[A_HOW][s] = How.COPY if candidate == COPY else How.REWRITING
    a[A_CANDIDATE][s] = -1 if candidate == COPY else candidate
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
def _save(a: Any, s: int, saved: Any) -> int:
    """Copy a subscription's inputs and return its candidate, or that it is a copy: to put it back."""
    for j in range(a[A_WIDTH]):
        saved[j] = a[A_INPUTS][s * a[A_WIDTH] + j]
    return int(COPY if a[A_HOW][s] == How.COPY else a[A_CANDIDATE][s])


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
        found, asked = best_move(a, w, s, members, limits, site_limits, weights, price, room)
        if found == -1:
            continue
        cost, before = own_utilization(a, s), total[T_LATENCY]
        old = _save(a, s, saved)
        size = _refeed(a, w, s, found, w[W_BEST], 0)
        logged = _settle(a, w, size, sequence, 0, total)
        if _within(a, s, limits, site_limits) and (
            total[T_LATENCY] - before + price * (asked - cost) < -LEAST_GAIN
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
        found, asked = best_move(a, w, s, members, limits, site_limits, weights, price, room)
        if found == -1:
            continue
        cost = own_utilization(a, s)
        old = _save(a, s, saved)
        _feed(a, s, found, w[W_BEST])
        if _within(a, s, limits, site_limits):
            total[T_UTILIZATION] += asked - cost
            total[T_MADE] += 1
        else:
            _feed(a, s, old, saved)
            total[T_UNDONE] += 1
        a[A_LATENCY][s] = arrival(a, s)

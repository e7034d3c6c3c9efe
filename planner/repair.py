"""From prices to a choice within the capacities, and its improvement by small moves.

*Repair*: who has most to lose chooses first, the cheapest column at these prices whose feeds are still free.
*Polish*: a group moves to a cheaper column if that is free; or if one other group makes room at less than the
gain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from planner.kernels import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.choices import Choices

_ROUNDS: Final = 8


def repair(choices: Choices, price: NDArray[np.float64]) -> NDArray[np.int64] | None:
    """Choose within the capacities, guided by prices; None where somebody is left without a choice."""
    taken = np.zeros(len(choices.cost), np.int64)
    return taken if _repair(choices.arrays, price, taken) else None


def polish(choices: Choices, taken: NDArray[np.int64]) -> NDArray[np.int64]:
    """Improve a choice that is within the capacities."""
    better = taken.copy()
    room = choices.capacity - choices.uses(better)
    room[: choices.groups] += choices.fed(better)
    for _ in range(_ROUNDS):
        if not _exchange(choices.arrays, room, better):
            break
        _improve(choices.arrays, room, better)
    return better


@kernel
def priced(arrays: Any, price: Any, c: int) -> float:
    """Return a column's cost with the prices of what it uses."""
    cost, row_first, rows = arrays[1], arrays[2], arrays[3]
    total = float(cost[c])
    for i in range(row_first[c], row_first[c + 1]):
        total += price[rows[i]]
    return total


@kernel
def _fits(arrays: Any, room: Any, c: int) -> bool:
    """Say whether a column's feeds are free."""
    row_first, rows = arrays[2], arrays[3]
    for i in range(row_first[c], row_first[c + 1]):
        here = 0
        for j in range(row_first[c], i + 1):
            here += rows[j] == rows[i]
        if room[rows[i]] < here:
            return False
    return True


@kernel
def _take(arrays: Any, room: Any, c: int, times: int) -> None:
    row_first, rows = arrays[2], arrays[3]
    for i in range(row_first[c], row_first[c + 1]):
        room[rows[i]] -= times


@kernel
def _cheapest_fitting(arrays: Any, price: Any, room: Any, g: int) -> int:
    first, cost = arrays[0], arrays[1]
    best, least = -1, np.inf
    for c in range(first[g], first[g + 1]):
        if cost[c] < least:
            total = priced(arrays, price, c)
            if total < least and _fits(arrays, room, c):
                best, least = c, total
    return best


@kernel
def _repair(arrays: Any, price: Any, taken: Any) -> bool:
    first, _, _, _, need, least, _, capacity = arrays
    room = capacity.copy()
    regrets = np.empty(need.size)
    for g in range(need.size):
        room[g] += least[g]
        one, two = np.inf, np.inf
        for c in range(first[g], first[g + 1]):
            total = priced(arrays, price, c)
            if total < one:
                one, two = total, one
            elif total < two:
                two = total
        # A group that cannot even feed itself must be fed more from outside, so it chooses early.
        regrets[g] = two - one if np.isfinite(two) and room[g] >= 0 else np.inf
    for g in np.argsort(-regrets):
        fed = least[g]
        while room[g] < 0 and fed < need[g]:
            fed += 1
            room[g] += 1
        for _ in range(fed):
            c = _cheapest_fitting(arrays, price, room, g)
            if c < 0:
                return False
            taken[c] += 1
            _take(arrays, room, c, 1)
    for g in range(need.size):
        if room[g] < 0:
            return False
    _improve(arrays, room, taken)
    return True


@kernel
def _improve(arrays: Any, room: Any, taken: Any) -> None:
    """Move every group to cheaper columns while there are any with free feeds."""
    first, cost, _, _, need, _, _, _ = arrays
    changed, rounds = True, 0
    while changed and rounds < _ROUNDS:
        changed = False
        rounds += 1
        for g in range(need.size):
            for c in range(first[g], first[g + 1]):
                if taken[c] == 0:
                    continue
                _take(arrays, room, c, -1)
                to = c
                for d in range(first[g], c):
                    if cost[d] < cost[c] and _fits(arrays, room, d):
                        to = d
                        break
                _take(arrays, room, to, 1)
                if to != c:
                    taken[c] -= 1
                    taken[to] += 1
                    changed = True


@kernel
def _current(arrays: Any, taken: Any, current: Any) -> None:
    """By group: the column it takes, if it takes one column once; else -1."""
    first, need = arrays[0], arrays[4]
    for g in range(need.size):
        current[g] = -1
        total = 0
        for c in range(first[g], first[g + 1]):
            total += taken[c]
            if taken[c] == 1:
                current[g] = c
        if total != 1:
            current[g] = -1


@kernel
def _by_row(arrays: Any, current: Any, start: Any) -> Any:
    """List, by row, the groups whose current column uses it."""
    row_first, rows, need = arrays[2], arrays[3], arrays[4]
    start[:] = 0
    for g in range(need.size):
        if current[g] >= 0:
            for i in range(row_first[current[g]], row_first[current[g] + 1]):
                start[rows[i] + 1] += 1
    for r in range(start.size - 1):
        start[r + 1] += start[r]
    groups = np.empty(start[start.size - 1], np.int32)
    at = start.copy()
    for g in range(need.size):
        if current[g] >= 0:
            for i in range(row_first[current[g]], row_first[current[g] + 1]):
                groups[at[rows[i]]] = g
                at[rows[i]] += 1
    return groups


@kernel
def _only_full_row(arrays: Any, room: Any, c: int) -> int:
    """Return the one row without a free feed that a column uses once; -1 if there is none, or more."""
    row_first, rows = arrays[2], arrays[3]
    found = -1
    for i in range(row_first[c], row_first[c + 1]):
        if room[rows[i]] <= 0:
            if found >= 0:
                return -1
            found = rows[i]
    return int(found)


@kernel
def _uses(arrays: Any, c: int, r: int) -> bool:
    row_first, rows = arrays[2], arrays[3]
    for i in range(row_first[c], row_first[c + 1]):
        if rows[i] == r:
            return True
    return False


@kernel
def _exchange(arrays: Any, room: Any, taken: Any) -> bool:
    """Let groups move to cheaper columns for which one other group makes room; say whether any did."""
    first, cost, _, _, need, _, _, capacity = arrays
    current, start = np.empty(need.size, np.int64), np.zeros(capacity.size + 1, np.int64)
    _current(arrays, taken, current)
    users = _by_row(arrays, current, start)
    changed = False
    for g in range(need.size):
        if current[g] < 0:
            continue
        _take(arrays, room, current[g], -1)
        best, who, where, gain = -1, -1, -1, 0
        for c in range(first[g], current[g]):
            if cost[current[g]] - cost[c] <= gain:
                break
            r = _only_full_row(arrays, room, c)
            if r < 0:
                if _fits(arrays, room, c) and cost[current[g]] - cost[c] > gain:
                    best, who, where, gain = c, -1, -1, cost[current[g]] - cost[c]
                continue
            _take(arrays, room, c, 1)
            for k in range(start[r], start[r + 1]):
                h = users[k]
                if h == g or current[h] < 0 or not _uses(arrays, current[h], r):
                    continue
                _take(arrays, room, current[h], -1)
                for d in range(first[h], first[h + 1]):
                    won = cost[current[g]] - cost[c] - (cost[d] - cost[current[h]])
                    if won <= gain:
                        break
                    if d != current[h] and not _uses(arrays, d, r) and _fits(arrays, room, d):
                        best, who, where, gain = c, h, d, won
                        break
                _take(arrays, room, current[h], 1)
            _take(arrays, room, c, -1)
        if best >= 0:
            if who >= 0:
                _take(arrays, room, current[who], -1)
                _take(arrays, room, where, 1)
                taken[current[who]] -= 1
                taken[where] += 1
                current[who] = where
            taken[current[g]] -= 1
            taken[best] += 1
            current[g] = best
            changed = True
        _take(arrays, room, current[g], 1)
    return changed

"""Lagrangian bounds: capacities become prices, every group chooses alone, and the sum is a proven lower bound.

For prices p >= 0 of the rows, the program without its capacities costs, per group, its cheapest column with the
prices of what that uses; less, for what a row holds, its price. However the prices came about, the result is
never above the optimum. They are found by coordinate ascent (a row's best price, the others given, is the regret
of its (capacity + 1)-th most eager consumer) and steps along averaged slopes. On the way, ``repair`` turns
prices into choices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from planner.choices import UNBOUNDED
from planner.kernels import kernel
from planner.repair import polish, priced, repair

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from planner.choices import Choices

_PASSES: Final = 2
_STEPS: Final = 800
_REPAIR_EVERY: Final = 100
_PATIENCE: Final = 10
_NEWEST: Final = 0.03
"""What the newest slope counts in the average; less is steadier, and slower at first."""
_AHEAD: Final = 0.002
_FINEST: Final = 1e-5
CLOSE: Final = 0.999
"""Costs are whole numbers: a smaller gap than 1 is none."""


@dataclass(slots=True, eq=False)
class Relaxed:
    """Prices by row, the bound they prove, and the best choice within the capacities (None if none was found)."""

    prices: NDArray[np.float64]
    bound: float
    taken: NDArray[np.int64] | None = None
    total: int | None = None

    @property
    def is_closed(self) -> bool:
        """Whether bound and choice meet."""
        return self.total is not None and self.total - self.bound <= CLOSE

    def offer(self, choices: Choices, taken: NDArray[np.int64]) -> None:
        """Keep a choice if it is better than the one known."""
        total = choices.total(taken)
        if self.total is None or total < self.total:
            self.taken, self.total = taken, total


def relax(choices: Choices, *, steps: int = _STEPS, enough: Callable[[], bool] = lambda: False) -> Relaxed:
    """Find prices, a bound and a choice; ``enough`` ends it early with what there is."""
    price = np.zeros(len(choices.capacity))
    best = Relaxed(price, -np.inf)
    _look(choices, price, best)
    _try_repair(choices, price, best)
    by_row = _consumers(choices)
    for _ in range(_PASSES):
        if enough() or best.is_closed:
            break
        _ascend(choices.arrays, *by_row, price)
        _look(choices, price, best)
    _try_repair(choices, best.prices, best)
    _climb(choices, best, steps, enough)
    _try_repair(choices, best.prices, best)
    if not (best.is_closed or enough()):
        if best.taken is not None:
            best.offer(choices, polish(choices, best.taken))
        else:
            _spare_the_source(choices, best)
    return best


def improve_bound(choices: Choices, prices: NDArray[np.float64], best: Relaxed) -> None:
    """Keep prices that came from elsewhere if they prove more."""
    _look(choices, prices, best)


def _spare_the_source(choices: Choices, best: Relaxed) -> None:
    """Find a choice where the source's limit is tight: let it be exceeded at a penalty, and polish that away."""
    source, unlimited = choices.source, choices.capacity.copy()
    unlimited[source] = UNBOUNDED
    sizes = np.diff(choices.row_first)
    at_source = (sizes > 0) & (choices.rows[np.maximum(choices.row_first[1:] - 1, 0)] == source)
    penalty = 4 * int(choices.cost.max(initial=1))
    soft = replace(choices, cost=choices.cost + penalty * at_source, capacity=unlimited)
    taken = repair(soft, best.prices)
    if taken is not None:
        taken = polish(soft, taken)
        if choices.violations(taken) == 0:
            best.offer(choices, polish(choices, taken))


def _climb(choices: Choices, best: Relaxed, steps: int, enough: Callable[[], bool]) -> None:
    """Raise the bound along averaged slopes: the volume algorithm (Barahona and Anbil, 2000)."""
    price, value = best.prices, best.bound
    average = _look(choices, price, best)[1]
    scale, failures = 1.0, 0
    for step in range(steps):
        if enough() or best.is_closed or scale < _FINEST:
            break
        direction = np.where((price <= 0) & (average < 0), 0.0, average)
        length = float((direction * direction).sum())
        if length == 0:
            break
        target = abs(best.bound) * _AHEAD + 1 + best.bound - value
        tried = np.maximum(price + scale * target / length * direction, 0)
        got, slope = _look(choices, tried, best)
        average += _NEWEST * (slope - average)
        if got > value:
            price, value, failures = tried, got, 0
            scale = min(scale * 1.1, 2.0) if float((slope * direction).sum()) > 0 else scale
        else:
            failures += 1
            if failures >= _PATIENCE:
                scale, failures = scale * 0.66, 0
        if step % _REPAIR_EVERY == _REPAIR_EVERY - 1:
            _try_repair(choices, price, best)


def _look(choices: Choices, price: NDArray[np.float64], best: Relaxed) -> tuple[float, NDArray[np.float64]]:
    """Evaluate prices and keep the best; return the bound they prove and its slope, by row."""
    slope = np.zeros(len(price))
    value = _evaluate(choices.arrays, price, slope)
    if value > best.bound:
        best.bound, best.prices = value, price.copy()
    slope[choices.capacity >= UNBOUNDED // 2] = 0
    return value, slope


def _try_repair(choices: Choices, price: NDArray[np.float64], best: Relaxed) -> None:
    taken = repair(choices, price)
    if taken is not None:
        best.offer(choices, taken)


def reduced_costs(choices: Choices, price: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how much dearer than its group's best each column is, at these prices."""
    best, value = np.zeros(choices.groups, np.int64), np.zeros(choices.groups)
    best_columns(choices.arrays, price, best, value)
    upto = np.concatenate(([0.0], np.cumsum(price[choices.rows])))
    own = choices.cost + upto[choices.row_first[1:]] - upto[choices.row_first[:-1]]
    return np.asarray(own - np.repeat(value, np.diff(choices.first)))


@kernel
def best_columns(arrays: Any, price: Any, best: Any, value: Any) -> None:
    """Find each group's cheapest column under prices."""
    first, cost, need = arrays[0], arrays[1], arrays[4]
    for g in range(need.size):
        best[g], value[g] = -1, np.inf
        for c in range(first[g], first[g + 1]):
            if cost[c] < value[g]:
                total = priced(arrays, price, c)
                if total < value[g]:
                    best[g], value[g] = c, total


@kernel
def _evaluate(arrays: Any, price: Any, slope: Any) -> float:
    """Return the bound that prices prove; ``slope`` gets uses less capacity, by row."""
    _, _, row_first, rows, need, least, inner, capacity = arrays
    best, value = np.zeros(need.size, np.int64), np.zeros(need.size)
    best_columns(arrays, price, best, value)
    bound = 0.0
    for r in range(capacity.size):
        if price[r] > 0:
            bound -= price[r] * capacity[r]
        slope[r] = -float(capacity[r])
    for g in range(need.size):
        # Each machine more that is fed from outside gives the group's row one feed more.
        fed = need[g] if value[g] - inner[g] - price[g] < 0 else least[g]
        bound += inner[g] * (need[g] - fed)
        if fed > 0:
            bound += fed * (value[g] - price[g])
            slope[g] -= fed
            for i in range(row_first[best[g]], row_first[best[g] + 1]):
                slope[rows[i]] += fed
    return bound


def _consumers(choices: Choices) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """List, by row, the groups with a column that uses it."""
    counts = np.zeros(len(choices.capacity) + 1, np.int64)
    _list_consumers(choices.arrays, counts, np.empty(0, np.int32), True)
    first = np.cumsum(counts)
    groups = np.empty(first[-1], np.int32)
    _list_consumers(choices.arrays, first.copy(), groups, False)
    return first, groups


@kernel
def _list_consumers(arrays: Any, at: Any, groups: Any, counting: bool) -> None:
    first, _, row_first, rows, need, _, _, capacity = arrays
    last = np.full(capacity.size, -1, np.int64)
    for g in range(need.size):
        for i in range(row_first[first[g]], row_first[first[g + 1]]):
            r = rows[i]
            if last[r] != g:
                last[r] = g
                if counting:
                    at[r + 1] += 1
                else:
                    groups[at[r]] = g
                    at[r] += 1


@kernel
def _regret(arrays: Any, price: Any, g: int, r: int) -> float:
    """How much dearer a group's best column is that does without a row, than the best that uses it."""
    first, _, row_first, rows = arrays[0], arrays[1], arrays[2], arrays[3]
    using, without = np.inf, np.inf
    for c in range(first[g], first[g + 1]):
        total, uses = priced(arrays, price, c), False
        for i in range(row_first[c], row_first[c + 1]):
            uses = uses or rows[i] == r
        if uses:
            using = min(using, total)
        else:
            without = min(without, total)
    return without - using


@kernel
def _ascend(arrays: Any, row_groups: Any, groups: Any, price: Any) -> None:
    """Give every row in turn its best price, the others given."""
    need, least, capacity = arrays[4], arrays[5], arrays[7]
    for r in range(capacity.size):
        count = row_groups[r + 1] - row_groups[r]
        room = capacity[r] + (least[r] if r < need.size else 0)
        if count == 0 or room >= UNBOUNDED // 2:
            continue
        regrets = np.empty(count)
        old, price[r] = price[r], 0.0
        for k in range(count):
            regrets[k] = _regret(arrays, price, groups[row_groups[r] + k], r)
        for k in np.argsort(-regrets):
            room -= least[groups[row_groups[r] + k]]
            if regrets[k] <= 0:
                break
            if room < 0:
                price[r] = regrets[k] if np.isfinite(regrets[k]) else old
                break

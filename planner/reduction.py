"""Exact reduction: what cannot matter is taken out of the program before anything is solved.

Until nothing changes: a row whose consumers all fit is no limit; a column whose limited rows contain those of
one that is no dearer is not needed; a group with one column left has no choice, and what it uses is taken off
its rows. At least one optimal solution survives every step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.choices import UNBOUNDED, Choices
from planner.kernels import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Reduced:
    """What is left of a program: a smaller one, and how to get back.

    ``columns`` and ``rows`` say which of the whole program's its columns and rows are. ``settled`` holds what is
    taken without a choice, by column of the whole, at the cost ``constant``.
    """

    choices: Choices
    columns: NDArray[np.int64]
    rows: NDArray[np.int64]
    settled: NDArray[np.int64]
    constant: int

    def whole(self, taken: NDArray[np.int64]) -> NDArray[np.int64]:
        """Turn a choice of the smaller program into one of the whole."""
        everything = self.settled.copy()
        everything[self.columns] = taken
        return everything


def reduce_choices(choices: Choices, live: NDArray[np.bool_] | None = None) -> Reduced:
    """Reduce a program, of which only some columns may be alive, to a fixpoint. No group may be without a
    column."""
    live = np.ones(len(choices.cost), np.bool_) if live is None else live.copy()
    limiting = np.ones(len(choices.capacity), np.bool_)
    settled = np.zeros(choices.groups, np.bool_)
    every = True
    while _reduce(choices.arrays, live, limiting, settled, every):
        every = False
    return _compact(choices, live, limiting, settled)


def _compact(
    choices: Choices, live: NDArray[np.bool_], limiting: NDArray[np.bool_], settled: NDArray[np.bool_]
) -> Reduced:  # fmt: skip
    """Leave out settled groups, dead columns and rows that are no limit."""
    group = choices.group_of()
    alone = settled[group] & live
    taken = np.where(alone, choices.least[group], 0)
    constant = int((choices.cost * taken).sum())
    constant += int((choices.inner * (choices.need - choices.least))[settled].sum())
    room = choices.capacity - choices.uses(taken)
    room[: choices.groups] += np.where(settled, choices.least, 0)
    open_ = np.flatnonzero(~settled)
    further = np.flatnonzero(limiting[:-1])
    further = further[(further >= choices.groups) | settled[np.minimum(further, choices.groups - 1)]]
    rows = np.concatenate((open_, further, [choices.source]))
    where = np.full(len(choices.capacity), -1, np.int32)
    where[rows] = np.arange(len(rows))
    room[~limiting] = UNBOUNDED
    columns = np.flatnonzero(live & ~settled[group])
    sizes, used = _row_lists(choices, columns)
    keep = limiting[used]
    owner = np.repeat(np.arange(len(columns)), sizes)[keep]
    counts = np.bincount(group[columns], minlength=choices.groups)[open_]
    smaller = Choices(
        first=np.concatenate(([0], np.cumsum(counts))),
        cost=choices.cost[columns],
        row_first=np.searchsorted(owner, np.arange(len(columns) + 1)),
        rows=where[used[keep]],
        candidate=choices.candidate[columns],
        need=choices.need[open_],
        least=choices.least[open_],
        inner=choices.inner[open_],
        capacity=room[rows],
    )
    return Reduced(smaller, columns, rows, taken, constant)


def _row_lists(choices: Choices, columns: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return how many rows each of these columns uses, and which, one after the other."""
    sizes = np.diff(choices.row_first)[columns]
    starts = choices.row_first[columns] - np.cumsum(sizes) + sizes
    return sizes, choices.rows[np.arange(sizes.sum()) + np.repeat(starts, sizes)]


@kernel
def _demand(arrays: Any, live: Any, settled: Any, demand: Any, fixed: Any) -> None:
    """Count, by row, what settled groups use of it and what the others could use at most."""
    first, _, row_first, rows, need, least, _, _ = arrays
    last = np.full(demand.size, -1, np.int64)
    times = np.zeros(demand.size, np.int64)
    demand[:] = 0
    fixed[:] = 0
    for g in range(need.size):
        for c in range(first[g], first[g + 1]):
            if not live[c]:
                continue
            for i in range(row_first[c], row_first[c + 1]):
                r = rows[i]
                if settled[g]:
                    fixed[r] += least[g]
                    continue
                if last[r] != g:
                    last[r], times[r] = g, 0
                    demand[r] += need[g]
                    times[r] = 1
                else:
                    # A row may stand several times in one column: count the most of any column.
                    here = 0
                    for j in range(row_first[c], i + 1):
                        here += rows[j] == r
                    if here > times[r]:
                        times[r] = here
                        demand[r] += need[g]


@kernel
def _contains(row_first: Any, rows: Any, limiting: Any, small: int, large: int) -> bool:
    """Say whether the limited rows of one column are among those of another, as often."""
    for i in range(row_first[small], row_first[small + 1]):
        r = rows[i]
        if limiting[r]:
            here, there = 0, 0
            for j in range(row_first[small], i + 1):
                here += rows[j] == r
            for j in range(row_first[large], row_first[large + 1]):
                there += rows[j] == r
            if here > there:
                return False
    return True


@kernel
def _is_touched(arrays: Any, live: Any, freed: Any, g: int) -> bool:
    """Say whether a row that a group gives or uses has been freed: else nothing has changed for it."""
    first, row_first, rows = arrays[0], arrays[2], arrays[3]
    if freed[g]:
        return True
    for c in range(first[g], first[g + 1]):
        if live[c]:
            for i in range(row_first[c], row_first[c + 1]):
                if freed[rows[i]]:
                    return True
    return False


@kernel
def _reduce(arrays: Any, live: Any, limiting: Any, settled: Any, every: bool) -> bool:
    """Make one round over the rows, then over the groups: every one, or those that this round's rows touch."""
    first, cost, row_first, rows, need, least, inner, capacity = arrays
    demand, fixed = np.zeros(capacity.size, np.int64), np.zeros(capacity.size, np.int64)
    _demand(arrays, live, settled, demand, fixed)
    freed = np.zeros(capacity.size, np.bool_)
    changed = False
    for r in range(capacity.size):
        if limiting[r]:
            room = capacity[r] - fixed[r]
            if r < need.size:
                room += least[r]
            if demand[r] <= room:
                limiting[r] = False
                freed[r] = True
                changed = True
    for g in range(need.size):
        if settled[g] or not (every or _is_touched(arrays, live, freed, g)):
            continue
        alive = 0
        cheapest = -1
        if need[g] == 0:
            for c in range(first[g], first[g + 1]):
                live[c] = False
            settled[g], changed = True, True
            continue
        for c in range(first[g], first[g + 1]):
            if not live[c]:
                continue
            for d in range(first[g], c):  # the cheapest come first
                if live[d] and _contains(row_first, rows, limiting, d, c):
                    live[c] = False
                    changed = True
                    break
            if live[c]:
                alive += 1
                if cheapest < 0:
                    cheapest = c
        own_fixed = need[g] == least[g] or (not limiting[g] and cheapest >= 0 and cost[cheapest] >= inner[g])
        if alive == 1 and own_fixed:
            settled[g] = True
            changed = True
    return changed

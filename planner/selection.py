"""Solving the integer program to proven optimality: reduction, prices, then a small core for the solver.

Theory of operation. Prices give a bound LB and a choice UB. A column whose reduced cost (its own with the prices
of what it uses, less its group's least) is above UB - LB cannot be part of anything better than UB; so the
program with only the columns up to some delta, the *core*, is solved exactly. If UB - LB <= delta then, the best
known is optimal for the whole program; else delta becomes UB - LB, and again. The first delta is as large as
makes a core of a size that the solver finishes in seconds. Costs are whole numbers throughout.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from planner.choices import UNBOUNDED, Choices
from planner.lagrangian import Relaxed, improve_bound, reduced_costs, relax
from planner.reduction import reduce_choices
from planner.solver import Model, Outcome, shadow_prices, solve

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_FIRST_CORE: Final = 20_000
_LARGE_CORE: Final = 20_000
_SHARPENINGS: Final = 6
_SHARPENED: Final = 250_000
"""With more columns than this, linear relaxations take longer than a wider core."""
_NEAR: Final = 1e-5
_WIDER: Final = 16
_ROUNDS: Final = 12
_FOREVER: Final = 1e9
NO_CHOICE: Final = "the limits of the subscriptions leave no way to feed them all"


@dataclass(slots=True, eq=False)
class Selection:
    """What was chosen, and what is proven about it.

    ``taken``: how often each column is taken, if any choice was found; ``total`` its utilization, ``bound`` a
    proven lower bound on it, ``prices`` those of the rows. ``reason`` says why there is no choice when the outcome
    is ``INFEASIBLE``. ``steps``: what was done, for reports.
    """

    outcome: Outcome
    taken: NDArray[np.int64] | None
    total: int | None
    bound: float
    prices: NDArray[np.float64]
    reason: str = ""
    steps: list[dict[str, float | str]] = field(default_factory=list)

    @property
    def gap(self) -> float:
        """How far the choice may be from the optimum, as a share of the bound; 0 if it is optimal."""
        if self.outcome is Outcome.OPTIMAL:
            return 0.0
        if self.total is None or self.bound <= 0:
            return float("inf")
        return max(0.0, self.total / self.bound - 1)


def select(
    choices: Choices, *, seconds: float | None = None, cancelled: Callable[[], bool] = lambda: False
) -> Selection:
    """Solve the program. With a time limit, or when cancelled, the best so far comes back with its proven gap."""
    clock = _Clock(_FOREVER if seconds is None else seconds, cancelled)
    reduced = reduce_choices(choices)
    steps: list[dict[str, float | str]] = [
        {"step": "reduction", "columns": len(reduced.columns), "groups": reduced.choices.groups}
    ]
    known = relax(reduced.choices, enough=clock.is_over)
    if known.taken is not None and choices.violations(reduced.whole(known.taken)):
        known.taken, known.total = None, None  # what has no choice is already too much
    steps.append(_told("prices", known, reduced.constant, clock))
    any_, reason = None, ""
    if known.total is None:
        any_, reason = _find_any(choices, clock)
        if any_ is not None:
            known.total = choices.total(any_) - reduced.constant
    outcome = Outcome.INFEASIBLE if reason else _close(reduced.choices, known, clock, steps, reduced.constant)
    taken = any_ if known.taken is None else reduced.whole(known.taken)
    prices = np.zeros(len(choices.capacity))
    prices[reduced.rows] = known.prices
    total = None if taken is None else choices.total(taken)
    if outcome is Outcome.INFEASIBLE and not reason:
        reason = NO_CHOICE
    return Selection(outcome, taken, total, known.bound + reduced.constant, prices, reason, steps)


@dataclass(slots=True)
class _Clock:
    """When to stop."""

    seconds: float
    cancelled: Callable[[], bool]
    started: float = field(default_factory=time.monotonic)

    def is_over(self) -> bool:
        return self.left() <= 0 or self.cancelled()

    def left(self) -> float:
        return self.started + self.seconds - time.monotonic()

    def passed(self) -> float:
        return time.monotonic() - self.started


def _told(step: str, known: Relaxed, constant: int, clock: _Clock) -> dict[str, float | str]:
    total = -1 if known.total is None else known.total + constant
    return {"step": step, "total": total, "bound": known.bound + constant, "seconds": round(clock.passed(), 3)}


def _close(
    choices: Choices, known: Relaxed, clock: _Clock, steps: list[dict[str, float | str]], constant: int
) -> Outcome:
    """Solve larger and larger cores until the choice is proven optimal, or time is up."""
    rates, prices_bound = reduced_costs(choices, known.prices), known.bound
    delta = _first_delta(rates, known)
    for _ in range(_ROUNDS):
        if known.is_closed or clock.is_over():
            break
        if (
            _FIRST_CORE < len(rates) <= _SHARPENED
            and _is_near(known)
            and _sharpen(choices, rates, known, delta, clock)
        ):
            rates, prices_bound = reduced_costs(choices, known.prices), known.bound
            steps.append(_told("shadow prices", known, constant, clock))
            if known.is_closed:
                break
        proof, size = _solve_core(choices, rates, known, delta, clock)
        steps.append(_told("core", known, constant, clock) | {"delta": delta, "columns": size})
        if proof is Outcome.INFEASIBLE and delta == np.inf:
            return Outcome.INFEASIBLE
        if known.total is None:
            delta = np.inf if delta == np.inf or proof is not Outcome.UNKNOWN else delta
            delta = max(4 * delta, 1.0)
            continue
        if proof is Outcome.OPTIMAL:
            # Outside the core everything costs at least delta more than the bound.
            known.bound = max(known.bound, min(known.total, prices_bound + delta))
        elif proof is not Outcome.FEASIBLE:
            break
        wanted = max(known.total - prices_bound, delta)
        delta = wanted if _is_near(known) else min(wanted, _WIDER * delta)
    if known.is_closed:
        known.bound = float(known.total or 0)
        return Outcome.OPTIMAL
    return Outcome.UNKNOWN if known.total is None else Outcome.FEASIBLE


def _is_near(known: Relaxed) -> bool:
    return known.total is not None and known.total - known.bound <= _NEAR * abs(known.total)


def _first_delta(rates: NDArray[np.float64], known: Relaxed) -> float:
    most = np.inf if known.total is None else max(known.total - known.bound, 1.0)
    if len(rates) <= _FIRST_CORE:
        return most
    groups = (rates <= 0).sum()
    at = min(int(groups) + max(_FIRST_CORE, len(rates) // 8), len(rates) - 1)
    return float(min(most, np.partition(rates, at)[at]))


def _sharpen(choices: Choices, rates: NDArray[np.float64], known: Relaxed, delta: float, clock: _Clock) -> bool:
    """Take prices from the core's linear relaxation, adding columns that it undervalues; say if they prove
    more."""
    live = rates <= delta + 1e-6
    before = known.bound
    group = choices.group_of()
    for _ in range(_SHARPENINGS):
        if known.taken is not None:
            live |= known.taken > 0
        core = reduce_choices(choices, live)
        if len(core.columns) == 0 or clock.is_over():
            break
        model, rows = _model(core.choices)
        worth = shadow_prices(model, seconds=clock.left())
        if worth is None:
            break
        prices = np.zeros(len(choices.capacity))
        prices[core.rows[rows]] = worth[core.choices.groups :]
        improve_bound(choices, prices, known)
        if known.is_closed:
            break
        own = reduced_costs(choices, prices)
        cheapest = np.full(choices.groups, np.inf)
        np.minimum.at(cheapest, group[live], own[live])
        missing = ~live & (own < cheapest[group] - 1e-6)
        if not missing.any():
            break
        live |= missing
    return known.bound > before + 0.5


def _solve_core(
    choices: Choices, rates: NDArray[np.float64], known: Relaxed, delta: float, clock: _Clock
) -> tuple[Outcome, int]:
    """Solve the program with the columns of a reduced cost up to delta, and keep what is better.

    Says what is proven of that program, and how many columns the solver got.
    """
    live = rates <= delta + 1e-6
    if known.taken is not None:
        live |= known.taken > 0
    core = reduce_choices(choices, live)
    size = len(core.columns)
    if size == 0:
        taken = core.settled
        if choices.violations(taken):
            return Outcome.INFEASIBLE, 0
        known.offer(choices, taken)
        return Outcome.OPTIMAL, 0
    hint = None if known.taken is None else known.taken[core.columns]
    solution = solve(_model(core.choices)[0], seconds=clock.left(), solver=_solver(size), hint=hint)
    if solution.values is not None:
        taken = core.whole(solution.values)
        if choices.violations(taken) == 0:
            known.offer(choices, taken)
    return solution.outcome, size


def _solver(columns: int) -> str:
    """Choose a solver: HiGHS is several times quicker on large cores, SCIP starts from the choice known."""
    return "highs" if columns > _LARGE_CORE else "gscip"


def _model(choices: Choices) -> tuple[Model, NDArray[np.int64]]:
    """Write a program as a solver's model; also say which rows of ours follow its rows of groups.

    Costs are counted from each group's least, to keep them small.
    """
    columns, groups = len(choices.cost), choices.groups
    group = choices.group_of()
    uses = np.repeat(np.arange(columns), np.diff(choices.row_first))
    rows = np.concatenate((group, groups + choices.rows.astype(np.int64), groups + group))
    at = np.concatenate((np.arange(columns), uses, np.arange(columns)))
    values = np.concatenate((np.ones(columns), np.ones(len(uses)), -np.ones(columns)))
    limited = np.concatenate((np.ones(groups, np.bool_), choices.capacity < UNBOUNDED // 2))
    fixed = choices.need == choices.least
    own = np.concatenate((np.ones(columns, np.bool_), np.ones(len(uses), np.bool_), ~fixed[group]))
    keep = limited[rows] & own
    number = np.cumsum(limited) - 1
    key, inverse = np.unique(number[rows[keep]] * columns + at[keep], return_inverse=True)
    summed = np.bincount(inverse, weights=values[keep], minlength=len(key)).astype(np.float64)
    room = choices.capacity.astype(float)
    room[:groups] += np.where(fixed, choices.least, 0)
    offset = np.where(fixed, choices.cost[choices.first[:-1]], choices.inner)
    model = Model(
        (choices.cost - offset[group]).astype(float),
        np.zeros(columns),
        choices.need[group].astype(float),
        np.concatenate((choices.least.astype(float), np.full(int(limited[groups:].sum()), -np.inf))),
        np.concatenate((choices.need.astype(float), room[limited[groups:]])),
        key // columns,
        key % columns,
        summed,
    )
    return model, np.flatnonzero(limited[groups:])


def _find_any(choices: Choices, clock: _Clock) -> tuple[NDArray[np.int64] | None, str]:
    """No choice within the capacities was found on the way: ask how few feeds the source can do with.

    Returns a choice, if that finds one, and why there is none, if that is proven.
    """
    counting, order = _counting(choices)
    relaxed = relax(counting, enough=clock.is_over)
    if not relaxed.is_closed and not clock.is_over():
        reduced = reduce_choices(counting)
        if len(reduced.columns):
            solution = solve(_model(reduced.choices)[0], seconds=clock.left())
            if solution.outcome is Outcome.INFEASIBLE:
                return None, NO_CHOICE
            if solution.values is not None and counting.violations(reduced.whole(solution.values)) == 0:
                relaxed.offer(counting, reduced.whole(solution.values))
            if solution.outcome is Outcome.OPTIMAL and relaxed.total is not None:
                relaxed.bound = relaxed.total
    limit = int(choices.capacity[choices.source])
    least = int(np.ceil(relaxed.bound - 1e-6))
    if least > limit:
        return None, f"the source must feed at least {least:,}; its limit is {limit:,}"
    if relaxed.taken is not None and relaxed.total is not None and relaxed.total <= limit:
        taken = np.zeros_like(relaxed.taken)
        taken[order] = relaxed.taken
        return taken, ""
    return None, ""


def _counting(choices: Choices) -> tuple[Choices, NDArray[np.int64]]:
    """Make the program that minimizes the number of source feeds; also which column of ours each of its is."""
    sizes = np.diff(choices.row_first)
    last = np.maximum(choices.row_first[1:] - 1, 0)
    at_source = ((sizes > 0) & (choices.rows[last] == choices.source)).astype(np.int64)
    order = np.lexsort((np.arange(len(at_source)), at_source, choices.group_of()))
    row_first = np.concatenate(([0], np.cumsum(sizes[order])))
    starts = np.repeat(choices.row_first[order] - row_first[:-1], sizes[order])
    counting = replace(
        choices,
        cost=at_source[order],
        row_first=row_first,
        rows=choices.rows[np.arange(len(choices.rows)) + starts],
        candidate=choices.candidate[order],
        inner=np.zeros_like(choices.inner),
        capacity=np.concatenate((choices.capacity[:-1], [UNBOUNDED])),
    )
    return counting, order

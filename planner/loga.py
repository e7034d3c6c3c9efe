"""LOGA (Algorithm 2 of the Delta paper) and a second pass that goes further at the same utilization.

LOGA visits the rewritings in the order of their impact (latency times how many hang on it) and replaces each by
the alternative with which all latencies together are least, within 1.5 times the plan limits and a budget of
utilization; nobody is moved to the source. It repeats that until nothing changes. The second pass prices
utilization: it also takes back what LOGA bought dearly, and spends it where a byte buys more time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from planner.choices import UNBOUNDED
from planner.latency import Timing, relink, retime, utilization
from planner.moves import T_FIELDS, T_LATENCY, T_MADE, T_UTILIZATION, improve, sweep, weigh, work_area

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from planner.configuration import Configuration
    from planner.problem import Problem
    from planner.rewritability import Program
    from rewriting.pricing import Prices

_CHUNKS: Final = 16
_ROUNDS: Final = 12
_LEAST_PROGRESS: Final = 0.02
"""Rounds end when one gains less than this share: the second pass gets further in the same time."""
_PRICES: Final = (1.0, 0.3, 0.1, 0.03)


@dataclass(slots=True)
class Improvement:
    """What came of a pass: total latency and utilization, moves made, and the trace (seconds, latency,
    utilization)."""

    latency: float
    utilization: int
    moves: int = 0
    trace: list[tuple[float, float, int]] = field(default_factory=list)


def improvement_limits(limits: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the limits that hold while latency is improved."""
    return np.where(limits >= UNBOUNDED, UNBOUNDED, np.minimum(limits, UNBOUNDED) * 3 // 2)


class Improver:
    """Improves the latency of one configuration in place; the three limits and the source's feeds are kept."""

    def __init__(
        self, problem: Problem, prices: Prices, program: Program, timing: Timing, *, strict: bool = False
    ) -> None:
        """``strict``: keep the plan limits, to break ties between configurations of equal utilization."""
        self.problem, self.prices, self.timing = problem, prices, timing
        count, width = timing.configuration.inputs.shape
        self._work = work_area(count, width)
        self._members = (program.order, program.class_first)
        self._limits = program.limits if strict else improvement_limits(problem.limits)
        own = problem.network.limits
        self._site_limits = own if strict else improvement_limits(own)
        self._weights = (np.ones(count), np.zeros(count))
        self.total = np.zeros(T_FIELDS)
        self.total[T_LATENCY], self.total[T_UTILIZATION] = timing.total(), utilization(timing, problem, prices)
        self._started = time.monotonic()
        self.price = 0.0
        """What a byte equivalent of utilization is worth, in seconds: a move must save more than it costs."""

    def loga(
        self, budget: int, *, rounds: int = _ROUNDS, enough: Callable[[], bool] = lambda: False
    ) -> Improvement:
        """Run LOGA within a budget of utilization."""
        made, trace = self.total[T_MADE], [self._told()]
        self._rounds(rounds, budget, enough, trace)
        return self._came(made, trace)

    def _rounds(
        self, rounds: int, budget: int, enough: Callable[[], bool], trace: list[tuple[float, float, int]]
    ) -> None:
        for _ in range(rounds):
            before = self.total[T_LATENCY]
            for part in np.array_split(self._by_impact(), _CHUNKS):
                if enough():
                    break
                self._retime()
                improve(
                    self.timing.arrays, self._work, self.timing.sequence, part, self._members, self._limits,
                    self._site_limits, self._weights, self.price, budget, self.total,
                )  # fmt: skip
                trace.append(self._told())
            self._retime()
            if enough() or before - self.total[T_LATENCY] <= _LEAST_PROGRESS * before:
                break

    def break_ties(self) -> None:
        """Lower the latency at no more utilization, by one sweep; put back if that lowers nothing."""
        before, kept = self.total.copy(), self.timing.configuration.copy()
        self._sweep(0.0, int(before[T_UTILIZATION]))
        if self.total[T_LATENCY] >= before[T_LATENCY]:
            self._restore(kept, before)

    def second_pass(self, budget: int, slope: float, *, enough: Callable[[], bool] = lambda: False) -> Improvement:
        """Go on within the budget; ``slope``: what LOGA paid on average, in seconds per byte equivalent.

        Sweeps with utilization at a falling price, then rounds as LOGA's; if all that is no better, it is put
        back.
        """
        made, trace = self.total[T_MADE], [self._told()]
        best, kept = self.total.copy(), self.timing.configuration.copy()
        for factor in _PRICES:
            if enough():
                break
            self._sweep(max(factor * slope, self.price), budget)
            trace.append(self._told())
        self._rounds(_ROUNDS, budget, enough, trace)
        if self.total[T_LATENCY] < best[T_LATENCY] and self.total[T_UTILIZATION] <= budget:
            return self._came(made, trace)
        self._restore(kept, best)
        return self._came(made, trace)

    def _sweep(self, price: float, budget: int) -> None:
        self._retime()
        sweep(
            self.timing.arrays, self._work, self.timing.sequence, self._members, self._limits, self._site_limits,
            self._weights, price, budget, self.total,
        )  # fmt: skip
        self._retime()

    def _restore(self, kept: Configuration, totals: NDArray[np.float64]) -> None:
        """Go back to a configuration that was kept."""
        relink(self.timing.arrays, self.timing.sequence, kept.how, kept.candidate, kept.inputs)
        self.total[T_UTILIZATION] = totals[T_UTILIZATION]
        self._retime()

    def _retime(self) -> None:
        self.total[T_LATENCY] = retime(self.timing.arrays, self.timing.sequence)
        weigh(self.timing.arrays, self.timing.sequence, *self._weights)

    def _came(self, made: float, trace: list[tuple[float, float, int]]) -> Improvement:
        moves = int(self.total[T_MADE] - made)
        return Improvement(float(self.total[T_LATENCY]), int(self.total[T_UTILIZATION]), moves, trace)

    def _told(self) -> tuple[float, float, int]:
        return (
            time.monotonic() - self._started, float(self.total[T_LATENCY]), int(self.total[T_UTILIZATION]),
        )  # fmt: skip

    def _by_impact(self) -> NDArray[np.int64]:
        self._retime()
        return np.argsort(-self.timing.latency * self._weights[0], kind="stable")

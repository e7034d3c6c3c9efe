"""A full plan: candidates, prices, the proven choice, who feeds whom, and lower latency.

The four steps can be run one by one (a Spark batch does); ``plan`` runs them all in this process.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from planner.configuration import Configuration, How
from planner.errors import NoFeasiblePlan, NoPlanFound
from planner.latency import Timing, class_order, utilization
from planner.latency_bound import latency_bound
from planner.loga import Improvement, Improver
from planner.rewritability import Program, build, expand
from planner.selection import Selection, select
from planner.solver import Outcome
from rewriting.candidate_table import find_candidates
from rewriting.pricing import price

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from planner.problem import Problem
    from rewriting.candidate_table import CandidateTable
    from rewriting.candidates import Effort
    from rewriting.pricing import Prices

BUDGET: Final = 0.07
"""How much more utilization than the least may be spent on latency: the paper's LOGA spent 5 to 7 %."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What a configuration comes to: total utilization; total latency, ours and the paper's; subscriptions by
    level."""

    utilization: int
    latency: float
    paper_latency: float
    levels: list[int]


@dataclass(slots=True, eq=False)
class Plan:
    """A plan and what is known of it. ``solved`` is the configuration of least utilization as the solver left it,
    ``chosen`` the same with ties broken by latency, ``configuration`` the final one. ``figures``: by stage:
    ``ilp`` of the first, ``ties`` of the second, ``loga``, ``best``. ``latency_bound``: proven, for the same
    source feeds."""

    problem: Problem
    table: CandidateTable
    prices: Prices
    program: Program
    selection: Selection
    solved: Configuration
    chosen: Configuration
    configuration: Configuration
    figures: dict[str, Figures]
    latency_bound: float
    trace: list[tuple[float, float, int]] = field(default_factory=list)
    loga_s: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def is_exact(self) -> bool:
        """Whether the least utilization over the listed candidates is the least of all configurations of them."""
        return not self.program.inexact

    @property
    def offloaded(self) -> float:
        """The share of subscriptions that the source does not feed."""
        return 1 - float(np.count_nonzero(self.configuration.how == How.SOURCE)) / len(self.problem)


def plan(
    problem: Problem,
    *,
    seconds: float | None = None,
    budget: float = BUDGET,
    effort: Effort | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    told: Callable[[str], None] = lambda _: None,
) -> Plan:
    """Plan in this process. ``seconds`` limits choosing and improving each; ``told`` hears of each step.

    Raises ``NoFeasiblePlan`` if that is proven, ``NoPlanFound`` if it is not, or time ran out before any was
    found.

    >>> from planner.problem import Problem, Subscription
    >>> from xmlmatch import Pattern
    >>> texts = ["//a{cont}", "//b{val}", "//a{cont}//b{val}", "//a{cont}"]
    >>> found = plan(Problem.of(Subscription(f"s{i}", Pattern.parse(t), f"m{i}", 2) for i, t in enumerate(texts)))
    >>> found.selection.outcome.value, found.configuration.how.tolist().count(How.SOURCE)
    ('optimal', 2)
    """
    told("finding candidates")
    clock = {"start": time.monotonic()}
    options: dict[str, Any] = {} if effort is None else {"effort": effort}
    table = find_candidates(
        problem.graph, problem.k, statistics=problem.statistics, link_bytes=problem.weights.link_bytes, **options
    )
    prices = price(problem.graph, table, problem.statistics, problem.weights)
    clock["candidates"] = time.monotonic()
    chosen = choose_plan(problem, table, prices, seconds, cancelled, told, clock)
    return improve_plan(chosen, seconds, budget, cancelled=cancelled, told=told)


def choose_plan(
    problem: Problem, table: CandidateTable, prices: Prices, seconds: float | None,
    cancelled: Callable[[], bool] = lambda: False, told: Callable[[str], None] = lambda _: None,
    clock: dict[str, float] | None = None,
) -> Plan:  # fmt: skip
    """Choose the configuration of least utilization over given candidates."""
    clock = clock or {"start": time.monotonic(), "candidates": time.monotonic()}
    told("choosing the least utilization")
    program = build(problem, table, prices)
    selection = select(program.choices, seconds=seconds, cancelled=cancelled)
    if selection.outcome is Outcome.INFEASIBLE and program.inexact:
        raise NoPlanFound(f"{selection.reason}, not counting this: {'; '.join(program.inexact)}")
    if selection.outcome is Outcome.INFEASIBLE:
        raise NoFeasiblePlan(selection.reason)
    if selection.taken is None:
        raise NoPlanFound("time ran out; allow more of it, higher limits or more feeds of the source")
    chosen = expand(problem, table, prices, program, selection.taken)
    solved = chosen.copy()
    order = class_order(table)
    timing = Timing.of(problem, table, prices, chosen, order=order)
    figures = {"ilp": figures_of(problem, table, prices, timing, order)}
    Improver(problem, prices, program, timing, strict=True).break_ties()
    figures["ties"] = figures_of(problem, table, prices, timing, order)
    seconds_ = {
        "candidates": clock["candidates"] - clock["start"], "solve": time.monotonic() - clock["candidates"],
    }  # fmt: skip
    return Plan(
        problem, table, prices, program, selection, solved, chosen, chosen.copy(), figures,
        latency_bound(problem, table, prices, timing), [], 0.0, seconds_,
    )  # fmt: skip


def improve_plan(
    found: Plan, seconds: float | None, budget: float = BUDGET, price: float = 0.0,
    cancelled: Callable[[], bool] = lambda: False, told: Callable[[str], None] = lambda _: None,
) -> Plan:  # fmt: skip
    """Lower the latency of a plan: LOGA, then the second pass at the utilization that LOGA ended with.

    ``price``: alpha / beta of the paper's cost, what a byte equivalent is worth in seconds of latency.
    """
    told("lowering latency")
    started = time.monotonic()

    def enough() -> bool:
        return cancelled() or (seconds is not None and time.monotonic() - started > seconds)

    problem, table, prices = found.problem, found.table, found.prices
    order = class_order(table)
    timing = Timing.of(problem, table, prices, found.configuration, order=order)
    improver = Improver(problem, prices, found.program, timing)
    improver.price = price
    before = found.figures["ties"]
    first = improver.loga(int(before.utilization * (1 + budget)), enough=enough)
    found.figures["loga"] = figures_of(problem, table, prices, timing, order)
    slope = (before.latency - first.latency) / max(first.utilization - before.utilization, 1)
    second: Improvement = improver.second_pass(max(first.utilization, before.utilization), slope, enough=enough)
    found.figures["best"] = figures_of(problem, table, prices, timing, order)
    found.trace, found.loga_s = first.trace + second.trace, first.trace[-1][0]
    found.seconds["improve"] = time.monotonic() - started
    return found


def figures_of(
    problem: Problem, table: CandidateTable, prices: Prices, timing: Timing, order: NDArray[np.int64]
) -> Figures:
    """Count up a configuration, from scratch."""
    again = Timing.of(problem, table, prices, timing.configuration.copy(), order=order)
    plain = Timing.of(problem, table, prices, timing.configuration.copy(), order=order, shared=False)
    levels = np.bincount(again.levels()).tolist()
    return Figures(utilization(again, problem, prices), again.total(), plain.total(), levels)

"""The one place that knows OR-Tools: an integer program in arrays goes in, values and a proven bound come out."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from planner.errors import SolverMissing

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ABSOLUTE_GAP: Final = 0.99
"""Costs are whole numbers: a smaller gap than 1 is none."""


class Outcome(Enum):
    """How a solver's run ended; only ``OPTIMAL`` and ``INFEASIBLE`` are proofs."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """Minimize ``objective * x`` with whole ``x`` from ``low`` to ``high`` and ``row_low <= A x <= row_high``.

    ``A`` has the entries ``values`` at (``entry_rows``, ``entry_columns``), sorted by row, then column.
    """

    objective: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    row_low: NDArray[np.float64]
    row_high: NDArray[np.float64]
    entry_rows: NDArray[np.int64]
    entry_columns: NDArray[np.int64]
    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """What came out: values if there are any, and a proven lower bound on the objective."""

    outcome: Outcome
    values: NDArray[np.int64] | None
    bound: float


def solve(
    model: Model, *, seconds: float, solver: str = "gscip", hint: NDArray[np.int64] | None = None
) -> Solution:
    """Solve a model within a time limit. ``solver``: ``gscip`` or ``highs``; ``hint``: a known solution."""
    mathopt, built = _built(model, whole=True)
    known = mathopt.ModelSolveParameters()
    if hint is not None and solver == "gscip":
        values = {built.get_variable(i): float(value) for i, value in enumerate(hint.tolist())}
        known.solution_hints.append(mathopt.SolutionHint(variable_values=values))
    kinds = {"gscip": mathopt.SolverType.GSCIP, "highs": mathopt.SolverType.HIGHS}
    parameters = mathopt.SolveParameters(
        time_limit=datetime.timedelta(seconds=max(seconds, 0.05)),
        absolute_gap_tolerance=_ABSOLUTE_GAP,
        relative_gap_tolerance=0.0,
        random_seed=1,
    )
    result = mathopt.solve(built, kinds[solver], params=parameters, model_params=known)
    reason = mathopt.TerminationReason
    outcome = {
        reason.OPTIMAL: Outcome.OPTIMAL,
        reason.FEASIBLE: Outcome.FEASIBLE,
        reason.INFEASIBLE: Outcome.INFEASIBLE,
    }.get(result.termination.reason, Outcome.UNKNOWN)
    found = None
    if result.has_primal_feasible_solution():
        found = np.zeros(len(model.objective), np.int64)
        for variable, value in result.variable_values().items():
            found[variable.id] = round(value)
    return Solution(outcome, found, float(result.termination.objective_bounds.dual_bound))


def shadow_prices(model: Model, *, seconds: float) -> NDArray[np.float64] | None:
    """Solve a model with ``x`` not whole, and return by row what its upper limit is worth; None if time ran
    out."""
    mathopt, built = _built(model, whole=False)
    parameters = mathopt.SolveParameters(time_limit=datetime.timedelta(seconds=max(seconds, 0.05)))
    result = mathopt.solve(built, mathopt.SolverType.GLOP, params=parameters)
    if not result.has_dual_feasible_solution():
        return None
    worth = np.zeros(len(model.row_low))
    for row, value in result.dual_values().items():
        worth[row.id] = max(-value, 0.0)
    return worth


def _built(model: Model, *, whole: bool) -> tuple[Any, Any]:
    """Hand a model over in bulk: adding variables one by one takes longer than solving."""
    try:
        from ortools.math_opt import model_pb2
        from ortools.math_opt.python import mathopt
    except ModuleNotFoundError as exc:
        raise SolverMissing from exc
    proto = model_pb2.ModelProto()
    columns, rows = len(model.objective), len(model.row_low)
    proto.variables.ids.extend(range(columns))
    proto.variables.lower_bounds.extend(model.low.tolist())
    proto.variables.upper_bounds.extend(model.high.tolist())
    proto.variables.integers.extend([whole] * columns)
    proto.objective.linear_coefficients.ids.extend(range(columns))
    proto.objective.linear_coefficients.values.extend(model.objective.tolist())
    proto.linear_constraints.ids.extend(range(rows))
    proto.linear_constraints.lower_bounds.extend(model.row_low.tolist())
    proto.linear_constraints.upper_bounds.extend(model.row_high.tolist())
    matrix = proto.linear_constraint_matrix
    matrix.row_ids.extend(model.entry_rows.tolist())
    matrix.column_ids.extend(model.entry_columns.tolist())
    matrix.coefficients.extend(model.values.tolist())
    return mathopt, mathopt.Model.from_model_proto(proto)

"""What a report says of a plan: the figures behind its sentences and pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from planner.choices import UNBOUNDED
from planner.configuration import How
from planner.latency import Timing
from planner.problem import hard_limit, improvement_limit
from rewriting.pricing import JOIN, per_document

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from planner.planning import Plan

_LISTED: Final = 20
_CURVE: Final = 50


def plan_figures(found: Plan, seconds: Mapping[str, float], peak_mb: float) -> dict[str, Any]:
    """Gather everything a report shows."""
    problem, count = found.problem, len(found.problem)
    timing = Timing.of(problem, found.table, found.prices, found.configuration)
    at_source = int(np.count_nonzero(found.configuration.how == How.SOURCE))
    load = site_load(found)
    return {
        "subscriptions": count,
        "patterns": len(problem.graph),
        "sites": len(problem.network.names),
        "outcome": found.selection.outcome.value,
        "gap": found.selection.gap,
        "exact": found.is_exact,
        "inexact": found.program.inexact,
        "pending": int(np.count_nonzero(found.configuration.how == How.PENDING)),
        "offloaded": found.offloaded,
        "source": {
            "limit": problem.source_feeds,
            "plan_limit": None if problem.source_feeds is None else problem.source_limit,
            "feeds": at_source,
        },
        "limits": _limits(problem.limits),
        "utilization": {stage: f.utilization for stage, f in found.figures.items()}
        | {"bound": float(found.selection.bound)},
        "latency_s": {stage: f.latency / count for stage, f in found.figures.items()}
        | {"bound": found.latency_bound / count},
        "paper_latency_s": {stage: f.paper_latency / count for stage, f in found.figures.items()},
        "levels": {stage: f.levels for stage, f in found.figures.items() if stage in ("ilp", "best")},
        "fan_out": _fan_out(timing.feeds, problem.limits),
        "trace": [[at, latency / count, used] for at, latency, used in found.trace],
        "trace_marks": [[found.loga_s, "LOGA ends"]],
        "site_utilization": {"shares": _curve(load)},
        "busiest_sites": [[problem.network.names[i], int(load[i])] for i in np.argsort(-load)[:_LISTED].tolist()],
        "largest_feeders": _feeders(found, timing.feeds),
        "views_per_rewriting": _views(found),
        "joined_share": _joined(found),
        "steps": found.selection.steps,
        "seconds": {stage: round(value, 2) for stage, value in seconds.items()},
        "peak_mb": round(peak_mb),
    }


def site_load(found: Plan) -> NDArray[np.float64]:
    """Return, by site, the utilization that its subscriptions cause as receivers."""
    problem, prices = found.problem, found.prices
    how, candidate = found.configuration.how, found.configuration.candidate
    own = np.zeros(len(problem))
    own[how == How.SOURCE] = per_document(prices.sources)[problem.classes[how == How.SOURCE]]
    own[how == How.COPY] = per_document(prices.copies)[problem.classes[how == How.COPY]]
    own[how == How.REWRITING] = per_document(prices.utilization)[candidate[how == How.REWRITING]]
    return np.bincount(problem.sites, weights=own, minlength=len(problem.network.names)).astype(np.float64)


def _views(found: Plan) -> float:
    """Return how many views the chosen rewritings of least utilization take on average."""
    used = found.chosen.candidate[found.chosen.how == How.REWRITING]
    return float(np.diff(found.table.member_first)[used].mean()) if len(used) else 0.0


def _joined(found: Plan) -> float:
    """Return the share of chosen rewritings whose inputs are joined at one input's machine."""
    used = found.configuration.candidate[found.configuration.how == How.REWRITING]
    return float((found.prices.plans[used] >= JOIN).mean()) if len(used) else 0.0


def _limits(limits: NDArray[np.int64]) -> dict[str, str]:
    low, high = int(limits.min()), int(limits.max())

    def said(of: Any) -> str:
        ends = ["none" if limit >= UNBOUNDED else f"{of(limit):,}" for limit in (low, high)]
        return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"

    return {"plan": said(lambda x: x), "improvement": said(improvement_limit), "hard": said(hard_limit)}


def _fan_out(feeds: NDArray[np.int64], limits: NDArray[np.int64]) -> dict[str, Any]:
    numbers, counts = np.unique(feeds, return_counts=True)
    told: dict[str, Any] = {"feeds": numbers.tolist(), "subscriptions": counts.tolist()}
    limit = int(limits.max())
    if limit < UNBOUNDED and limit == int(limits.min()):
        told["limits"] = {"plan": limit, "improvement": improvement_limit(limit), "hard": hard_limit(limit)}
    return told


def _curve(load: NDArray[np.float64]) -> list[list[float]]:
    """Say which share of all load the busiest share of the sites has."""
    ordered = np.sort(load)[::-1]
    upto = np.concatenate(([0.0], np.cumsum(ordered)))
    at = np.unique(np.linspace(0, len(load), _CURVE + 1).astype(np.int64))
    return [[float(i / len(load)), float(upto[i] / max(upto[-1], 1))] for i in at.tolist()]


def _feeders(found: Plan, feeds: NDArray[np.int64]) -> list[dict[str, Any]]:
    problem = found.problem
    return [
        {
            "name": problem.names[s],
            "pattern": str(problem.pattern(s)),
            "site": problem.network.names[int(problem.sites[s])],
            "feeds": int(feeds[s]),
            "limit": None if problem.limits[s] >= UNBOUNDED else int(problem.limits[s]),
        }
        for s in np.argsort(-feeds, kind="stable")[:_LISTED].tolist()
    ]

"""A full plan of a simulated network: by the real planner, with the rows that its Spark batch would write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peer.steering.weights import LIVE
from planner import NoFeasiblePlan, Problem, Site, Subscription, plan
from planner.errors import NoPlanFound
from rewriting.statistics import Statistics
from spark_planner.plan_files import plan_table
from xmlmatch import Document, Pattern

if TYPE_CHECKING:
    from collections.abc import Mapping


def planned(snapshot: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Plan what a snapshot of the source holds; return the proposal, or None where no plan was found."""
    subscriptions = [
        Subscription(name, Pattern.parse(text), site, limit)
        for name, text, site, limit in snapshot["subscriptions"]
    ]
    if not subscriptions:
        return None
    documents = [Document.parse(body) for body in snapshot["documents"]]
    problem = Problem.of(
        subscriptions, [Site(name, limit) for name, limit in snapshot["sites"]],
        source_feeds=snapshot["source_feeds"], weights=LIVE,
        statistics=Statistics.measure([one.pattern for one in subscriptions], documents) if documents else None,
    )  # fmt: skip
    try:
        found = plan(problem)
    except (NoFeasiblePlan, NoPlanFound):
        return None
    rows: list[dict[str, Any]] = plan_table(found).to_pylist()
    return rows

"""A lower bound on all latencies together, whatever rewritings are chosen, for the subscriptions the source
feeds now.

Nobody can have its inputs sooner than these can be had at all, and no transfer is quicker than over an uplink
that serves nobody else. So each class's soonest latency follows from those of the classes that may feed it, in
one pass; limits are ignored, which keeps it a bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from planner.configuration import How
from planner.kernels import kernel
from planner.latency import HANDLING_S, NODE_S, class_order
from rewriting.pricing import JOIN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.latency import Timing
    from planner.problem import Problem
    from rewriting.candidate_table import CandidateTable
    from rewriting.pricing import Prices


def latency_bound(problem: Problem, table: CandidateTable, prices: Prices, timing: Timing) -> float:
    """Return a proven lower bound on the sum of latencies over all configurations with the same source feeds."""
    how = timing.configuration.how
    at_source = how == How.SOURCE
    soonest = np.full(len(table.first) - 1, np.inf)
    np.minimum.at(soonest, problem.classes[at_source], timing.latency[at_source])
    crowd = np.bincount(problem.sites, minlength=len(problem.network.names))
    hop = float(problem.network.rtt.min()) / 2
    rate = float((crowd / problem.network.uplink)[problem.sites].min()) * 1e-3
    shared = bool(crowd.max() > 1)
    order = np.argsort(class_order(table))
    copied = np.full(len(soonest), np.inf)
    _bound(
        order, table.first, table.member_first, table.members, prices.plans, prices.nodes, prices.link_bytes,
        hop, rate, shared, soonest, copied,
    )  # fmt: skip
    return _sum(problem, prices, how, timing, soonest, copied, (hop, rate, shared))


def _sum(
    problem: Problem, prices: Prices, how: NDArray[np.int8], timing: Timing, soonest: NDArray[np.float64],
    computed: NDArray[np.float64], way: tuple[float, float, bool],
) -> float:  # fmt: skip
    hop, rate, shared = way
    classes = problem.classes
    handling = HANDLING_S + 2 * prices.result_nodes[classes] * 1e-3 * NODE_S
    copy = soonest[classes] + (0.0 if shared else hop + prices.result_bytes[classes] * rate) + handling
    own = np.minimum(computed[classes], copy)
    own = np.where(how == How.LOCAL, soonest[classes], own)
    own = np.where(how == How.SOURCE, timing.latency, own)
    return float(own[how != How.PENDING].sum())


@kernel
def _bound(
    order: Any, first: Any, member_first: Any, members: Any, plans: Any, nodes: Any, link_bytes: Any, hop: float,
    rate: float, shared: bool, soonest: Any, computed: Any,
) -> None:  # fmt: skip
    for q in order:
        for c in range(first[q], first[q + 1]):
            joint = plans[c] - JOIN if plans[c] >= JOIN else -1
            latest = 0.0
            for i in range(member_first[c], member_first[c + 1]):
                here = soonest[members[i]]
                if not shared and i - member_first[c] != joint:
                    here += hop + link_bytes[i] * rate
                latest = max(latest, here)
            if joint >= 0:
                latest += HANDLING_S + (0.0 if shared else hop + link_bytes[member_first[c] + joint] * rate)
            computed[q] = min(computed[q], latest + HANDLING_S + nodes[c] * 1e-3 * NODE_S)
        soonest[q] = min(soonest[q], computed[q])

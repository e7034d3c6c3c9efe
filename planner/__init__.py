"""Who feeds whom: choosing the network with the least total load within every machine's capacity.

Layers, bottom up: ``problem`` (subscriptions, sites, limits) and ``configuration``; ``choices`` (the integer
program as arrays), ``reduction``, ``repair``, ``lagrangian``, ``solver`` (the only module that imports OR-Tools)
and ``selection`` (proven optimality); ``rewritability`` (from a problem to its program, from a choice to a
configuration); ``latency``, ``latency_bound``, ``estimates``, ``moves`` and ``loga`` (lower latency); ``planning``
runs it all. ``incremental`` (with ``newcomer``, ``placing``, ``drift``, ``snapshots``) keeps a configuration up
to date between plans; ``verify`` checks one and shares no code with the rest. Start reading at ``problem``,
``choices`` and ``planning``; docs/planning.md tells the whole.
"""

from typing import TYPE_CHECKING

from xmlmatch.lazy import lazy_exports

if TYPE_CHECKING:
    from planner.configuration import Configuration, How
    from planner.errors import BadProblem, NoFeasiblePlan, PlannerError
    from planner.incremental import LivePlan
    from planner.planning import Plan, plan
    from planner.problem import Network, Problem, Site, Subscription
    from planner.verify import verify

__all__ = [
    "BadProblem",
    "Configuration",
    "How",
    "LivePlan",
    "Network",
    "NoFeasiblePlan",
    "Plan",
    "PlannerError",
    "Problem",
    "Site",
    "Subscription",
    "plan",
    "verify",
]
_HOMES = {
    "configuration": ("Configuration", "How"),
    "errors": ("BadProblem", "NoFeasiblePlan", "PlannerError"),
    "incremental": ("LivePlan",),
    "planning": ("Plan", "plan"),
    "problem": ("Network", "Problem", "Site", "Subscription"),
    "verify": ("verify",),
}
__getattr__ = lazy_exports(__name__, _HOMES)

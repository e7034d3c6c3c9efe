"""Whether a configuration keeps what a plan promises, found out anew from the patterns.

Theory of operation. Nothing here is shared with what builds plans, and no price is taken from it. A subscription's
feed set is read from the configuration; whether its views cover it, and at what cost, comes from the patterns, one
pair at a time (``rewriting.providers``); circles and the order of computation come from networkx. A feed set that
makes no sense is a fault and left out of everything else; what hangs on it is then not fed, which is a fault too.

The loss of each site is tried greedily: those it fed are fed again in the order of their numbers, each by an equal
one, a candidate of its pattern or the source, with what is free up to the hard limits. No circle can come of that,
for candidates follow the feeding order. Whoever is left over is counted, and is no fault.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from planner.configuration import How
from planner.errors import PlannerError
from planner.problem import hard_limit, improvement_limit, source_plan_limit
from planner.verdict import Claim, Verdict
from planner.verify_losses import Losses, crossing
from planner.verify_pricing import Price, Pricing
from rewriting.statistics import DOCUMENTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from planner.configuration import Configuration
    from planner.problem import Problem
    from rewriting.candidate_table import CandidateTable

MOST_FAULTS: Final = 20
"""How many faults of one kind are told; the others are counted."""
_HANDLING_S, _NODE_S = 0.001, 1e-6
_NEAR: Final = 1e-9
_NO_END: Final = 1 << 40
_LIMITS: Final[dict[str, Callable[[int], int]]] = {
    "plan": lambda limit: limit,
    "improvement": improvement_limit,
    "hard": hard_limit,
}


def verify(
    problem: Problem,
    table: CandidateTable,
    configuration: Configuration,
    *,
    limits: Literal["plan", "improvement", "hard"] = "plan",
    claimed: Claim | None = None,
    losses: bool = True,
    tick: Callable[[int], None] = lambda _: None,
) -> Verdict:
    """Check a configuration; ``limits`` says which of the three limits it must keep.

    Only ``hard`` lets it use the whole limit of the source. ``tick`` is told how many more are priced.
    """
    if limits not in _LIMITS:
        raise ValueError(f"limits are one of {', '.join(_LIMITS)}, not {limits}")
    networkx = _networkx()
    faults = _Faults()
    case = Case.of(problem, table, configuration, faults)
    flows = _flows(case, tick)
    feeds = _feeds(flows, case.sites)
    _check_limits(case, flows, feeds, limits)
    levels = _levels(networkx, case, flows)
    fed = {s: flows[s] for s in levels}
    latency, paper = (math.fsum(_latencies(case, fed, out)) for out in (feeds, None))
    utilization = sum(flow.utilization for flow in fed.values())
    if claimed is not None:
        _check_claim(claimed, Claim(utilization, latency, paper), faults)
    unabsorbed = Losses.of(case, fed, feeds).unabsorbed() if losses else []
    pending = [name for name, how in zip(problem.names, case.hows, strict=True) if how == How.PENDING]
    all_levels = [levels.get(s, 0) for s in range(len(problem))]
    return Verdict(faults.told(), pending, unabsorbed, utilization, latency, paper, all_levels, feeds)


def _networkx() -> ModuleType:
    try:
        import networkx  # type: ignore[import-untyped]  # it ships no types
    except ModuleNotFoundError:
        raise PlannerError("networkx is not installed; get it with: pip install 'distributary[planner]'") from None
    found: ModuleType = networkx
    return found


@dataclass(slots=True)
class _Faults:
    """Faults in the order they were found, not too many of a kind."""

    lines: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, text: str) -> None:
        self.counts[kind] += 1
        if self.counts[kind] <= MOST_FAULTS:
            self.lines.append(text)

    def told(self) -> list[str]:
        more = [(kind, count - MOST_FAULTS) for kind, count in self.counts.items() if count > MOST_FAULTS]
        return self.lines + [f"{kind}: {count:,} more" for kind, count in more]


class _Link(NamedTuple):
    """What one input sends: to which site, and how many bytes per thousand documents."""

    feeder: int
    site: int
    size: int


class Flow(NamedTuple):
    """How one subscription is fed, with what that costs; ``size`` and ``nodes`` are per thousand documents.

    ``joint``: the place among the links of the input where all are joined, or -1. ``size``: bytes from the source.
    """

    how: How
    links: tuple[_Link, ...]
    utilization: int
    nodes: int = 0
    joint: int = -1
    size: int = 0


@dataclass(slots=True)
class Case:
    """A configuration to be checked, as lists by subscription; ``places``: where it stands among its equals."""

    problem: Problem
    table: CandidateTable
    faults: _Faults
    classes: list[int]
    sites: list[int]
    limits: list[int]
    places: list[int]
    hows: list[int]
    candidates: list[int]
    rows: list[list[int]]

    @classmethod
    def of(cls, problem: Problem, table: CandidateTable, configuration: Configuration, faults: _Faults) -> Case:
        n = len(problem)
        if not len(configuration.how) == len(configuration.candidate) == len(configuration.inputs) == n:
            raise PlannerError(f"the configuration is not one of these {n:,} subscriptions: it has another length")
        classes, limits = problem.classes.tolist(), problem.limits.tolist()
        # A limit's tier is how many binary digits it has.
        order = sorted(range(n), key=lambda s: (classes[s], -limits[s].bit_length(), s))
        places = [0] * n
        for place, s in enumerate(order):
            places[s] = place
        return cls(
            problem, table, faults, classes, problem.sites.tolist(), limits, places,
            configuration.how.tolist(), configuration.candidate.tolist(), configuration.inputs.tolist(),
        )  # fmt: skip

    def name(self, s: int) -> str:
        return f"subscription {self.problem.names[s]}"

    def inputs(self, s: int) -> list[int]:
        return list(takewhile(lambda u: u >= 0, self.rows[s]))

    def views(self, c: int) -> list[int]:
        start, end = self.table.member_first[c : c + 2]
        numbers: list[int] = self.table.members[start:end].tolist()
        return numbers

    def wrong(self, s: int) -> str:
        """Say why a subscription has not exactly one proper feed set; empty if it has."""
        inputs, how, candidate = self.inputs(s), self.hows[s], self.candidates[s]
        if how not in list(How):
            return f"is fed in a way that does not exist: {how}"
        if any(u != -1 for u in self.rows[s][len(inputs) :]):
            return "has a gap among its inputs"
        if any(u >= len(self.classes) for u in inputs):
            return f"has an input that does not exist: {max(inputs)}"
        if s in inputs:
            return "feeds itself"
        if how == How.REWRITING:
            return self._wrong_rewriting(s, inputs)
        if candidate >= 0:
            return f"has candidate {candidate} besides being fed as {How(how).name}"
        if how in (How.COPY, How.LOCAL):
            return self._wrong_copy(s, inputs)
        return f"has inputs besides being fed as {How(how).name}" if inputs else ""

    def _wrong_rewriting(self, s: int, inputs: list[int]) -> str:
        first, c = self.table.first, self.candidates[s]
        if not first[self.classes[s]] <= c < first[self.classes[s] + 1]:
            return f"has candidate {c}, which is none of its pattern's"
        views = self.views(c)
        if len(inputs) != len(views):
            return f"has {len(inputs)} inputs for the {len(views)} views of candidate {c}"
        for u, view in zip(inputs, views, strict=True):
            if self.classes[u] != view:
                return f"takes {self.name(u)} for {self.problem.graph.pattern(view)}, which that one is not"
        return ""

    def _wrong_copy(self, s: int, inputs: list[int]) -> str:
        if len(inputs) != 1:
            return f"has {len(inputs)} inputs, but is fed as {How(self.hows[s]).name}"
        if self.classes[inputs[0]] != self.classes[s]:
            return f"is a copy of {self.name(inputs[0])}, whose pattern is another"
        near = self.sites[inputs[0]] == self.sites[s]
        if near != (self.hows[s] == How.LOCAL):
            where = "its own" if near else "another"
            return f"is fed as {How(self.hows[s]).name} by {self.name(inputs[0])} on {where} machine"
        return ""


def _flows(case: Case, tick: Callable[[int], None]) -> dict[int, Flow]:
    """Return how each subscription is fed, by number, but for those pending or without a proper feed set."""
    found, pricing = {}, Pricing(case.problem)
    for s in sorted(range(len(case.classes)), key=case.classes.__getitem__):  # equal patterns are priced in a row
        wrong = case.wrong(s)
        if wrong:
            case.faults.add("feed sets", f"{case.name(s)} {wrong}")
        elif case.hows[s] == How.REWRITING:
            price = pricing.of(case.classes[s], case.views(case.candidates[s]))
            flow = _rewriting(case, s, price)
            if flow is not None:
                found[s] = flow
        elif case.hows[s] != How.PENDING:
            found[s] = _whole(case, s, *pricing.results(case.classes[s]))
        tick(1)
    return dict(sorted(found.items()))


def _whole(case: Case, s: int, size: int, nodes: int) -> Flow:
    """Price the results that a subscription gets whole: from the source or an equal one."""
    how, w = How(case.hows[s]), case.problem.weights
    sending = w.sent * size + w.sender_node * nodes + w.link * DOCUMENTS
    taking = w.received * size + w.receiver_node * 2 * nodes
    if how == How.SOURCE:
        return Flow(how, (), _per_document(w.source * sending + taking), 2 * nodes, size=size)
    (u,) = case.inputs(s)
    if case.places[u] > case.places[s]:
        case.faults.add("feeding order", f"{case.name(u)} feeds {case.name(s)}, its equal, but comes after it")
    if how == How.LOCAL:
        return Flow(how, (_Link(u, case.sites[s], 0),), 0)
    return Flow(how, (_Link(u, case.sites[s], size),), _per_document(sending + taking), 2 * nodes)


def _rewriting(case: Case, s: int, price: Price) -> Flow | None:
    """Price a subscription computed from others; None if it cannot be."""
    c, inputs, w = case.candidates[s], case.inputs(s), case.problem.weights
    for i in price.against:
        text = f"{case.name(inputs[i])} feeds {case.name(s)} against the feeding order, by candidate {c}"
        case.faults.add("feeding order", text)
    if price.wrong:
        case.faults.add("covers", f"{case.name(s)} cannot be computed by candidate {c}: {price.wrong}")
        return None
    own = case.sites[s]
    meeting = own if price.joint < 0 else case.sites[inputs[price.joint]]
    to = [own if i == price.joint else meeting for i in range(len(inputs))]
    links = tuple(map(_Link, inputs, to, price.sent))
    near = [link for link in links if case.sites[link.feeder] == link.site]
    saved = sum((w.sent + w.received) * link.size + w.link * DOCUMENTS for link in near)
    cost = 0 if all(case.sites[u] == own for u in inputs) else price.total - saved
    return Flow(How.REWRITING, links, _per_document(cost), price.nodes, price.joint)


def _per_document(cost: int) -> int:
    return -(-cost // DOCUMENTS)


def _feeds(flows: dict[int, Flow], sites: list[int]) -> list[int]:
    feeds = [0] * len(sites)
    for flow in flows.values():
        for u in crossing(flow, sites):
            feeds[u] += 1
    return feeds


def _check_limits(case: Case, flows: dict[int, Flow], feeds: list[int], limits: str) -> None:
    most, network = _LIMITS[limits], case.problem.network
    by_site = [0] * len(network.names)
    for s, count in enumerate(feeds):
        by_site[case.sites[s]] += count
        if count > most(case.limits[s]):
            case.faults.add(
                "limits of subscriptions",
                f"{case.name(s)} has {count:,} feeds; its limit is {most(case.limits[s]):,}",
            )
    for name, count, limit in zip(network.names, by_site, network.limits.tolist(), strict=True):
        if count > most(limit):
            case.faults.add("limits of sites", f"site {name} has {count:,} feeds; its limit is {most(limit):,}")
    given = case.problem.source_feeds
    if given is not None:
        limit = given if limits == "hard" else source_plan_limit(given)
        fed = [case.problem.names[s] for s, flow in flows.items() if flow.how == How.SOURCE]
        if len(fed) > limit:
            text = f"the source has {len(fed):,} feeds; its limit is {limit:,}; the last is subscription {fed[-1]}"
            case.faults.add("limit of the source", text)


def _levels(networkx: ModuleType, case: Case, flows: dict[int, Flow]) -> dict[int, int]:
    """Return the levels of those that the source reaches by all their inputs, feeders before those they feed."""
    graph = networkx.DiGraph()
    graph.add_nodes_from(flows)
    graph.add_edges_from((link.feeder, s) for s, flow in flows.items() for link in flow.links)
    for knot in list(networkx.strongly_connected_components(graph)):
        if len(knot) > 1:
            graph.remove_nodes_from(knot)
            names = ", ".join(case.problem.names[s] for s in sorted(knot)[:MOST_FAULTS])
            case.faults.add("circles", f"subscriptions feed each other in a circle: {names}")
    levels: dict[int, int] = {}
    for s in networkx.topological_sort(graph):
        if s in flows and all(link.feeder in levels for link in flows[s].links):
            deepest = max((levels[link.feeder] for link in flows[s].links), default=0)
            levels[s] = deepest + (flows[s].how != How.LOCAL)
    for s, flow in flows.items():
        if s not in levels:
            unfed = next(link.feeder for link in flow.links if link.feeder not in levels)
            text = f"{case.name(s)} is not reached from the source: its input {case.name(unfed)} is not fed"
            case.faults.add("unreached", text)
    return levels


def _latencies(case: Case, fed: dict[int, Flow], out: list[int] | None) -> list[float]:
    """Return the latencies of those that are fed, feeders first; without ``out``, feeds share no uplink."""
    network, on_site = case.problem.network, Counter(case.sites)
    region: list[int] = network.region.tolist()
    rtt: list[list[float]] = network.rtt.tolist()
    pace: list[float] = [on_site[i] / DOCUMENTS / uplink for i, uplink in enumerate(network.uplink.tolist())]
    by_source = 1 if out is None else sum(flow.how == How.SOURCE for flow in fed.values())
    latency: dict[int, float] = {}

    def arrival(link: _Link, ready: float) -> float:
        own = case.sites[link.feeder]
        if own == link.site:
            return ready
        share = 1 if out is None else max(out[link.feeder], 1)
        return ready + rtt[region[own]][region[link.site]] / 2 + link.size * share * pace[own]

    for s, flow in fed.items():
        if flow.how == How.SOURCE:
            ready = float(network.source_rtt[region[case.sites[s]]]) / 2
            ready += flow.size / DOCUMENTS * by_source / network.source_uplink
        elif flow.joint < 0:
            ready = max(arrival(link, latency[link.feeder]) for link in flow.links)
        else:
            last = flow.links[flow.joint]
            others = [arrival(link, latency[link.feeder]) for link in flow.links if link is not last]
            ready = arrival(last, max(latency[last.feeder], *others) + _HANDLING_S)
        handling = 0.0 if flow.how == How.LOCAL else _HANDLING_S + flow.nodes / DOCUMENTS * _NODE_S
        latency[s] = ready + handling
    return list(latency.values())


def _check_claim(claimed: Claim, found: Claim, faults: _Faults) -> None:
    if claimed.utilization != found.utilization:
        faults.add("claims", f"the utilization is {found.utilization:,}, not {claimed.utilization:,} as claimed")
    for what, said, is_ in (
        ("latency", claimed.latency, found.latency),
        ("latency as the paper has it", claimed.paper_latency, found.paper_latency),
    ):
        if not math.isclose(said, is_, rel_tol=_NEAR, abs_tol=_NEAR):
            faults.add("claims", f"the sum of the {what} is {is_!r} s, not {said!r} s as claimed")

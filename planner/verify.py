"""Whether a configuration keeps what a plan promises, found out anew from the patterns.

Theory of operation. Nothing here is shared with what builds plans, and no price is taken from it. A subscription's
feed set is read from the configuration; whether its views cover it, and at what cost, comes from the patterns, one
pair at a time (``rewriting.providers``); circles and the order of computation come from networkx. A feed set that
makes no sense is a fault and left out of everything else; what hangs on it is then not fed, which is a fault too.

The loss of each site is tried greedily: those it fed are fed again in the order of their numbers, each by an equal
one, a candidate of its pattern or the source, with what is free up to the hard limits. No circle can come of that,
for candidates follow the feeding order. Whoever is left over is counted, and is no fault.

Longer than most modules, so that the judge stands in one place and imports nothing that makes plans.
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
from rewriting.embedding import embeds
from rewriting.providers import feeder
from rewriting.statistics import CONT, DOCUMENTS, ID_BYTES, NAME_BYTES, ROWS, VAL
from rewriting.table import CONT_LEVEL, VAL_LEVEL, is_fixed, needs
from xmlmatch.pattern import ANY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from planner.configuration import Configuration
    from planner.problem import Problem
    from rewriting.candidate_table import CandidateTable
    from rewriting.providers import Feeder, Provision
    from xmlmatch import Pattern

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


@dataclass(frozen=True, slots=True)
class Claim:
    """What a plan says of itself: total utilization, and the sums of both latencies in seconds."""

    utilization: int
    latency: float
    paper_latency: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found. Totals are over the subscriptions that are fed, however wrong the rest is.

    By subscription: ``levels``, how many machines away from the source it is computed, 0 if it is not fed; and
    ``feeds``, how many it gives. ``pending`` names those that the configuration leaves out, ``unabsorbed`` the
    sites whose loss would leave some without a feed, and how many; neither is a fault.
    """

    faults: list[str]
    pending: list[str]
    unabsorbed: list[tuple[str, int]]
    utilization: int
    latency: float
    paper_latency: float
    levels: list[int]
    feeds: list[int]

    @property
    def ok(self) -> bool:
        """Whether there are no faults."""
        return not self.faults

    def __str__(self) -> str:
        fed, everybody = sum(level > 0 for level in self.levels), len(self.levels)
        lines = [
            f"the configuration {'holds' if self.ok else 'is wrong'}: {fed:,} of {everybody:,} subscriptions"
            f" fed, {len(self.pending):,} pending, utilization {self.utilization:,} per document,"
            f" mean latency {self.latency / max(fed, 1):.4f} s, {max(self.levels, default=0)} levels",
            *(f"fault: {fault}" for fault in self.faults),
        ]
        if self.unabsorbed:
            worst, count = max(self.unabsorbed, key=lambda site: (site[1], site[0]))
            lines.append(
                f"the loss of any of {len(self.unabsorbed):,} sites would leave some without a feed:"
                f" that of {worst} {count:,}"
            )
        return "\n".join(lines)


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
    case = _Case.of(problem, table, configuration, faults)
    flows = _flows(case, tick)
    feeds = _feeds(flows, case.sites)
    _check_limits(case, flows, feeds, limits)
    levels = _levels(networkx, case, flows)
    fed = {s: flows[s] for s in levels}
    latency, paper = (math.fsum(_latencies(case, fed, out)) for out in (feeds, None))
    utilization = sum(flow.utilization for flow in fed.values())
    if claimed is not None:
        _check_claim(claimed, Claim(utilization, latency, paper), faults)
    unabsorbed = _Losses.of(case, fed, feeds).unabsorbed() if losses else []
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


class _Flow(NamedTuple):
    """How one subscription is fed, with what that costs; ``size`` and ``nodes`` are per thousand documents.

    ``joint``: the place among the links of the input where all are joined, or -1. ``size``: bytes from the source.
    """

    how: How
    links: tuple[_Link, ...]
    utilization: int
    nodes: int = 0
    joint: int = -1
    size: int = 0


class _Price(NamedTuple):
    """What a candidate costs per thousand documents when every link crosses machines.

    ``wrong``: why it is none. ``against``: places of the views that come after the query in the feeding order.
    """

    wrong: str = ""
    against: tuple[int, ...] = ()
    total: int = 0
    nodes: int = 0
    joint: int = -1
    sent: tuple[int, ...] = ()


@dataclass(slots=True)
class _Pricing:
    """What candidates and results cost, from patterns and statistics; all per thousand documents."""

    problem: Problem
    _prices: dict[tuple[int, ...], _Price] = field(default_factory=dict)
    _results: dict[int, tuple[int, int]] = field(default_factory=dict)

    def of(self, number: int, views: Sequence[int]) -> _Price:
        """Price a pattern computed from these views, given by their numbers."""
        key = (number, *views)
        if key not in self._prices:
            graph = self.problem.graph
            query = graph.pattern(number)
            found = [feeder(graph.pattern(u), query, self.problem.statistics) for u in views]
            against = tuple(i for i, u in enumerate(views) if not self._may_feed(u, number, found[i]))
            self._prices[key] = self._cheapest(query, found)._replace(against=against)
        return self._prices[key]

    def results(self, number: int) -> tuple[int, int]:
        """Return the bytes and nodes of a pattern's own results."""
        if number not in self._results:
            pattern = self.problem.graph.pattern(number)
            figures = self.problem.statistics.of(pattern).T.tolist()
            size = 0
            for node, sizes in zip(pattern.nodes, figures, strict=True):
                size += sizes[ROWS] * (ID_BYTES + (NAME_BYTES if node.label == ANY else 0))
                if needs(node) == CONT_LEVEL:
                    size += sizes[CONT]
                elif needs(node) == VAL_LEVEL and not is_fixed(node.predicates):
                    size += sizes[VAL]
            self._results[number] = size, sum(sizes[ROWS] for sizes in figures)
        return self._results[number]

    def _may_feed(self, u: int, q: int, found: Feeder | None) -> bool:
        graph = self.problem.graph
        view, query = graph.pattern(u), graph.pattern(q)
        if u == q or (found is None and not embeds(view, query)):  # what provides something embeds
            return False
        return graph.key(u) < graph.key(q) or not embeds(query, view)

    def _cheapest(self, query: Pattern, found: Sequence[Feeder | None]) -> _Price:
        """Give each node to its cheapest provider, each link its cheaper plan, and join where that is cheaper."""
        shares: list[list[Provision]] = [[] for _ in found]
        for n, node in enumerate(query.nodes):
            able = [
                (f.provisions[n].cost, i, f) for i, f in enumerate(found) if f is not None and n in f.provisions
            ]
            if not able:
                return _Price(f"no view provides {node.label}, which is node {n} of {query}")
            _, i, best = min(able, key=lambda one: one[:2])
            shares[i].append(best.provisions[n])
        links = [self._link(query, share) for share in shares]
        sent, nodes, costs = (tuple(column) for column in zip(*links, strict=True))
        cheapest = _Price(total=sum(costs), nodes=sum(nodes), sent=sent)
        if not self.problem.weights.joins or len(shares) == 1:
            return cheapest
        size = sum(p.least for share in shares for p in share)
        rows = sum(p.least_rows for share in shares for p in share)
        for i, share in enumerate(shares):
            onward = self._cost(size, sum(p.view_rows + 2 * p.rows for p in share), rows)
            if sum(costs) - costs[i] + onward < cheapest.total:
                to = (*sent[:i], size, *sent[i + 1 :])
                cheapest = _Price(total=sum(costs) - costs[i] + onward, nodes=2 * rows, joint=i, sent=to)
        return cheapest

    def _link(self, query: Pattern, share: list[Provision]) -> tuple[int, int, int]:
        """Return the bytes, the receiver's nodes and the cost of a link: filtered or, where cheaper, reduced."""
        connected = _connected(query, [p.query_node for p in share])
        plans = []
        for reduced in (set(), connected):
            halved = [p for p in share if p.query_node in reduced]
            size = sum(p.cost for p in share) - sum(p.cost - (p.cost + p.least) // 2 for p in halved)
            rows = sum(p.rows for p in share) - sum(p.rows - (p.rows + p.least_rows) // 2 for p in halved)
            handled = sum(p.view_rows for p in share) + sum(2 * p.rows for p in halved)
            plans.append((size, 2 * rows, self._cost(size, handled, rows)))
        return min(plans, key=lambda plan: plan[2])

    def _cost(self, size: int, handled: int, rows: int) -> int:
        w = self.problem.weights
        both = w.sent + w.received
        return both * size + w.sender_node * handled + w.receiver_node * 2 * rows + w.link * DOCUMENTS


def _connected(query: Pattern, provided: list[int]) -> set[int]:
    """Return those of the nodes provided that stand above or below another."""
    found: set[int] = set()
    for n in provided:
        above = query.nodes[n].parent
        while above >= 0:
            if above in provided:
                found |= {n, above}
            above = query.nodes[above].parent
    return found


@dataclass(slots=True)
class _Case:
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
    def of(cls, problem: Problem, table: CandidateTable, configuration: Configuration, faults: _Faults) -> _Case:
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


def _flows(case: _Case, tick: Callable[[int], None]) -> dict[int, _Flow]:
    """Return how each subscription is fed, by number, but for those pending or without a proper feed set."""
    found, pricing = {}, _Pricing(case.problem)
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


def _whole(case: _Case, s: int, size: int, nodes: int) -> _Flow:
    """Price the results that a subscription gets whole: from the source or an equal one."""
    how, w = How(case.hows[s]), case.problem.weights
    sending = w.sent * size + w.sender_node * nodes + w.link * DOCUMENTS
    taking = w.received * size + w.receiver_node * 2 * nodes
    if how == How.SOURCE:
        return _Flow(how, (), _per_document(w.source * sending + taking), 2 * nodes, size=size)
    (u,) = case.inputs(s)
    if case.places[u] > case.places[s]:
        case.faults.add("feeding order", f"{case.name(u)} feeds {case.name(s)}, its equal, but comes after it")
    if how == How.LOCAL:
        return _Flow(how, (_Link(u, case.sites[s], 0),), 0)
    return _Flow(how, (_Link(u, case.sites[s], size),), _per_document(sending + taking), 2 * nodes)


def _rewriting(case: _Case, s: int, price: _Price) -> _Flow | None:
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
    return _Flow(How.REWRITING, links, _per_document(cost), price.nodes, price.joint)


def _per_document(cost: int) -> int:
    return -(-cost // DOCUMENTS)


def _crossing(flow: _Flow, sites: list[int]) -> list[int]:
    """List the inputs that send to another machine than their own: each is a feed."""
    return [link.feeder for link in flow.links if sites[link.feeder] != link.site]


def _feeds(flows: dict[int, _Flow], sites: list[int]) -> list[int]:
    feeds = [0] * len(sites)
    for flow in flows.values():
        for u in _crossing(flow, sites):
            feeds[u] += 1
    return feeds


def _check_limits(case: _Case, flows: dict[int, _Flow], feeds: list[int], limits: str) -> None:
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


def _levels(networkx: ModuleType, case: _Case, flows: dict[int, _Flow]) -> dict[int, int]:
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


def _latencies(case: _Case, fed: dict[int, _Flow], out: list[int] | None) -> list[float]:
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


@dataclass(slots=True)
class _Losses:
    """The loss of one site at a time. ``spare``, ``site_spare``: what is free up to the hard limits.

    ``members``: those that are fed and may feed, by class in feeding order; ``near``: those that are fed, by class
    and site. Of the loss at hand: ``lost``, the site; ``undo``, what has changed; ``unfed``, who was not absorbed.
    """

    case: _Case
    fed: dict[int, _Flow]
    spare: list[int]
    site_spare: list[int]
    source_spare: int
    members: dict[int, list[int]] = field(default_factory=dict)
    near: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    on_site: dict[int, list[int]] = field(default_factory=dict)
    fed_by: dict[int, list[int]] = field(default_factory=dict)
    lost: int = -1
    undo: list[tuple[int, int]] = field(default_factory=list)
    unfed: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, case: _Case, fed: dict[int, _Flow], feeds: list[int]) -> _Losses:
        site_spare = [hard_limit(limit) for limit in case.problem.network.limits.tolist()]
        for s, count in enumerate(feeds):
            site_spare[case.sites[s]] -= count
        given = case.problem.source_feeds
        by_source = sum(flow.how == How.SOURCE for flow in fed.values())
        spare = [hard_limit(limit) - count for limit, count in zip(case.limits, feeds, strict=True)]
        losses = cls(case, fed, spare, site_spare, _NO_END if given is None else given - by_source)
        for s in sorted(fed, key=case.places.__getitem__):
            if case.limits[s] > 0:
                losses.members.setdefault(case.classes[s], []).append(s)
            losses.near.setdefault((case.classes[s], case.sites[s]), []).append(s)
            losses.on_site.setdefault(case.sites[s], []).append(s)
            for link in fed[s].links:
                losses.fed_by.setdefault(link.feeder, []).append(s)
        return losses

    def unabsorbed(self) -> list[tuple[str, int]]:
        names = self.case.problem.network.names
        counts = [(names[site], self._lose(site)) for site in sorted(self.on_site)]
        return [(name, count) for name, count in counts if count]

    def _lose(self, site: int) -> int:
        """Return how many of those that a site feeds find no other feed."""
        self.lost, self.unfed, before = site, set(), self.source_spare
        gone = self.on_site[site]
        orphans = sorted({s for u in gone for s in self.fed_by.get(u, []) if self.case.sites[s] != site})
        for s in gone:
            self._release(s)
        for s in orphans:
            self._release(s)
            if not self._feed_again(s):
                self.unfed.add(s)
        self._undo_to(0)
        self.source_spare = before
        return len(self.unfed)

    def _release(self, s: int) -> None:
        self.source_spare += self.fed[s].how == How.SOURCE
        for u in _crossing(self.fed[s], self.case.sites):
            self._give(u, 1)

    def _give(self, u: int, count: int) -> None:
        self.spare[u] += count
        self.site_spare[self.case.sites[u]] += count
        self.undo.append((u, count))

    def _undo_to(self, length: int) -> None:
        while len(self.undo) > length:
            u, count = self.undo.pop()
            self.spare[u] -= count
            self.site_spare[self.case.sites[u]] -= count

    def _feed_again(self, s: int) -> bool:
        """Take the feeds of the first way that is free: an equal one, a candidate, the source."""
        number, first, mark = self.case.classes[s], self.case.table.first, len(self.undo)
        ways = [[number], *map(self.case.views, range(first[number], first[number + 1]))]
        for views in ways:
            if all(self._take(view, s) for view in views):
                return True
            self._undo_to(mark)
        self.source_spare -= 1
        return self.source_spare >= 0  # once below 0, it is for all that follow

    def _take(self, view: int, s: int) -> bool:
        """Take a feed of the first subscription with this pattern that has one left; on one machine it is free."""
        places, sites = self.case.places, self.case.sites
        end = places[s] if view == self.case.classes[s] else len(places)
        if any(places[u] < end and u not in self.unfed for u in self.near.get((view, sites[s]), [])):
            return True
        for u in self.members.get(view, []):
            if places[u] >= end:
                return False
            free = min(self.spare[u], self.site_spare[sites[u]])
            if free > 0 and sites[u] != self.lost and u not in self.unfed:
                self._give(u, -1)
                return True
        return False

"""How long a document takes to each subscription, kept up to date while the configuration changes.

    lat(q) = max over inputs u of (lat(u) + transfer(u, q)) + handling(q)

Transfer is half a round trip and the bytes over the sender's uplink, which its subscriptions share equally and
each of them shares among its feeds. Handling is a constant and a little per node. A document is published at 0;
the source sends over one uplink to all it feeds. Where inputs are joined at the machine of one of them, the
others' bytes go there first. The paper's own recurrence is the same with nothing shared.

``Timing`` holds a configuration with its latencies. While it is being changed, latencies follow numbers of feeds
(``A_RATED``) and each other only where they change by enough to matter; ``retime`` makes them exact. Who is fed
by whom can be changed one subscription at a time; what follows is recomputed from there on, in an order in which
feeders come before those they feed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from planner.configuration import Configuration, How
from planner.kernels import kernel
from rewriting.pricing import JOIN, per_document
from xmlmatch.pointers import bytes_at, float64_at, int32_at, int64_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.problem import Problem
    from rewriting.candidate_table import CandidateTable
    from rewriting.pricing import Prices

HANDLING_S: Final = 0.001
NODE_S: Final = 1e-6
_PER_DOCUMENT: Final = 1e-3

# What compiled code gets: arrays by name.
(A_HOW, A_CANDIDATE, A_INPUTS, A_FEEDS, A_LATENCY, A_HEAD, A_NEXT, A_BEFORE, A_CLASS, A_SITE, A_REGION, A_RTT,
 A_SHARE, A_FROM_SOURCE, A_FIRST, A_MEMBER_FIRST, A_MEMBERS, A_PLANS, A_NODES, A_LINK_BYTES, A_RESULT_BYTES,
 A_RESULT_NODES, A_COSTS, A_COPIES, A_SAVED, A_PLACE, A_SITE_FEEDS, A_RATED, A_WIDTH, A_REGIONS, A_FIELDS,
) = range(31)  # fmt: skip


def class_order(table: CandidateTable) -> NDArray[np.int64]:
    """Return, by class, a place in an order in which all that may feed a class comes before it."""
    places = np.full(len(table.first) - 1, -1, np.int64)
    done = _class_order(table.first, table.member_first, table.members, places)
    assert done == len(places), "rewritings follow the feeding order, which has no cycles"
    return places


@kernel
def _class_order(first: Any, member_first: Any, members: Any, places: Any) -> int:
    count = places.size
    missing, starts = np.zeros(count, np.int64), np.zeros(count + 1, np.int64)
    for q in range(count):
        for i in range(member_first[first[q]], member_first[first[q + 1]]):
            missing[q] += 1
            starts[members[i] + 1] += 1
    for u in range(count):
        starts[u + 1] += starts[u]
    queries, at = np.empty(starts[count], np.int64), starts.copy()
    for q in range(count):
        for i in range(member_first[first[q]], member_first[first[q + 1]]):
            queries[at[members[i]]] = q
            at[members[i]] += 1
    queue, end = np.empty(count, np.int64), 0
    for q in range(count):
        if missing[q] == 0:
            queue[end] = q
            end += 1
    place = 0
    while place < end:
        u = queue[place]
        places[u] = place
        place += 1
        for i in range(starts[u], starts[u + 1]):
            missing[queries[i]] -= 1
            if missing[queries[i]] == 0:
                queue[end] = queries[i]
                end += 1
    return place


@kernel
def pointers(arrays: Any) -> Any:
    """Turn the arrays into plain pointers, and two widths: arrays that are handed over would be counted each
    time."""
    (how, candidate, inputs, feeds, latency, head, after, before, class_, site, region, rtt, share, from_source_,
     first, member_first, members, plans, nodes, link_bytes, result_bytes, result_nodes, costs, copies, saved,
     place, site_feeds, rated) = arrays  # fmt: skip
    return (
        bytes_at(how.ctypes.data), int64_at(candidate.ctypes.data), int32_at(inputs.ctypes.data),
        int64_at(feeds.ctypes.data), float64_at(latency.ctypes.data), int64_at(head.ctypes.data),
        int64_at(after.ctypes.data), int64_at(before.ctypes.data), int64_at(class_.ctypes.data),
        int64_at(site.ctypes.data), int32_at(region.ctypes.data), float64_at(rtt.ctypes.data),
        float64_at(share.ctypes.data), float64_at(from_source_.ctypes.data), int64_at(first.ctypes.data),
        int64_at(member_first.ctypes.data), int32_at(members.ctypes.data), int32_at(plans.ctypes.data),
        int64_at(nodes.ctypes.data), int64_at(link_bytes.ctypes.data), int64_at(result_bytes.ctypes.data),
        int64_at(result_nodes.ctypes.data), int64_at(costs.ctypes.data), int64_at(copies.ctypes.data),
        int64_at(saved.ctypes.data), int64_at(place.ctypes.data), int64_at(site_feeds.ctypes.data),
        int64_at(rated.ctypes.data), inputs.shape[1], rtt.shape[0],
    )  # fmt: skip


@dataclass(slots=True, eq=False)
class Timing:
    """A configuration, how many feeds everybody gives, and everybody's latency; ``arrays`` for compiled code."""

    configuration: Configuration
    arrays: tuple[Any, ...]
    sequence: NDArray[np.int64]

    @classmethod
    def of(
        cls, problem: Problem, table: CandidateTable, prices: Prices, configuration: Configuration, *,
        order: NDArray[np.int64] | None = None, shared: bool = True,
    ) -> Timing:  # fmt: skip
        """Time a configuration. ``shared=False``: by the paper's recurrence. ``order``: that of the classes."""
        count, width = configuration.inputs.shape
        order = class_order(table) if order is None else order
        members = problem.order()
        sequence = members[np.argsort(order[problem.classes[members]], kind="stable")]
        place = np.empty(count, np.int64)
        place[sequence] = np.arange(count)
        network = problem.network
        crowd = np.bincount(problem.sites, minlength=len(network.names))
        region = network.region[problem.sites]
        arrays = (
            configuration.how, configuration.candidate, configuration.inputs, np.zeros(count, np.int64),
            np.zeros(count), np.full(count, -1, np.int64), np.full(count * width, -1, np.int64),
            np.full(count * width, -1, np.int64), problem.classes, problem.sites, region, network.rtt,
            (crowd / network.uplink)[problem.sites] * (1 if shared else -1),
            from_source(problem, prices, configuration, shared=shared),
            table.first, table.member_first, table.members, prices.plans, prices.nodes, prices.link_bytes,
            prices.result_bytes, prices.result_nodes, prices.utilization, per_document(prices.copies),
            np.array([problem.weights.sent + problem.weights.received, problem.weights.link * 1000], np.int64),
            place, np.zeros(len(network.names), np.int64), np.zeros(count, np.int64),
        )  # fmt: skip
        _start(arrays, sequence)
        return cls(configuration, arrays, sequence)

    @property
    def latency(self) -> NDArray[np.float64]:
        """Seconds, by subscription."""
        latency: NDArray[np.float64] = self.arrays[A_LATENCY]
        return latency

    @property
    def feeds(self) -> NDArray[np.int64]:
        """How many others on other machines each subscription feeds."""
        feeds: NDArray[np.int64] = self.arrays[A_FEEDS]
        return feeds

    def total(self) -> float:
        """Return the latency of all subscriptions together."""
        return float(self.latency.sum())

    def levels(self) -> NDArray[np.int64]:
        """Return how many feeds away from the source each subscription is; 0 for those that are not fed."""
        levels = np.zeros(len(self.configuration), np.int64)
        _levels(self.arrays, self.sequence, levels)
        return levels


def from_source(
    problem: Problem, prices: Prices, configuration: Configuration, *, shared: bool
) -> NDArray[np.float64]:
    """Return, by subscription, how long a document takes from the source, as many as it feeds."""
    fed = int(np.count_nonzero(configuration.how == How.SOURCE)) if shared else 1
    network = problem.network
    bytes_ = prices.result_bytes[problem.classes] * _PER_DOCUMENT
    half = network.source_rtt[network.region[problem.sites]] / 2
    handling = HANDLING_S + 2 * prices.result_nodes[problem.classes] * _PER_DOCUMENT * NODE_S
    return np.asarray(half + bytes_ * max(fed, 1) / network.source_uplink + handling)


@kernel
def target_site(a: Any, s: int, j: int) -> int:
    """Where the j-th input of a subscription sends: to its machine, or to that of the input where all are
    joined."""
    plan = a[A_PLANS][a[A_CANDIDATE][s]] if a[A_HOW][s] == How.REWRITING else 0
    if plan >= JOIN and plan - JOIN != j:
        return int(a[A_SITE][a[A_INPUTS][s * a[A_WIDTH] + plan - JOIN]])
    return int(a[A_SITE][s])


@kernel
def transfer(a: Any, u: int, site: int, region: int, bytes_: float, feeds: int) -> float:
    """How long bytes take from a subscription to a site, while it has so many feeds."""
    if a[A_SITE][u] == site:
        return 0.0
    share = a[A_SHARE][u]
    share = share * max(feeds, 1) if share > 0 else -share
    return float(a[A_RTT][a[A_REGION][u] * a[A_REGIONS] + region] / 2 + bytes_ * _PER_DOCUMENT * share)


@kernel
def arrival(a: Any, s: int) -> float:
    """Compute a subscription's latency from that of its inputs."""
    how = a[A_HOW][s]
    if how == How.SOURCE:
        return float(a[A_FROM_SOURCE][s])
    if how == How.PENDING:
        return 0.0
    inputs, latency = a[A_INPUTS], a[A_LATENCY]
    first = inputs[s * a[A_WIDTH]]
    if how == How.LOCAL:
        return float(latency[first])
    if how == How.COPY:
        q = a[A_CLASS][s]
        way = transfer(a, first, a[A_SITE][s], a[A_REGION][s], a[A_RESULT_BYTES][q], a[A_RATED][first])
        return float(
            latency[first] + way + HANDLING_S + 2 * a[A_RESULT_NODES][q] * _PER_DOCUMENT * NODE_S
        )  # fmt: skip
    c = a[A_CANDIDATE][s]
    return computed(a, s, c, inputs, s * a[A_WIDTH], 0)


@kernel
def computed(a: Any, s: int, c: int, inputs: Any, at: int, more: int) -> float:
    """Latency of a subscription if computed by a candidate from the inputs at a place, with ``more`` feeds
    each."""
    latency, feeds, site, region = a[A_LATENCY], a[A_RATED], a[A_SITE], a[A_REGION]
    start = a[A_MEMBER_FIRST][c]
    count = a[A_MEMBER_FIRST][c + 1] - start
    plan, link_bytes = a[A_PLANS][c], a[A_LINK_BYTES]
    handling = HANDLING_S + a[A_NODES][c] * _PER_DOCUMENT * NODE_S
    where, near = site[s], region[s]
    joint = -1
    if plan >= JOIN:
        joint = plan - JOIN
        where, near = site[inputs[at + joint]], region[inputs[at + joint]]
    latest = 0.0
    for j in range(count):
        u = inputs[at + j]
        here = latency[u]
        if j != joint:
            here += transfer(a, u, where, near, link_bytes[start + j], feeds[u] + more)
        latest = max(latest, here)
    if joint >= 0:
        u = inputs[at + joint]
        latest += HANDLING_S + transfer(a, u, site[s], region[s], link_bytes[start + joint], feeds[u] + more)
    return float(latest + handling)


@kernel
def input_count(a: Any, s: int) -> int:
    """How many inputs a subscription has."""
    how = a[A_HOW][s]
    if how == How.REWRITING:
        c = a[A_CANDIDATE][s]
        return int(a[A_MEMBER_FIRST][c + 1] - a[A_MEMBER_FIRST][c])
    return 1 if how == How.COPY or how == How.LOCAL else 0


@kernel
def link(a: Any, s: int, sign: int) -> None:
    """Enter a subscription with its inputs (sign 1), or take it out (-1): their lists and numbers of feeds."""
    width = a[A_WIDTH]
    head, after, before = a[A_HEAD], a[A_NEXT], a[A_BEFORE]
    for j in range(input_count(a, s)):
        u, e = a[A_INPUTS][s * width + j], s * width + j
        if sign > 0:
            after[e], before[e] = head[u], -1
            if head[u] >= 0:
                before[head[u]] = e
            head[u] = e
        else:
            if before[e] >= 0:
                after[before[e]] = after[e]
            else:
                head[u] = after[e]
            if after[e] >= 0:
                before[after[e]] = before[e]
        if a[A_SITE][u] != target_site(a, s, j):
            a[A_FEEDS][u] += sign
            a[A_SITE_FEEDS][a[A_SITE][u]] += sign


@kernel
def _start(arrays: Any, sequence: Any) -> None:
    a = pointers(arrays)
    for s in sequence:
        link(a, s, 1)
    retime(arrays, sequence)


@kernel
def relink(arrays: Any, sequence: Any, how: Any, candidate: Any, inputs: Any) -> None:
    """Replace the whole configuration; latencies are left to ``retime``."""
    a = pointers(arrays)
    for s in sequence:
        link(a, s, -1)
    arrays[A_HOW][:] = how
    arrays[A_CANDIDATE][:] = candidate
    arrays[A_INPUTS][:] = inputs
    for s in sequence:
        link(a, s, 1)


@kernel
def retime(arrays: Any, sequence: Any) -> float:
    """Compute all latencies anew, with the true numbers of feeds; return their sum."""
    a = pointers(arrays)
    total = 0.0
    for s in range(sequence.size):
        a[A_RATED][s] = a[A_FEEDS][s]
    for s in sequence:
        a[A_LATENCY][s] = arrival(a, s)
        total += a[A_LATENCY][s]
    return total


@kernel
def _levels(arrays: Any, sequence: Any, levels: Any) -> None:
    a = pointers(arrays)
    for s in sequence:
        how = a[A_HOW][s]
        if how == How.SOURCE:
            levels[s] = 1
        for j in range(input_count(a, s)):
            u = a[A_INPUTS][s * a[A_WIDTH] + j]
            levels[s] = max(levels[s], levels[u] + (0 if how == How.LOCAL else 1))


@kernel
def utilization_of(a: Any, s: int, c: int, inputs: Any, at: int) -> int:
    """Return what a subscription costs per document when computed by a candidate from the inputs at a place."""
    start = a[A_MEMBER_FIRST][c]
    plan, site, own = a[A_PLANS][c], a[A_SITE], True
    saved = 0
    for j in range(a[A_MEMBER_FIRST][c + 1] - start):
        to = site[inputs[at + plan - JOIN]] if plan >= JOIN and plan - JOIN != j else site[s]
        own = own and site[inputs[at + j]] == site[s]
        if site[inputs[at + j]] == to:
            saved += a[A_SAVED][0] * a[A_LINK_BYTES][start + j] + a[A_SAVED][1]
    return 0 if own else -int(-(a[A_COSTS][c] - saved) // 1000)


def utilization(timing: Timing, problem: Problem, prices: Prices) -> int:
    """Return what a configuration costs per document in all."""
    return int(utilizations(timing, problem, prices).sum())


def utilizations(timing: Timing, problem: Problem, prices: Prices) -> NDArray[np.int64]:
    """Return what each subscription costs per document."""
    how, classes = timing.configuration.how, problem.classes
    own = np.zeros(len(how), np.int64)
    _rewriting_costs(timing.arrays, timing.sequence, own)
    own[how == How.SOURCE] = per_document(prices.sources)[classes[how == How.SOURCE]]
    own[how == How.COPY] = per_document(prices.copies)[classes[how == How.COPY]]
    return own


@kernel
def _rewriting_costs(arrays: Any, sequence: Any, out: Any) -> None:
    a = pointers(arrays)
    for s in sequence:
        if a[A_HOW][s] == How.REWRITING:
            out[s] = utilization_of(a, s, a[A_CANDIDATE][s], a[A_INPUTS], s * a[A_WIDTH])

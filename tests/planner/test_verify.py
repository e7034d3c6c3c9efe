"""The verifier: it accepts what keeps every rule, and names whoever breaks one."""

import ast
import math
import random
import sys
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import planner.verify
from planner.configuration import Configuration, How
from planner.errors import PlannerError
from planner.problem import Network, Problem, Site, Subscription
from planner.verdict import Claim
from planner.verify import MOST_FAULTS, verify
from rewriting import Statistics, find_candidates
from rewriting.pricing import JOIN, Weights, price
from tests.oracles.exhaustive_plan import cheapest_plan
from tests.oracles.plan_prices import candidate_price
from tests.planner.test_pricing import random_patterns, random_statistics, table_of
from xmlmatch import Pattern

WHOLE, PART, BOTH = (Pattern.parse(text) for text in ("//a{cont}", "//b{val}", "//a{val}[b{val}]"))


# --- making configurations ---------------------------------------------------------------------------------


def configuration_of(*feeds):
    """Make a configuration: how each subscription is fed, its candidate, its inputs."""
    width = max([1, *(len(inputs) for _, _, inputs in feeds)])
    rows = [[*inputs, *[-1] * (width - len(inputs))] for _, _, inputs in feeds]
    return Configuration(
        np.array([how for how, _, _ in feeds], np.int8),
        np.array([candidate for _, candidate, _ in feeds], np.int64),
        np.array(rows, np.int32),
    )


def from_source(count):
    return configuration_of(*[(How.SOURCE, -1, ())] * count)


def greedy(problem, table):
    """Feed everybody in some way within the plan limits: by an equal one, by the first candidates, by the source.

    An input counts as a feed even if it is on the same machine, so no limit is exceeded whatever the plans are.
    Who finds no feed is left pending, with all that could only be computed from it.
    """
    left, site_left = problem.limits.tolist(), problem.network.limits.tolist()
    source_left, feeds, sites = problem.source_limit, {}, problem.sites.tolist()
    waiting = problem.order().tolist()

    def equals(s):
        return [u for u in waiting[: waiting.index(s)] if u in feeds and problem.classes[u] == problem.classes[s]]

    def take(inputs):
        by_site = Counter(sites[u] for u in inputs)
        if any(left[u] < 1 for u in inputs) or any(site_left[i] < by_site[i] for i in by_site):
            return False
        for u in inputs:
            left[u] -= 1
            site_left[sites[u]] -= 1
        return True

    def ways(s):
        own = int(problem.classes[s])
        for c, (_, views) in enumerate(table.of(own), int(table.first[own])):
            members = [[u for u in feeds if problem.classes[u] == view] for view in views]
            if all(members):
                yield How.REWRITING, c, tuple(m[0] for m in members)
                yield How.REWRITING, c, tuple(m[-1] for m in members)
        yield from ((How.COPY, -1, (u,)) for u in equals(s) if sites[u] != sites[s])

    # The classes of the views of a candidate may have higher numbers: go round until nothing changes.
    for _ in range(len(waiting)):
        for s in [s for s in waiting if s not in feeds]:
            near = [u for u in equals(s) if sites[u] == sites[s]]
            if near:
                feeds[s] = (How.LOCAL, -1, (near[0],))
                continue
            for how, c, inputs in ways(s):
                if take(inputs):
                    feeds[s] = (how, c, inputs)
                    break
        unfed = [s for s in waiting if s not in feeds]
        if unfed and source_left > 0:
            feeds[unfed[0]] = (How.SOURCE, -1, ())
            source_left -= 1
    return configuration_of(*(feeds.get(s, (How.PENDING, -1, ())) for s in range(len(problem))))


def random_table(rng, problem):
    """Find candidates, and put before them a few covers of several views, first those that are best joined."""
    graph, sets = problem.graph, []
    found = find_candidates(graph, 6, statistics=problem.statistics, threads=1)
    for q in graph.numbers.tolist():
        views = graph.feeders_of(q).tolist()
        drawn = dict.fromkeys(tuple(rng.sample(views, rng.randint(2, 3))) for _ in range(20) if len(views) > 2)
        plans = {own: plan_of(problem, q, own) for own in drawn}
        covers = sorted((own for own in drawn if plans[own] is not None), key=plans.__getitem__, reverse=True)
        sets.append([*covers[:3], *(views for _, views in found.of(q))])
    return table_of(sets)


def plan_of(problem, q, views):
    graph = problem.graph
    found = candidate_price(
        graph.pattern(q), [graph.pattern(u) for u in views], problem.statistics, problem.weights
    )
    return None if found is None else found.plan


def random_case(rng, most=16):
    """Draw a problem of a few subscriptions, with candidates and their prices."""
    patterns = [pattern for pattern in random_patterns(rng) if not pattern.contradiction]
    weights = rng.choice((Weights(), Weights(joins=False), Weights(20, 20, 0, 0, link=3)))
    statistics = random_statistics(rng, patterns)
    regions = ("", "far")
    sites = [
        Site(f"h{i}", rng.choice((None, 1, 3, 6)), rng.choice(regions), rng.choice((1e5, 1e7)))
        for i in range(rng.randint(2, 7))
    ]
    network = Network.of(sites, {("", "far"): 0.3, ("far", "far"): 0.1}, {"far": 0.2})
    drawn = (rng.sample(patterns, len(patterns)) + rng.choices(patterns, k=6))[: rng.randint(4, most)]
    subscriptions = [
        Subscription(f"s{i}", pattern, rng.choice(sites).name, rng.choice((0, 1, 2, 5, None)))
        for i, pattern in enumerate(drawn)
    ]
    feeds = rng.choice((None, 3, 5, 10))
    problem = Problem.of(subscriptions, network, source_feeds=feeds, weights=weights, statistics=statistics)
    table = random_table(rng, problem)
    return problem, table, price(problem.graph, table, statistics, weights, threads=1)


# --- the rules once more, by prices ------------------------------------------------------------------------


def sends(problem, table, prices, configuration, s):
    """List what each input of a subscription sends where: (input, site, bytes per thousand documents)."""
    inputs, site, how = configuration.inputs_of(s), int(problem.sites[s]), configuration.how[s]
    if how == How.COPY:
        return [(inputs[0], site, int(prices.result_bytes[problem.classes[s]]))]
    if how != How.REWRITING:
        return [(u, site, 0) for u in inputs]
    c = int(configuration.candidate[s])
    joint = int(prices.plans[c]) - JOIN
    meeting = int(problem.sites[inputs[joint]]) if joint >= 0 else site
    start = int(table.member_first[c])
    return [(u, site if i == joint else meeting, int(prices.link_bytes[start + i])) for i, u in enumerate(inputs)]


def all_feeds(problem, table, prices, configuration):
    """Count the feeds of every subscription."""
    everything = [send for s in range(len(problem)) for send in sends(problem, table, prices, configuration, s)]
    return Counter(u for u, to, _ in everything if problem.sites[u] != to)


def utilization(problem, table, prices, configuration):
    """Add up what everybody costs."""
    weights, total = problem.weights, 0
    for s, how in enumerate(configuration.how.tolist()):
        cost = 0
        if how == How.SOURCE:
            cost = int(prices.sources[problem.classes[s]])
        elif how == How.COPY:
            cost = int(prices.copies[problem.classes[s]])
        elif how == How.REWRITING and {problem.sites[u] for u in configuration.inputs_of(s)} != {problem.sites[s]}:
            cost = int(prices.utilization[configuration.candidate[s]])
            for u, to, size in sends(problem, table, prices, configuration, s):
                if problem.sites[u] == to:
                    cost -= (weights.sent + weights.received) * size + weights.link * 1000
        total += -(-cost // 1000)
    return total


def latencies(problem, table, prices, configuration, *, shared):
    """Return everybody's latency, by recursion from whoever is fed."""
    network, sites, out = problem.network, problem.sites, all_feeds(problem, table, prices, configuration)
    by_source = int((configuration.how == How.SOURCE).sum()) if shared else 1

    def transfer(u, to, size):
        own = sites[u]
        if own == to:
            return 0
        crowd = int((sites == own).sum()) * (max(out[u], 1) if shared else 1)
        return network.rtt[network.region[own], network.region[to]] / 2 + size / 1000 * crowd / network.uplink[own]

    def handling(nodes):
        return 0.001 + nodes / 1000 * 1e-6

    def latency(s):
        how, own = configuration.how[s], problem.classes[s]
        if how == How.SOURCE:
            travel = network.source_rtt[network.region[sites[s]]] / 2
            travel += prices.result_bytes[own] / 1000 * by_source / network.source_uplink
            return travel + handling(2 * prices.result_nodes[own])
        sent = sends(problem, table, prices, configuration, s)
        if how in (How.COPY, How.LOCAL):
            ((u, to, size),) = sent
            after = handling(2 * prices.result_nodes[own]) if how == How.COPY else 0
            return latency(u) + transfer(u, to, size) + after
        c = configuration.candidate[s]
        arrivals = [latency(u) + transfer(u, to, size) for u, to, size in sent]
        joint = int(prices.plans[c]) - JOIN
        if joint < 0:
            return max(arrivals) + handling(prices.nodes[c])
        arrivals[joint] = latency(sent[joint][0])
        return max(arrivals) + 0.001 + transfer(*sent[joint]) + handling(prices.nodes[c])

    return [latency(s) for s in range(len(problem)) if configuration.how[s] != How.PENDING]


def is_valid(problem, table, prices, configuration):
    """Say whether a configuration keeps all rules of a plan."""
    place = {s: i for i, s in enumerate(problem.order().tolist())}
    for s, how in enumerate(configuration.how.tolist()):
        row, inputs, own = configuration.inputs[s].tolist(), configuration.inputs_of(s), int(problem.classes[s])
        if row != inputs + [-1] * (len(row) - len(inputs)) or not all(u < len(problem) for u in inputs):
            return False
        if (configuration.candidate[s] >= 0) != (how == How.REWRITING):
            return False
        if how == How.REWRITING:
            c = int(configuration.candidate[s])
            if not table.first[own] <= c < table.first[own + 1]:
                return False
            if tuple(problem.classes[u] for u in inputs) != table.of(own)[c - table.first[own]][1]:
                return False
        elif how in (How.COPY, How.LOCAL):
            if len(inputs) != 1 or problem.classes[inputs[0]] != own or place[inputs[0]] >= place[s]:
                return False
            if (problem.sites[inputs[0]] == problem.sites[s]) != (how == How.LOCAL):
                return False
        elif inputs:
            return False
    feeds = all_feeds(problem, table, prices, configuration)
    by_site = Counter()
    for u, count in feeds.items():
        by_site[int(problem.sites[u])] += count
    if any(count > problem.limits[u] for u, count in feeds.items()):
        return False
    if any(count > problem.network.limits[i] for i, count in by_site.items()):
        return False
    if (configuration.how == How.SOURCE).sum() > problem.source_limit:
        return False
    fed, wanted = set(), [s for s in range(len(problem)) if configuration.how[s] != How.PENDING]
    for _ in wanted:
        fed |= {s for s in wanted if set(configuration.inputs_of(s)) <= fed}
    return len(fed) == len(wanted)


# --- random problems ---------------------------------------------------------------------------------------


def test_what_keeps_all_rules_is_accepted_with_its_exact_price_and_latency():
    hows, joined, near = Counter(), 0, 0
    for seed in range(200):
        problem, table, prices = random_case(random.Random(seed))
        configuration = greedy(problem, table)
        total = utilization(problem, table, prices, configuration)
        own, paper = (
            sum(latencies(problem, table, prices, configuration, shared=shared)) for shared in (True, False)
        )
        verdict = verify(problem, table, configuration, claimed=Claim(total, own, paper))
        assert verdict.ok, str(verdict)
        assert verdict.utilization == total
        feeds = all_feeds(problem, table, prices, configuration)
        assert verdict.feeds == [feeds[s] for s in range(len(problem))]
        assert [level > 0 for level in verdict.levels] == (configuration.how != How.PENDING).tolist()
        rewritten = configuration.candidate[configuration.candidate >= 0]
        joined += int((prices.plans[rewritten] >= JOIN).sum())
        near += sum(
            problem.sites[u] == to
            for s in np.flatnonzero(configuration.how == How.REWRITING).tolist()
            for u, to, _ in sends(problem, table, prices, configuration, s)
        )
        hows.update(configuration.how.tolist())
    assert min(hows[how] for how in How) > 20
    assert joined > 10
    assert near > 20


def test_no_configuration_is_cheaper_than_the_cheapest_plan():
    equal = dearer = 0
    for seed in range(150):
        problem, table, prices = random_case(random.Random(5_000 + seed))
        if len(problem) > 9:
            continue
        configuration = greedy(problem, table)
        verdict = verify(problem, table, configuration, losses=False)
        if verdict.ok and not verdict.pending:
            least = cheapest_plan(problem, table, prices)
            assert least is not None
            assert least <= verdict.utilization
            equal += least == verdict.utilization
            dearer += least < verdict.utilization
    assert equal > 10
    assert dearer > 10


def all_ways(problem, table, s):
    """List every feed set that a subscription could have, sensible or not so."""
    own, everybody = int(problem.classes[s]), range(len(problem))
    equal = [u for u in everybody if problem.classes[u] == own and u != s]
    ways = [(How.SOURCE, -1, ()), *((how, -1, (u,)) for u in equal for how in (How.COPY, How.LOCAL))]
    for c, (_, views) in enumerate(table.of(own), int(table.first[own])):
        members = [[u for u in everybody if problem.classes[u] == view] for view in views]
        ways += [(How.REWRITING, c, inputs) for inputs in product(*members)]
    return ways


def test_the_cheapest_plan_is_the_cheapest_of_all_configurations_that_are_accepted():
    outcomes = Counter()
    for seed in range(400):
        problem, table, prices = random_case(random.Random(20_000 + seed), most=5)
        ways = [all_ways(problem, table, s) for s in range(len(problem))]
        if not 8 <= math.prod(map(len, ways)) <= 150:
            continue
        verdicts = [verify(problem, table, configuration_of(*feeds), losses=False) for feeds in product(*ways)]
        totals = {verdict.utilization for verdict in verdicts if verdict.ok}
        assert cheapest_plan(problem, table, prices) == min(totals, default=None)
        outcomes[min(len(totals), 2)] += 1
    assert outcomes[0] > 5  # no plan at all
    assert outcomes[2] > 20  # several that differ in price


def test_the_cheapest_plan_of_equal_subscriptions_is_a_chain_as_far_as_limits_go():
    def cheapest(limits, site_limit=None, source_feeds=None):
        sites = [Site("h0", site_limit), Site("h1"), Site("h2")]
        subscriptions = [Subscription(f"s{i}", WHOLE, f"h{i}", limit) for i, limit in enumerate(limits)]
        problem = Problem.of(subscriptions, sites, source_feeds=source_feeds)
        return cheapest_plan(problem, table_of([[]]), price(problem.graph, table_of([[]])))

    prices = price(hand_problem().graph, HAND_TABLE)
    source, copy = (-(-int(cost[0]) // 1000) for cost in (prices.sources, prices.copies))
    assert cheapest((1, 1, 0)) == source + 2 * copy
    assert cheapest((1, 1, 0), source_feeds=2) == source + 2 * copy
    assert cheapest((1, 1, 0), source_feeds=1) is None
    assert cheapest((2, 0, 0), source_feeds=2) == source + 2 * copy
    assert cheapest((1, 0, 0)) == 2 * source + copy
    assert cheapest((2, 0, 0), site_limit=1) == 2 * source + copy
    assert cheapest((2, 0, 0), site_limit=0) == 3 * source


def changed(rng, problem, table, configuration):
    """Change one thing in a configuration, or a few."""
    new = configuration.copy()
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        s, n = rng.randrange(len(problem)), len(problem)
        match rng.randrange(6):
            case 0:
                new.how[s] = rng.randrange(5)
            case 1:
                new.candidate[s] = rng.randrange(-1, len(table))
            case 2:
                new.inputs[s, rng.randrange(new.inputs.shape[1])] = rng.randrange(-1, n + 1)
            case 3:
                new.how[s], new.candidate[s], new.inputs[s] = How.SOURCE, -1, -1
            case 4:
                new.how[s], new.candidate[s], new.inputs[s] = rng.choice((How.COPY, How.LOCAL)), -1, -1
                new.inputs[s, 0] = rng.randrange(n)
            case 5:
                if 0 <= new.inputs[s, 0] < n:
                    new.inputs[s, 0] = rng.choice(
                        np.flatnonzero(problem.classes == problem.classes[new.inputs[s, 0]]).tolist()
                    )
    return new


def test_of_changed_configurations_exactly_those_that_keep_all_rules_are_accepted():
    outcomes = Counter()
    for seed in range(120):
        rng = random.Random(10_000 + seed)
        problem, table, prices = random_case(rng)
        start = greedy(problem, table)
        for _ in range(12):
            configuration = changed(rng, problem, table, start)
            wanted = is_valid(problem, table, prices, configuration)
            verdict = verify(problem, table, configuration, losses=False)
            assert verdict.ok == wanted, str(verdict)
            outcomes[wanted] += 1
    assert min(outcomes.values()) > 200


# --- one problem by hand -----------------------------------------------------------------------------------

# whole, part and spare come from the source; both is computed from two of them, twin shares its machine, far is a
# copy of it.
NAMES = ("whole", "part", "both", "twin", "far", "spare")
PATTERNS = (WHOLE, PART, BOTH, BOTH, BOTH, PART)
SITES = ("one", "two", "three", "three", "four", "four")


def hand_problem(*, limits=(2, 2, 4, 1, 1, 0), site_limits=None, **options):
    sites = [Site(name, (site_limits or {}).get(name)) for name in dict.fromkeys(SITES)]
    subscriptions = [
        Subscription(name, pattern, site, limit)
        for name, pattern, site, limit in zip(NAMES, PATTERNS, SITES, limits, strict=True)
    ]
    return Problem.of(subscriptions, sites, **options)


HAND_TABLE = table_of([[], [], [[0, 1]]])
HAND = configuration_of(
    (How.SOURCE, -1, ()),
    (How.SOURCE, -1, ()),
    (How.REWRITING, 0, (0, 1)),
    (How.LOCAL, -1, (2,)),
    (How.COPY, -1, (2,)),
    (How.SOURCE, -1, ()),
)


def with_feed(s, how, candidate, inputs, *, base=HAND):
    """Feed one subscription otherwise."""
    new = base.copy()
    new.how[s], new.candidate[s], new.inputs[s] = how, candidate, -1
    new.inputs[s, : len(inputs)] = inputs
    return new


def faults(configuration, *, problem=None, table=HAND_TABLE, **options):
    return verify(problem or hand_problem(), table, configuration, **options).faults


def test_the_configuration_by_hand_is_accepted():
    verdict = verify(hand_problem(), HAND_TABLE, HAND)
    assert verdict.ok
    assert verdict.faults == verdict.pending == verdict.unabsorbed == []
    assert verdict.levels == [1, 1, 2, 2, 3, 1]
    assert verdict.feeds == [1, 1, 1, 0, 0, 0]


def test_the_graph_by_hand_has_the_candidate_that_the_tests_give_it():
    problem = hand_problem()
    assert [find_candidates(problem.graph).of(q) for q in (0, 1)] == [[], []]
    assert [views for _, views in find_candidates(problem.graph).of(2)] == [(0, 1)]


def test_a_configuration_from_the_source_alone_is_accepted():
    verdict = verify(hand_problem(), HAND_TABLE, from_source(6))
    assert verdict.ok
    assert verdict.levels == [1] * 6


def test_utilization_and_latency_are_those_computed_by_hand():
    weights = Weights(1, 2, 3, 5, link=7, source=11)
    a, b = Pattern.parse("//a{val}"), Pattern.parse("//a{val}[.='x']")
    # Rows, bytes of values and of contents, per thousand documents.
    statistics = Statistics.known([a, b], np.array([[1_000, 200], [30_000, 200], [0, 0]], np.int64))
    subscriptions = [
        Subscription("all", a, "one", 3), Subscription("narrow", b, "two", 3), Subscription("next", b, "three", 1),
    ]  # fmt: skip
    sites = [Site("one", uplink=1_000), Site("two", uplink=500), Site("three")]
    network = Network.of(sites, source_uplink=10_000)
    problem = Problem.of(subscriptions, network, weights=weights, statistics=statistics)
    configuration = configuration_of((How.SOURCE, -1, ()), (How.REWRITING, 0, (0,)), (How.COPY, -1, (1,)))
    # The source sends 1,000 IDs of 4 bytes with 30,000 bytes of values.
    all_ = 11 * (34_000 + 3 * 1_000 + 7_000) + 2 * 34_000 + 5 * 2 * 1_000
    # A quarter passes a filter by value; the value is known, so only IDs travel.
    narrow = 3 * 250 * 4 + 3 * 1_000 + 5 * 2 * 250 + 7_000
    copy = 3 * 200 * 4 + 3 * 200 + 5 * 2 * 200 + 7_000
    own = [0.02 + 34 / 10_000 + 0.001 + 2e-6]
    own.append(own[0] + 0.02 + 1 / 1_000 + 0.001 + 0.5e-6)
    own.append(own[1] + 0.02 + 0.8 / 500 + 0.001 + 0.4e-6)
    total = -(-all_ // 1000) - (-narrow // 1000) - (-copy // 1000)
    verdict = verify(problem, table_of([[], [[0]]]), configuration)
    assert verdict.ok
    assert verdict.utilization == total
    assert verdict.latency == pytest.approx(sum(own), rel=1e-12)
    assert verdict.paper_latency == pytest.approx(sum(own), rel=1e-12)


def test_a_join_is_a_feed_to_the_machine_where_the_inputs_meet():
    # Two bulky lists of IDs and a small result: they meet at the bulkier one, and the result goes on.
    a, b, query = (Pattern.parse(text) for text in ("//a{id}", "//b{id}", "//a{id}[b{id}]"))
    statistics = Statistics.known([a, b, query], np.array([[90_000, 10_000, 10, 10], [0] * 4, [0] * 4], np.int64))
    subscriptions = [Subscription(*one) for one in (("a", a, "one"), ("b", b, "two"), ("query", query, "two"))]
    weights = Weights(1, 1, 0, 0, link=1)
    problem = Problem.of(
        subscriptions, [Site(name) for name in ("one", "two")], statistics=statistics, weights=weights
    )
    configuration = configuration_of((How.SOURCE, -1, ()), (How.SOURCE, -1, ()), (How.REWRITING, 0, (0, 1)))
    verdict = verify(problem, table_of([[], [], [[0, 1]]]), configuration)
    assert verdict.ok
    assert verdict.feeds == [1, 1, 0]  # b sends to a's machine, although the query is on its own
    sources = [10 * (4 * rows + 1_000) + 4 * rows for rows in (90_000, 10_000)]
    joined = 2 * 4 * 10_000 + 1_000 + 2 * 4 * 20 + 1_000
    assert verdict.utilization == sum(-(-cost // 1000) for cost in (*sources, joined))


CORRUPTIONS = {
    "a candidate of another pattern": (
        with_feed(1, How.REWRITING, 0, (0, 5)),
        "subscription part has candidate 0, which is none of its pattern's",
    ),
    "a candidate that does not exist": (
        with_feed(2, How.REWRITING, 7, (0, 1)),
        "subscription both has candidate 7, which is none of its pattern's",
    ),
    "a missing input": (
        with_feed(2, How.REWRITING, 0, (0,)),
        "subscription both has 1 inputs for the 2 views of candidate 0",
    ),
    "no inputs": (
        with_feed(2, How.REWRITING, 0, ()),
        "subscription both has 0 inputs for the 2 views of candidate 0",
    ),
    "a gap before an input": (
        with_feed(2, How.REWRITING, 0, (-1, 1)),
        "subscription both has a gap among its inputs",
    ),
    "a strange number for no input": (
        with_feed(3, How.LOCAL, -1, (2, -2)),
        "subscription twin has a gap among its inputs",
    ),
    "an input that does not exist": (
        with_feed(4, How.COPY, -1, (6,)),
        "subscription far has an input that does not exist: 6",
    ),
    "inputs in the wrong order": (
        with_feed(2, How.REWRITING, 0, (1, 0)),
        "subscription both takes subscription part for //a{cont}, which that one is not",
    ),
    "an input beside the source": (
        with_feed(1, How.SOURCE, -1, (5,)),
        "subscription part has inputs besides being fed as SOURCE",
    ),
    "a candidate beside the source": (
        with_feed(2, How.SOURCE, 0, ()),
        "subscription both has candidate 0 besides being fed as SOURCE",
    ),
    "an input of one that waits": (
        with_feed(4, How.PENDING, -1, (2,)),
        "subscription far has inputs besides being fed as PENDING",
    ),
    "two originals of a copy": (
        with_feed(4, How.COPY, -1, (2, 3)),
        "subscription far has 2 inputs, but is fed as COPY",
    ),
    "a copy of nothing": (with_feed(4, How.COPY, -1, ()), "subscription far has 0 inputs, but is fed as COPY"),
    "a copy of itself": (with_feed(4, How.COPY, -1, (4,)), "subscription far feeds itself"),
    "a copy of another pattern": (
        with_feed(4, How.COPY, -1, (0,)),
        "subscription far is a copy of subscription whole, whose pattern is another",
    ),
    "a copy within a machine": (
        with_feed(3, How.COPY, -1, (2,)),
        "subscription twin is fed as COPY by subscription both on its own machine",
    ),
    "sharing across machines": (
        with_feed(4, How.LOCAL, -1, (2,)),
        "subscription far is fed as LOCAL by subscription both on another machine",
    ),
    "an unknown way": (with_feed(5, 9, -1, ()), "subscription spare is fed in a way that does not exist: 9"),
}


@pytest.mark.parametrize("kind", CORRUPTIONS)
def test_a_feed_set_that_makes_no_sense_is_a_fault(kind):
    configuration, fault = CORRUPTIONS[kind]
    assert faults(configuration)[0] == fault


def test_a_copy_of_a_later_equal_is_a_fault_even_without_a_circle():
    base = with_feed(4, How.REWRITING, 0, (0, 5))
    problem = hand_problem(limits=(2, 2, 4, 1, 1, 1))
    assert faults(base, problem=problem) == []
    later = with_feed(2, How.COPY, -1, (4,), base=base)
    assert faults(later, problem=problem) == [
        "subscription far feeds subscription both, its equal, but comes after it"
    ]


def test_a_lower_tier_comes_later_whatever_its_number():
    base = with_feed(4, How.REWRITING, 0, (0, 5))
    # far's limit is of the highest tier now, so it may feed both, and both may not feed it.
    problem = hand_problem(limits=(2, 2, 4, 1, 8, 1))
    assert faults(with_feed(2, How.COPY, -1, (4,), base=base), problem=problem) == []
    assert faults(HAND, problem=problem) == [
        "subscription both feeds subscription far, its equal, but comes after it"
    ]
    # Within a tier, the number decides and not the limit.
    assert faults(HAND, problem=hand_problem(limits=(2, 2, 4, 1, 7, 1))) == []


def test_a_local_feed_follows_the_order_too():
    base = with_feed(3, How.REWRITING, 0, (0, 1))
    found = faults(with_feed(2, How.LOCAL, -1, (3,), base=base))
    assert found == ["subscription twin feeds subscription both, its equal, but comes after it"]


def test_a_circle_is_named_and_nothing_on_it_is_reached():
    found = faults(with_feed(2, How.COPY, -1, (4,)), losses=False)
    assert "subscriptions feed each other in a circle: both, far" in found
    assert "subscription both is not reached from the source: its input subscription far is not fed" in found
    assert "subscription twin is not reached from the source: its input subscription both is not fed" in found


def test_whatever_hangs_on_one_that_waits_is_not_reached():
    verdict = verify(hand_problem(), HAND_TABLE, with_feed(1, How.PENDING, -1, ()))
    assert verdict.pending == ["part"]
    assert verdict.levels == [1, 0, 0, 0, 0, 1]
    assert verdict.faults == [
        "subscription both is not reached from the source: its input subscription part is not fed",
        "subscription twin is not reached from the source: its input subscription both is not fed",
        "subscription far is not reached from the source: its input subscription both is not fed",
    ]


def test_one_that_waits_and_feeds_nobody_is_no_fault():
    verdict = verify(hand_problem(), HAND_TABLE, with_feed(4, How.PENDING, -1, ()))
    assert verdict.ok
    assert verdict.pending == ["far"]


def test_views_that_do_not_cover_are_a_fault():
    configuration = with_feed(2, How.REWRITING, 0, (0,))
    found = faults(configuration, table=table_of([[], [], [[0]]]))
    assert found[0] == (
        "subscription both cannot be computed by candidate 0: no view provides b, which is node 1 of"
        " //a{val}/b{val}"
    )


def test_a_view_that_embeds_but_carries_too_little_does_not_cover():
    a, b = Pattern.parse("//a{id}"), Pattern.parse("//a{val}[b]")
    problem = Problem.of([Subscription("ids", a, "one"), Subscription("values", b, "two")])
    configuration = configuration_of((How.SOURCE, -1, ()), (How.REWRITING, 0, (0,)))
    (fault,) = verify(problem, table_of([[], [[0]]]), configuration).faults
    assert fault.startswith("subscription values cannot be computed by candidate 0: no view provides a")


def test_a_view_that_covers_but_comes_later_in_the_feeding_order_is_a_fault():
    # Each embeds in the other, and both return as much: the one that came first feeds.
    first, second = Pattern.parse("//a{val}[b]"), Pattern.parse("//a{val}[b][.//b]")
    for order, wanted in (((first, second), 1), ((second, first), 0)):
        problem = Problem.of(Subscription(f"s{i}", pattern, f"h{i}") for i, pattern in enumerate(order))
        view, query = order.index(second), order.index(first)
        feeds = [(How.SOURCE, -1, ()), (How.SOURCE, -1, ())]
        feeds[query] = (How.REWRITING, 0, (view,))
        sets = [[], []]
        sets[query] = [[view]]
        found = verify(problem, table_of(sets), configuration_of(*feeds)).faults
        text = f"subscription s{view} feeds subscription s{query} against the feeding order, by candidate 0"
        assert found == [text] * wanted


def test_a_view_that_does_not_embed_is_a_fault_even_if_it_is_idle():
    stranger = Pattern.parse("//z{val}")
    problem = Problem.of(
        Subscription(str(pattern), pattern, str(i)) for i, pattern in enumerate((WHOLE, PART, BOTH, stranger))
    )
    configuration = configuration_of(
        *[(How.SOURCE, -1, ())] * 2, (How.REWRITING, 0, (0, 1, 3)), (How.SOURCE, -1, ())
    )
    found = verify(problem, table_of([[], [], [[0, 1, 3]], []]), configuration).faults
    assert found == [
        "subscription //z{val} feeds subscription //a{val}/b{val} against the feeding order, by candidate 0"
    ]


# --- limits ------------------------------------------------------------------------------------------------


def star(feeds, limit, *, own_sites=True, **options):
    """Make a problem of one hub that feeds so many copies, and its configuration."""
    subscriptions = [Subscription("hub", WHOLE, "hub", limit)]
    subscriptions += [Subscription(f"leaf{i}", WHOLE, f"h{i if own_sites else 0}", 0) for i in range(feeds)]
    problem = Problem.of(subscriptions, **options)
    return problem, configuration_of((How.SOURCE, -1, ()), *[(How.COPY, -1, (0,))] * feeds)


@pytest.mark.parametrize(
    ("limits", "feeds", "most"), [("plan", 10, 10), ("improvement", 15, 15), ("hard", 18, 18)]
)
def test_a_subscription_keeps_the_limit_that_is_asked_for(limits, feeds, most):
    problem, configuration = star(feeds, 10)
    assert verify(problem, table_of([[]]), configuration, limits=limits).ok
    problem, configuration = star(feeds + 1, 10)
    found = verify(problem, table_of([[]]), configuration, limits=limits).faults
    assert found == [f"subscription hub has {feeds + 1} feeds; its limit is {most}"]


def test_without_a_limit_there_is_none():
    problem, configuration = star(200, None)
    assert verify(problem, table_of([[]]), configuration).ok


def test_feeds_within_a_machine_do_not_count():
    problem, configuration = star(5, 1, own_sites=False)
    near = configuration.copy()
    near.how[2:], near.inputs[2:, 0] = How.LOCAL, 1
    assert verify(problem, table_of([[]]), configuration).faults
    assert verify(problem, table_of([[]]), near).feeds == [1, 0, 0, 0, 0, 0]
    assert verify(problem, table_of([[]]), near).ok


@pytest.mark.parametrize(("limits", "most"), [("plan", 2), ("improvement", 3), ("hard", 3)])
def test_a_site_keeps_its_limit_over_all_its_subscriptions(limits, most):
    sites = [Site("hub", 2), *(Site(f"h{i}") for i in range(4))]
    subscriptions = [Subscription("a", WHOLE, "hub", 9), Subscription("b", PART, "hub", 9)]
    subscriptions += [Subscription(f"leaf{i}", (WHOLE, PART)[i % 2], f"h{i}", 0) for i in range(4)]
    problem = Problem.of(subscriptions, sites)
    source = (How.SOURCE, -1, ())
    copies = [(How.COPY, -1, (i % 2,)) for i in range(4)]
    within = configuration_of(source, source, *copies[:most], *[source] * (4 - most))
    assert verify(problem, table_of([[], []]), within, limits=limits).ok
    above = configuration_of(source, source, *copies[: most + 1], *[source] * (3 - most))
    found = verify(problem, table_of([[], []]), above, limits=limits).faults
    assert found == [f"site hub has {most + 1} feeds; its limit is {most}"]


@pytest.mark.parametrize(("limits", "most"), [("plan", 9), ("improvement", 9), ("hard", 10)])
def test_the_source_keeps_its_limit(limits, most):
    def check(count):
        problem = Problem.of([Subscription(f"s{i}", WHOLE, f"h{i}") for i in range(count)], source_feeds=10)
        return verify(problem, table_of([[]]), from_source(count), limits=limits).faults

    assert check(most) == []
    last = f"the source has {most + 1} feeds; its limit is {most}; the last is subscription s{most}"
    assert check(most + 1) == [last]


def test_limits_have_three_names():
    problem, configuration = star(1, 1)
    with pytest.raises(ValueError, match="limits are one of plan, improvement, hard, not soft"):
        verify(problem, table_of([[]]), configuration, limits="soft")


# --- claims ------------------------------------------------------------------------------------------------


def true_claim():
    verdict = verify(hand_problem(), HAND_TABLE, HAND)
    return Claim(verdict.utilization, verdict.latency, verdict.paper_latency)


def test_a_true_claim_is_accepted_and_each_wrong_one_is_a_fault():
    true = true_claim()
    assert faults(HAND, claimed=true) == []
    assert true.paper_latency < true.latency
    wrong = [
        (Claim(true.utilization - 1, true.latency, true.paper_latency), "the utilization is"),
        (Claim(true.utilization, true.latency * (1 - 1e-6), true.paper_latency), "the sum of the latency is"),
        (Claim(true.utilization, true.latency, true.latency), "the sum of the latency as the paper has it is"),
    ]
    for claim, text in wrong:
        (fault,) = faults(HAND, claimed=claim)
        assert fault.startswith(text)


def test_a_claim_with_another_rounding_of_the_last_digits_is_accepted():
    true = true_claim()
    assert faults(HAND, claimed=Claim(true.utilization, true.latency + 1e-13, true.paper_latency)) == []


def test_a_latency_that_is_not_a_number_is_no_claim_to_accept():
    true = true_claim()
    assert faults(HAND, claimed=Claim(true.utilization, float("nan"), true.paper_latency))


# --- losses ------------------------------------------------------------------------------------------------


def test_with_room_at_the_source_every_loss_is_absorbed():
    problem, configuration = star(3, 3, source_feeds=4)
    assert verify(problem, table_of([[]]), configuration).unabsorbed == []


def test_what_neither_equals_nor_the_source_can_feed_is_counted_by_site():
    # The hub's own feed is free again when it is lost: one of three finds a place at the source.
    problem, configuration = star(3, 3, source_feeds=2)
    assert verify(problem, table_of([[]]), configuration).unabsorbed == [("hub", 1)]
    assert verify(problem, table_of([[]]), configuration, losses=False).unabsorbed == []


def two_hubs(limit, site_limit=None):
    """Make two equal hubs, the second feeding five leaves, with nothing left at the source."""
    sites = [Site("first", site_limit), Site("second"), *(Site(f"h{i}") for i in range(5))]
    subscriptions = [Subscription("first", WHOLE, "first", limit), Subscription("second", WHOLE, "second", 5)]
    subscriptions += [Subscription(f"leaf{i}", WHOLE, f"h{i}", 0) for i in range(5)]
    # One feed too many: the one that is free when the second is lost is no help either.
    problem = Problem.of(subscriptions, sites, source_feeds=1)
    feeds = [(How.SOURCE, -1, ()), (How.SOURCE, -1, ()), *[(How.COPY, -1, (1,))] * 5]
    return verify(problem, table_of([[]]), configuration_of(*feeds)).unabsorbed


def test_an_equal_subscription_takes_over_up_to_its_hard_limit():
    assert two_hubs(3) == []  # 1.8 times 3 is 5
    assert two_hubs(2) == [("second", 2)]


def test_a_takeover_keeps_the_hard_limit_of_the_site():
    assert two_hubs(9, site_limit=3) == []
    assert two_hubs(9, site_limit=2) == [("second", 2)]


def test_another_subscription_to_a_view_takes_over_beside_the_input_that_stays():
    # whole has one feed, which both keeps; spare stands in for part if it may feed.
    for limit, wanted in ((1, [("one", 1)]), (0, [("one", 1), ("two", 1)])):
        problem = hand_problem(limits=(1, 2, 4, 1, 1, limit), source_feeds=2)
        assert verify(problem, HAND_TABLE, HAND).unabsorbed == wanted


def test_a_way_that_fails_half_way_takes_nothing():
    more = Pattern.parse("//b{val,cont}")
    names = ("whole", "part", "both", "more")
    problem = Problem.of(
        [Subscription(name, p, name, 1) for name, p in zip(names, (WHOLE, PART, BOTH, more), strict=True)],
        source_feeds=2,
    )
    configuration = configuration_of(*[(How.SOURCE, -1, ())] * 2, (How.REWRITING, 0, (0, 1)), (How.SOURCE, -1, ()))
    # Without part, the first candidate takes a feed of whole in vain, and the second needs the same.
    assert verify(problem, table_of([[], [], [[0, 1], [0, 3]], []]), configuration).unabsorbed == [("whole", 1)]
    assert verify(problem, table_of([[], [], [[0, 1]], []]), configuration).unabsorbed == [
        ("whole", 1),
        ("part", 1),
    ]


def test_whoever_was_not_absorbed_takes_over_from_nobody():
    subscriptions = [Subscription(name, WHOLE, name, limit) for name, limit in (("hub", 4), ("a", 1), ("b", 0))]
    configuration = configuration_of((How.SOURCE, -1, ()), *[(How.COPY, -1, (0,))] * 2)
    for feeds, wanted in ((1, []), (0, [("hub", 2)])):
        problem = Problem.of(subscriptions, source_feeds=feeds)
        assert verify(problem, table_of([[]]), configuration).unabsorbed == wanted


def test_an_earlier_equal_on_the_same_machine_takes_over_for_nothing():
    hub, near = Subscription("hub", WHOLE, "hub", 1), Subscription("near", WHOLE, "one", 0)
    copy, source = (How.COPY, -1, (0,)), (How.SOURCE, -1, ())
    orphan = Subscription("orphan", WHOLE, "one", 0)
    earlier = Problem.of([hub, near, orphan], source_feeds=1)
    assert verify(earlier, table_of([[]]), configuration_of(source, source, copy)).unabsorbed == []
    later = Problem.of([hub, orphan, near], source_feeds=1)
    assert verify(later, table_of([[]]), configuration_of(source, copy, source)).unabsorbed == [("hub", 1)]


def test_each_loss_starts_from_the_whole_configuration():
    subscriptions = [
        Subscription(f"{name}{i}", pattern, f"{name}{i}", 0 if i else 3)
        for name, pattern in (("x", WHOLE), ("y", PART))
        for i in range(4)
    ]
    source = (How.SOURCE, -1, ())
    feeds = [source, *[(How.COPY, -1, (0,))] * 3, source, *[(How.COPY, -1, (4,))] * 3]
    for given, wanted in ((4, []), (3, [("x0", 1), ("y0", 1)])):
        problem = Problem.of(subscriptions, source_feeds=given)
        assert verify(problem, table_of([[], []]), configuration_of(*feeds)).unabsorbed == wanted


def test_a_takeover_is_undone_before_the_next_loss():
    # The one feed of whole is enough for either copy, whichever original is lost.
    patterns = [WHOLE, *(Pattern.parse(text) for text in ("//a{val}", "//a{val}", "//a{id}", "//a{id}"))]
    problem = Problem.of(
        [Subscription(f"s{i}", pattern, f"h{i}", 1) for i, pattern in enumerate(patterns)], source_feeds=2
    )
    source = (How.SOURCE, -1, ())
    configuration = configuration_of(source, source, (How.COPY, -1, (1,)), source, (How.COPY, -1, (3,)))
    assert verify(problem, table_of([[], [[0]], [[0]]]), configuration).unabsorbed == []
    assert verify(problem, table_of([[], [], []]), configuration).unabsorbed == [("h1", 1), ("h3", 1)]


# --- the rest ----------------------------------------------------------------------------------------------


def test_faults_of_a_kind_are_told_up_to_a_limit_and_then_counted():
    count = MOST_FAULTS + 1_005
    problem = Problem.of(Subscription(f"s{i}", WHOLE, f"h{i}") for i in range(count))
    configuration = from_source(count)
    configuration.how[:] = How.COPY
    found = verify(problem, table_of([[]]), configuration).faults
    assert len(found) == MOST_FAULTS + 1
    assert found[0] == "subscription s0 has 0 inputs, but is fed as COPY"
    assert found[-1] == "feed sets: 1,005 more"


def test_a_verdict_tells_what_matters():
    text = str(verify(hand_problem(), HAND_TABLE, HAND))
    assert text.startswith("the configuration holds: 6 of 6 subscriptions fed, 0 pending, utilization ")
    assert text.endswith("3 levels")
    text = str(verify(hand_problem(source_feeds=3), HAND_TABLE, HAND))
    assert "the configuration is wrong" in text
    assert "\nfault: the source has 3 feeds; its limit is 2; the last is subscription spare" in text
    problem, configuration = star(3, 3, source_feeds=2)
    lines = str(verify(problem, table_of([[]]), configuration)).splitlines()
    assert lines[-1] == "the loss of any of 1 sites would leave some without a feed: that of hub 1"


def test_a_configuration_of_other_subscriptions_is_refused():
    with pytest.raises(PlannerError, match="not one of these 6 subscriptions"):
        verify(hand_problem(), HAND_TABLE, from_source(5))


def test_every_subscription_is_told_as_it_is_priced():
    told = []
    verify(hand_problem(), HAND_TABLE, HAND, tick=told.append)
    assert sum(told) == 6


def test_without_networkx_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(PlannerError, match=r"pip install 'distributary\[planner\]'"):
        verify(hand_problem(), HAND_TABLE, HAND)


def test_the_verifier_imports_nothing_that_builds_plans_or_prices_them():
    folder = Path(planner.verify.__file__).parent
    trees = [ast.parse(path.read_text()) for path in sorted(folder.glob("verify*.py"))]
    assert len(trees) == 3
    imported = {n.module for tree in trees for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module}
    ours = {name for name in imported if name.partition(".")[0] in ("planner", "rewriting")}
    ours -= {"planner.verify", "planner.verify_losses", "planner.verify_pricing"}
    assert ours == {
        "planner.configuration",
        "planner.errors",
        "planner.problem",
        "planner.verdict",
        "rewriting.candidate_table",  # for its type alone
        "rewriting.embedding",
        "rewriting.providers",
        "rewriting.statistics",
        "rewriting.table",
    }

"""The verifier: it accepts what keeps every rule, and names whoever breaks one."""

import math
import random
from collections import Counter
from itertools import product

import numpy as np

from planner.configuration import How
from planner.problem import Network, Problem, Site, Subscription
from planner.verdict import Claim
from planner.verify import verify
from rewriting import find_candidates
from rewriting.pricing import JOIN, Weights, price
from tests.oracles.exhaustive_plan import cheapest_plan
from tests.oracles.plan_prices import candidate_price
from tests.planner.test_pricing import random_patterns, random_statistics, table_of
from tests.planner.verify_cases import (
    HAND_TABLE,
    WHOLE,
    configuration_of,
    hand_problem,
)


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

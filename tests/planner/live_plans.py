"""What the tests of plans that change have in common."""

from collections import Counter

import numpy as np

from planner.configuration import How
from planner.incremental import LivePlan
from planner.planning import plan
from planner.problem import Problem, Site, Subscription, hard_limit
from planner.verify import verify
from rewriting import Statistics
from rewriting.embedding import embeds
from rewriting.pricing import JOIN, price
from rewriting.providers import feeder
from tests.oracles.plan_prices import candidate_price
from xmlmatch import Pattern


def check(live):
    """Check every rule of a configuration anew from patterns, names and limits."""
    subscriptions = {s.name: s for s in live.subscriptions()}
    placements = {name: live.placement(name) for name in (*subscriptions, *live.offline)}
    assert len(placements) == len(live)
    assert {n for n in subscriptions if placements[n].how is How.PENDING} == set(live.pending)
    for name in live.offline:
        assert placements[name].how is How.PENDING
        assert placements[name].reason == f"site {live._sites[live._members[name].site].name} is down"
    place = {name: i for i, name in enumerate(subscriptions)}
    feeds, site_feeds = Counter(), Counter()
    for name, s in subscriptions.items():
        found = placements[name]
        inputs = [subscriptions[u] for u in found.inputs]  # a KeyError here: fed by one that is offline or gone
        assert all(placements[u.name].how is not How.PENDING for u in inputs)
        assert bool(found.reason) == (found.how is How.PENDING)
        check_feed(live, found, s, inputs, place)
        for u, site in zip(inputs, targets(live, found, s, inputs), strict=True):
            feeds[u.name] += u.site != site
            site_feeds[u.site] += u.site != site
    assert_acyclic({name: found.inputs for name, found in placements.items()})
    for name, count in feeds.items():
        limit = subscriptions[name].limit
        assert count <= hard_limit(limit)
    limits = dict(zip(live.network().names, live.network().limits.tolist(), strict=True))
    assert all(count <= hard_limit(limits[site]) for site, count in site_feeds.items())
    by_source = sum(found.how is How.SOURCE for found in placements.values())
    most = live.plan.problem.source_feeds
    assert most is None or by_source <= most
    assert live.ledger.source_feeds == by_source
    check_snapshot(live)


def check_feed(live, found, s, inputs, place):
    """Check that the inputs are enough, and that the feeding order lets them feed."""
    graph = live.graph
    if found.how in (How.SOURCE, How.PENDING):
        assert not inputs
    elif found.how in (How.COPY, How.LOCAL):
        (u,) = inputs
        assert u.pattern == s.pattern
        assert (u.site == s.site) == (found.how is How.LOCAL)
        assert (-u.limit.bit_length(), place[u.name]) < (-s.limit.bit_length(), place[s.name])
    else:
        provided = set()
        for u in inputs:
            assert u.pattern != s.pattern
            assert embeds(u.pattern, s.pattern)
            earlier = graph.key(graph.number(u.pattern)) < graph.key(graph.number(s.pattern))
            assert earlier or not embeds(s.pattern, u.pattern)
            provided |= set(feeder(u.pattern, s.pattern, Statistics()).provisions)
        assert provided == set(range(len(s.pattern.nodes)))


def targets(live, found, s, inputs):
    """Say to which machine each input sends."""
    if found.how is not How.REWRITING:
        return [s.site for _ in inputs]
    problem = live.plan.problem
    views = [u.pattern for u in inputs]
    joint = candidate_price(s.pattern, views, problem.statistics, problem.weights).plan - JOIN
    return [s.site if joint < 0 or j == joint else inputs[joint].site for j in range(len(inputs))]


def assert_acyclic(inputs):
    done, waiting = set(), dict(inputs)
    while waiting:
        ready = [name for name, own in waiting.items() if done.issuperset(own)]
        assert ready, "subscriptions feed each other in a circle"
        done.update(ready)
        for name in ready:
            del waiting[name]


def check_snapshot(live):
    """Let the verifier see the whole."""
    if not live.subscriptions():
        return
    problem, table, prices, configuration = live.snapshot()
    verdict = verify(problem, table, configuration, limits="hard", losses=False)
    assert verdict.faults == []
    assert verdict.utilization == live.utilization
    assert set(verdict.pending) == set(live.pending)
    again = price(problem.graph, table, problem.statistics, problem.weights, threads=1)
    alive = problem.graph.numbers
    for mine, whole in zip(
        (prices.result_bytes, prices.sources, prices.copies), (again.result_bytes, again.sources, again.copies),
        strict=True,
    ):  # fmt: skip
        np.testing.assert_array_equal(mine[alive], whole[alive])


def live_of(texts, *, limit=2, source_feeds=None, sites=(), limits=()):
    """Plan subscriptions s0, s1, ... on machines of their own m0, m1, ...; there are also x0 to x9."""
    wanted = [
        Subscription(f"s{i}", Pattern.parse(t), sites[i] if sites else f"m{i}", limits[i] if limits else limit)
        for i, t in enumerate(texts)
    ]
    machines = [Site(name) for name in dict.fromkeys([s.site for s in wanted] + [f"x{i}" for i in range(10)])]
    return LivePlan.of(plan(Problem.of(wanted, machines, source_feeds=source_feeds)))

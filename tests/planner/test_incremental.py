"""Changes to a plan: after each one, everything is checked from scratch by the obvious rules."""

import random

import pytest

from planner.errors import NoFeasiblePlan, NoPlanFound
from planner.incremental import LivePlan
from planner.planning import plan
from planner.problem import Network, Problem, Site, Subscription
from rewriting import find_candidates
from rewriting.pricing import Weights
from tests.oracles.exhaustive_plan import cheapest_plan
from tests.planner.live_plans import check, live_of
from tests.planner.test_pricing import random_patterns, random_statistics
from xmlmatch import Pattern


def random_live(rng, *, apart=False):
    """Draw a problem that has a plan, with patterns and sites to spare; ``apart``: one machine each."""
    while True:
        patterns = [p for _ in range(2) for p in random_patterns(rng) if not p.contradiction]
        statistics = random_statistics(rng, list(dict.fromkeys(patterns)))
        count = rng.randint(3, 9)
        sites = [
            Site(f"h{i}", None if apart else rng.choice((None, 1, 2, 5)), rng.choice(("", "far")))
            for i in range(40)
        ]
        drawn = rng.choices(patterns, k=count)
        wanted = [
            Subscription(f"s{i}", p, sites[i if apart else rng.randrange(5)].name, rng.choice((0, 1, 2, 5, None)))
            for i, p in enumerate(drawn)
        ]
        weights = rng.choice((Weights(), Weights(joins=False), Weights(20, 20, 0, 0, link=3)))
        problem = Problem.of(
            wanted, Network.of(sites), source_feeds=rng.choice((None, 4, 6, 12)), weights=weights,
            statistics=statistics,
        )  # fmt: skip
        if len(find_candidates(problem.graph, 3, threads=1)) == 0:
            continue
        try:
            return LivePlan.of(plan(problem, seconds=5)), patterns
        except (NoFeasiblePlan, NoPlanFound):
            continue


def change(rng, live, patterns, number, *, apart=False):
    """Make one random change."""
    names = sorted(live._members)
    what = rng.choice(("add", "add", "add", "withdraw", "withdraw", "limit", "fail", "back", "settle"))
    if what == "add" or not names:
        site = f"h{10 + number}" if apart else f"h{rng.randrange(6)}"
        subscription = Subscription(f"n{number}", rng.choice(patterns), site, rng.choice((0, 1, 2, 5, None)))
        found = live.add(subscription)
        assert found == live.placement(f"n{number}")
        assert found in live.changed or found.reason.endswith("is down")
    elif what == "withdraw":
        name = rng.choice(names)
        assert name not in {moved.name for moved in live.withdraw(name)}
    elif what == "limit":
        live.limit_changed(rng.choice(names), rng.choice((0, 1, 2, 7, None)))
    elif what == "fail" and not apart:
        live.site_failed(f"h{rng.randrange(6)}")
    elif what == "back":
        live.site_returned(f"h{rng.randrange(6)}")
    else:
        live.settle()
    for moved in live.changed:
        assert moved == live.placement(moved.name)


@pytest.mark.parametrize("seed", range(12))
def test_every_rule_holds_after_every_change(seed):
    rng = random.Random(seed)
    live, patterns = random_live(rng)
    check(live)
    for number in range(25):
        change(rng, live, patterns, number)
        check(live)


@pytest.mark.parametrize("seed", range(10))
def test_the_bound_is_never_above_the_least_utilization(seed):
    rng = random.Random(100 + seed)
    live, patterns = random_live(rng, apart=True)
    compared = 0
    for number in range(16):
        change(rng, live, patterns, number, apart=True)
        if 0 < len(live) <= 9:
            problem, table, prices, _ = live.snapshot()
            least = cheapest_plan(problem, table, prices)
            compared += least is not None
            assert least is None or live.bound.total <= least + 1e-6
    assert compared


def test_changes_that_are_taken_back_leave_the_bound_as_it_was():
    live = live_of(["//a{cont}", "//b{val}", "//a{cont}//b{val}", "//a{cont}"], limit=1)
    before = live.bound.total, live.utilization
    live.add(Subscription("n", Pattern.parse("//b{val}"), "x0", 3))
    live.withdraw("n")
    live.limit_changed("s1", 7)
    live.limit_changed("s1", 1)
    live.site_failed("m2")
    live.site_returned("m2")
    assert (live.bound.total, live.utilization) == pytest.approx(before)

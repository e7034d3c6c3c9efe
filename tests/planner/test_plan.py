"""Plans of small problems against exhaustive search, and what is proven about larger ones."""

import random

import numpy as np
import pytest

from planner.choices import UNBOUNDED
from planner.configuration import How
from planner.errors import NoFeasiblePlan, NoPlanFound
from planner.planning import plan
from planner.problem import Problem, Site, Subscription, source_plan_limit
from planner.solver import Outcome
from planner.verdict import Claim
from planner.verify import verify
from rewriting.candidate_table import find_candidates
from rewriting.candidates import Effort
from rewriting.pricing import price
from tests.oracles.exhaustive_plan import cheapest_plan
from xmlmatch import Pattern

TEXTS = [
    "//a{cont}", "//a[b]{cont}", "//a[b][c]{cont}", "//b{val}", "//a/b{val}", "//a[c]/b{val}", "//c{val}",
    "//a[b{val}]", "//a[b{val}][c{val}]", "//*{val}", "//a[b='1']{cont}", "//a[.//c]", "//a[c{val}]/b{val}",
]  # fmt: skip
ALL = Effort(pool=64, expansions=64, width=32, enough=1000, rounds=1)


def small_problem(seed, *, shared_sites=False):
    """Draw a problem; every third is as large as exhaustive search can be asked about often."""
    rng = random.Random(seed)
    count = rng.randint(8, 12) if seed % 3 == 0 else rng.randint(2, 7)
    limits = rng.choice([[0, 1], [0, 1, 1, 2], [1, 2], [1, 3, None]])
    texts = rng.choices(rng.sample(TEXTS, rng.randint(2, 6)), k=count)
    sites = [rng.randrange(max(1, count - 2)) if shared_sites else i for i in range(count)]
    wanted = [
        Subscription(f"s{i}", Pattern.parse(text), f"m{sites[i]}", rng.choice(limits))
        for i, text in enumerate(texts)
    ]
    network = (
        [Site(f"m{i}", rng.choice([None, None, 0, 1, 2])) for i in range(count)] if rng.random() < 0.3 else None
    )
    return Problem.of(wanted, network, source_feeds=rng.choice([None, 2, 3, 4, 6]), k=500)


def check(problem, found):
    best = found.figures["best"]
    claim = Claim(best.utilization, best.latency, best.paper_latency)
    verdict = verify(problem, found.table, found.configuration, limits="improvement", claimed=claim)
    assert verdict.ok, verdict
    chosen = verify(problem, found.table, found.chosen, limits="plan", losses=False)
    assert chosen.ok, chosen
    assert chosen.utilization == found.figures["ties"].utilization
    solved = verify(problem, found.table, found.solved, limits="plan", losses=False)
    assert solved.ok, solved
    assert solved.utilization == found.figures["ilp"].utilization
    assert solved.latency == pytest.approx(found.figures["ilp"].latency)
    assert best.utilization <= found.figures["loga"].utilization
    assert best.latency <= found.figures["loga"].latency + 1e-9
    assert found.latency_bound <= best.latency + 1e-9


@pytest.mark.parametrize("seed", range(60))
def test_a_plan_equals_exhaustive_search_over_member_level_feeds(seed):
    problem = small_problem(seed)
    try:
        found = plan(problem, effort=ALL)
    except NoFeasiblePlan:
        table = find_candidates(problem.graph, 500, link_bytes=problem.weights.link_bytes, effort=ALL)
        assert cheapest_plan(problem, table, price(problem.graph, table, weights=problem.weights)) is None
        return
    check(problem, found)
    least = cheapest_plan(problem, found.table, found.prices)
    assert found.selection.outcome is Outcome.OPTIMAL
    assert found.is_exact
    assert found.figures["ties"].utilization == least
    assert found.selection.bound == least


@pytest.mark.parametrize("seed", range(40))
def test_with_several_subscriptions_per_machine_a_plan_holds_and_says_if_it_is_not_exact(seed):
    problem = small_problem(seed, shared_sites=True)
    try:
        found = plan(problem, effort=ALL)
    except NoPlanFound:
        return  # not proven: nothing is claimed
    except NoFeasiblePlan:
        table = find_candidates(problem.graph, 500, link_bytes=problem.weights.link_bytes, effort=ALL)
        assert cheapest_plan(problem, table, price(problem.graph, table, weights=problem.weights)) is None
        return
    check(problem, found)
    least = cheapest_plan(problem, found.table, found.prices)
    assert least is not None
    assert found.figures["ties"].utilization >= least
    if found.is_exact:
        assert found.figures["ties"].utilization == least


def test_what_the_source_must_feed_is_said_when_that_is_too_much():
    wanted = [Subscription(f"s{i}", Pattern.parse(f"//l{i}{{val}}"), f"m{i}", 5) for i in range(12)]
    with pytest.raises(NoFeasiblePlan, match="the source must feed at least 12; its limit is 9"):
        plan(Problem.of(wanted, source_feeds=10))


def test_subscriptions_that_feed_nobody_exhaust_the_source():
    wanted = [Subscription(f"s{i}", Pattern.parse("//a{cont}"), f"m{i}", 0) for i in range(4)]
    with pytest.raises(NoFeasiblePlan, match="the source must feed at least 4; its limit is 2"):
        plan(Problem.of(wanted, source_feeds=3))
    found = plan(Problem.of(wanted, source_feeds=5))
    assert found.configuration.how.tolist() == [How.SOURCE] * 4


def test_a_popular_pattern_is_fed_once_from_outside_and_by_itself():
    wanted = [Subscription(f"s{i}", Pattern.parse("//a{cont}"), f"m{i}", 2) for i in range(50)]
    found = plan(Problem.of(wanted))
    assert np.count_nonzero(found.chosen.how == How.SOURCE) == 1
    assert np.count_nonzero(found.chosen.how == How.COPY) == 49
    check(found.problem, found)


def test_twins_on_one_machine_need_one_feed():
    wanted = [Subscription(f"s{i}", Pattern.parse("//a{cont}"), f"m{i // 5}", 1) for i in range(10)]
    found = plan(Problem.of(wanted))
    assert sorted(found.chosen.how.tolist()) == [How.SOURCE, How.COPY] + [How.LOCAL] * 8


def test_a_time_limit_gives_the_best_so_far_with_its_gap():
    rng = random.Random(5)
    wanted = [Subscription(f"s{i}", Pattern.parse(rng.choice(TEXTS)), f"m{i}", 1) for i in range(60)]
    found = plan(Problem.of(wanted), seconds=1e-9)
    assert found.selection.outcome in (Outcome.FEASIBLE, Outcome.OPTIMAL)
    assert found.selection.bound <= found.figures["ilp"].utilization
    check(found.problem, found)


def test_cancelling_gives_the_best_so_far():
    wanted = [Subscription(f"s{i}", Pattern.parse(TEXTS[i % len(TEXTS)]), f"m{i}", 1) for i in range(40)]
    found = plan(Problem.of(wanted), cancelled=lambda: True)
    check(found.problem, found)
    assert len(found.trace) <= 3


def test_the_source_keeps_a_tenth_for_newcomers():
    assert source_plan_limit(10) == 9
    wanted = [Subscription(f"s{i}", Pattern.parse(f"//l{i}{{val}}"), f"m{i}", None) for i in range(9)]
    found = plan(Problem.of(wanted, source_feeds=10))
    assert np.count_nonzero(found.configuration.how == How.SOURCE) == 9
    assert found.problem.limits[0] == UNBOUNDED

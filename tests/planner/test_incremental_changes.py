"""A plan that changes, case by case: who is fed by whom after each change."""

import random

import pytest

from planner.configuration import How
from planner.errors import BadProblem
from planner.incremental import MOST_DRIFT, LivePlan
from planner.planning import plan
from planner.problem import Problem, Site, Subscription
from rewriting import EmbeddingGraph, find_candidates
from rewriting.newcomer import Finder
from rewriting.pricing import Weights
from tests.oracles.plan_prices import candidate_price
from tests.planner.live_plans import check, live_of
from tests.planner.test_pricing import random_patterns, random_statistics
from xmlmatch import Pattern

LARGE = "//a" + "".join(f"[c{i}]" for i in range(70)) + "{val}"


def fed(live, *names):
    """Say how each is fed, shortly."""
    found = [live.placement(name) for name in names]
    return [(p.how.name, *p.inputs) for p in found]


BASE = ["//a{cont}", "//b{val}", "//a{cont}//b{val}"]


def test_it_starts_as_the_plan_is():
    live = live_of(BASE)
    assert live.utilization == live.plan.figures["best"].utilization
    assert live.drift == 0
    assert live.bound.total == pytest.approx(live.plan.selection.bound)
    assert live.should_replan == ""
    check(live)


def test_an_equal_one_on_the_same_machine_feeds_a_newcomer_for_nothing():
    live = live_of(BASE, limit=0)
    before = live.utilization
    live.add(Subscription("n", Pattern.parse("//b{val}"), "m1", 0))
    assert fed(live, "n") == [("LOCAL", "s1")]
    assert live.utilization == before
    check(live)


def test_a_newcomer_of_a_higher_tier_steps_in_for_its_equal_on_the_same_machine():
    live = live_of(BASE, limit=1)
    before, own = live.utilization, fed(live, "s1")
    live.add(Subscription("n", Pattern.parse("//b{val}"), "m1", 8))
    assert fed(live, "n", "s1") == [*own, ("LOCAL", "n")]
    assert live.utilization == before
    assert {p.name for p in live.changed} == {"n", "s1"}
    check(live)


def test_a_newcomer_goes_to_the_source_when_all_feeders_are_full():
    live = live_of(BASE, limits=[1, 1, 0])
    assert fed(live, "s2") == [("REWRITING", "s0", "s1")]
    live.add(Subscription("n", Pattern.parse("//b{val}"), "x0", 0))
    assert fed(live, "n") == [("SOURCE",)]
    check(live)


def test_a_newcomer_takes_over_a_consumer_of_a_full_feeder():
    # s0 feeds s1 and is full; the newcomer can be computed from s0 and is between the two.
    texts = ["//a{cont}//b{cont}", "//a{val}/b[.='1']{val}"]
    live = live_of(texts, limits=[1, 0])
    assert fed(live, "s1") == [("REWRITING", "s0")]
    live.add(Subscription("n", Pattern.parse("//a{cont}/b{cont}"), "x0", 1))
    assert fed(live, "n", "s1") == [("REWRITING", "s0"), ("REWRITING", "n")]
    assert {p.name for p in live.changed} == {"n", "s1"}
    check(live)
    assert [p.name for p in live.withdraw("n")] == ["s1"]
    assert fed(live, "s1") == [("REWRITING", "s0")]
    check(live)


def test_a_newcomer_without_feeds_of_its_own_takes_nothing_over():
    live = live_of(["//a{cont}//b{cont}", "//a{val}/b[.='1']{val}"], limits=[1, 0])
    live.add(Subscription("n", Pattern.parse("//a{cont}/b{cont}"), "x0", 0))
    assert fed(live, "n", "s1") == [("SOURCE",), ("REWRITING", "s0")]
    check(live)


def test_a_newcomer_takes_over_nobody_who_comes_before_it_in_the_feeding_order():
    # What the newcomer sends would be enough for s1, and each embeds in the other; but s1 returns more.
    live = live_of(["//*{cont}", "//a{val,cont}"], limits=[1, 0])
    assert fed(live, "s1") == [("REWRITING", "s0")]
    live.add(Subscription("n", Pattern.parse("//a{cont}"), "x0", 1))
    assert fed(live, "n", "s1") == [("SOURCE",), ("REWRITING", "s0")]
    check(live)


def test_a_site_gives_no_more_feeds_than_its_own_hard_limit():
    wanted = [
        Subscription("s0", Pattern.parse("//a{cont}"), "m0"),
        Subscription("s1", Pattern.parse("//b{val}"), "m0"),
    ]
    sites = [Site("m0", 2), *(Site(f"x{i}") for i in range(9))]
    live = LivePlan.of(plan(Problem.of([*wanted, Subscription("s2", Pattern.parse(BASE[2]), "x0", 0)], sites)))
    for i in range(1, 9):
        live.add(Subscription(f"n{i}", Pattern.parse("//b{val}" if i % 2 else "//a{cont}"), f"x{i}", 0))
        check(live)
    found = fed(live, *(f"n{i}" for i in range(1, 9)))
    # The machine gives three: s2 takes one where its inputs are joined there, else two.
    assert sum(how[0] == "COPY" for how in found) in (1, 2)
    assert found[-1] == ("SOURCE",)


def test_an_equal_newcomer_takes_over_a_consumer_without_a_new_candidate():
    live = live_of(["//a{cont}//b{cont}", "//a{val}/b[.='1']{val}"], limits=[1, 0])
    live.add(Subscription("n", Pattern.parse("//a{cont}//b{cont}"), "x0", 1))
    assert fed(live, "n", "s1") == [("COPY", "s0"), ("REWRITING", "n")]
    check(live)


def test_whoever_finds_no_feed_is_pending_and_is_fed_when_there_is_room():
    live = live_of(BASE, limits=[1, 1, 0], source_feeds=3)
    live.add(Subscription("n1", Pattern.parse("//c{val}"), "x1", 0))
    waiting = live.add(Subscription("n2", Pattern.parse("//d{val}"), "x2", 0))
    reason = "the source is at its limit of 3 and nothing else can feed it"
    assert waiting.how is How.PENDING
    assert waiting.reason == reason
    assert live.pending == {"n2": reason}
    full = live.add(Subscription("n3", Pattern.parse("//b{val}"), "x3", 0))
    assert full.reason == "the source is at its limit of 3 and every feeder is full"
    assert live.should_replan == f"2 pending: {reason}"
    check(live)
    assert [p.name for p in live.withdraw("n1")] == ["n2"]
    assert [p.name for p in live.limit_changed("s1", 2)] == ["n3"]
    assert fed(live, "n2", "n3") == [("SOURCE",), ("COPY", "s1")]
    assert live.pending == {}
    check(live)


def test_those_that_only_a_pending_one_could_feed_wait_with_it():
    live = live_of(BASE, limits=[1, 1, 2], source_feeds=3)
    live.add(Subscription("n", Pattern.parse("//a{cont}/b{val}"), "x0", 0))
    assert fed(live, "n") == [("REWRITING", "s2")]
    live.add(Subscription("more", Pattern.parse("//c{val}"), "x1", 0))
    live.withdraw("s1")
    live.add(Subscription("last", Pattern.parse("//d{val}"), "x2", 0))
    live.limit_changed("s0", 0)
    check(live)
    live.withdraw("s0")
    check(live)
    assert live.pending.keys() <= {"n", "s2", "last"}


def test_what_a_failed_site_fed_is_fed_otherwise_until_it_returns():
    live = live_of([*BASE, "//a{cont}/b{val}"], limits=[1, 1, 2, 0])
    assert fed(live, "s3") == [("REWRITING", "s2")]
    assert [p.name for p in live.site_failed("m2")] == ["s3"]
    assert fed(live, "s2", "s3") == [("PENDING",), ("REWRITING", "s0", "s1")]
    assert live.offline == ["s2"]
    assert live.pending == {}
    assert live.site_failed("m2") == []
    check(live)
    asleep = live.add(Subscription("n", Pattern.parse("//b{val}"), "m2", 0))
    assert asleep.reason == "site m2 is down"
    check(live)
    assert [p.name for p in live.site_returned("m2")] == ["s2", "n"]
    assert live.offline == []
    check(live)


def test_a_lower_limit_sheds_the_latest_consumers():
    live = live_of([*BASE, "//a{cont}", "//a{cont}"], limits=[8, 8, 0, 0, 0])
    assert fed(live, "s3", "s4") == [("COPY", "s0"), ("COPY", "s0")]
    live.limit_changed("s0", 1)
    check(live)
    assert sum(inputs == ("COPY", "s0") for inputs in fed(live, "s3", "s4")) <= 1


def test_a_pattern_that_left_and_came_back_is_placed_like_a_new_one():
    live = live_of(BASE)
    live.withdraw("s1")
    check(live)
    live.add(Subscription("again", Pattern.parse("//b{val}"), "x1", 2))
    check(live)
    live.withdraw("s2")
    live.add(Subscription("both", Pattern.parse(BASE[2]), "x2", 2))
    assert fed(live, "both") == [("REWRITING", "s0", "again")]
    check(live)


def test_everybody_can_leave():
    live = live_of(BASE)
    for name in ("s0", "s1", "s2"):
        live.withdraw(name)
    assert (len(live), live.utilization, live.drift, live.should_replan) == (0, 0, 0.0, "")
    assert fed(live, live.add(Subscription("s0", Pattern.parse("//b{val}"), "x0")).name) == [("SOURCE",)]


def test_a_plan_is_due_when_half_of_the_reserve_is_used():
    live = live_of(BASE, limit=0, source_feeds=20)
    for i in range(10):
        for k in range(2):
            if live.ledger.source_feeds < 19:
                live.add(Subscription(f"n{i}{k}", Pattern.parse(f"//c{i}{k}{{val}}"), f"x{i}", 0))
    assert live.should_replan == ""
    live.add(Subscription("last", Pattern.parse("//d{val}"), "x0", 0))
    assert live.should_replan == "the source has 20 feeds; plans use 18 of 20"


def test_a_plan_is_due_when_the_utilization_has_drifted():
    live = live_of([*BASE, "//c{cont}"], limit=30)
    live.bound.start(int(live.utilization / (1 + MOST_DRIFT) / 1.01))
    assert live.drift > MOST_DRIFT
    assert live.should_replan == "the utilization has drifted by 6.1%; 5% are allowed"


@pytest.mark.parametrize(
    ("subscription", "why"),
    [
        (Subscription("s0", Pattern.parse("//b"), "x0"), "s0: the name is there already; withdraw it first"),
        (Subscription("n", Pattern.parse("//b"), "nowhere"), "n: there is no site nowhere"),
        (Subscription("n", Pattern.parse("//b"), "x0", -1), "n: its limit is -1; limits are 0 or more"),
    ],
)
def test_a_newcomer_that_makes_no_sense_changes_nothing(subscription, why):
    live = live_of(BASE)
    with pytest.raises(BadProblem, match=f"^subscription {why}$"):
        live.add(subscription)
    assert len(live) == 3
    check(live)


def test_sites_can_come_and_must_be_known():
    live = live_of(BASE)
    live.add_site(Site("new", 3, "elsewhere"))
    live.add(Subscription("n", Pattern.parse("//b{val}"), "new"))
    check(live)
    for wrong in (
        lambda: live.add_site(Site("new")),
        lambda: live.site_failed("no"),
        lambda: live.site_returned("no"),
    ):
        with pytest.raises(BadProblem):
            wrong()
    with pytest.raises(KeyError):
        live.withdraw("nobody")


def test_a_large_pattern_is_placed_the_slow_way():
    live = live_of(BASE)
    live.add(Subscription("large", Pattern.parse(LARGE), "x0", 3))
    live.add(Subscription("larger", Pattern.parse(LARGE.replace("{val}", "{val}[z]")), "x1", 3))
    check(live)


@pytest.mark.parametrize("seed", range(8))
def test_single_searches_find_what_the_batch_finds_at_its_prices(seed):
    rng = random.Random(seed)
    patterns = [p for _ in range(3) for p in random_patterns(rng) if not p.contradiction]
    statistics, weights = random_statistics(rng, list(dict.fromkeys(patterns))), Weights()
    graph = EmbeddingGraph.build(patterns[:5])
    finder = Finder.of(graph, statistics, weights, 10)
    for pattern in patterns[5:]:
        finder.take(graph.add(pattern).number)
    table = find_candidates(graph, 10, statistics=statistics, link_bytes=weights.link_bytes, threads=1)
    for q in graph.numbers.tolist():
        views = finder.feeders(q, graph.views_of(q))
        assert views.tolist() == graph.feeders_of(q).tolist()
        found = finder.find(q, views)
        assert [(c.cost, sorted(c.views)) for c in found] == [(cost, sorted(v)) for cost, v in table.of(q)]
        for c in found:
            members = [graph.pattern(u) for u in c.views]
            wanted = candidate_price(graph.pattern(q), members, statistics, weights)
            assert (c.utilization, c.plan, c.nodes, c.link_bytes) == tuple(wanted)
            assert finder.covers(q, c.views)

"""Limits and claims of a plan: what is at a limit is accepted, what is beyond is not."""

import ast
import sys
from pathlib import Path

import pytest

import planner.verify
from planner.configuration import How
from planner.errors import PlannerError
from planner.problem import Problem, Site, Subscription
from planner.verdict import Claim
from planner.verify import MOST_FAULTS, verify
from tests.planner.test_pricing import table_of
from tests.planner.verify_cases import (
    BOTH,
    HAND,
    HAND_TABLE,
    PART,
    WHOLE,
    configuration_of,
    faults,
    from_source,
    hand_problem,
)
from xmlmatch import Pattern


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

"""Subscriptions come and go: after every change all configurations are checked from scratch."""

import subprocess
import sys

import pytest

from peer.steering.steering import Steering
from planner.configuration import How
from planner.errors import BadProblem
from rewriting.statistics import Statistics
from scenarios.auction_documents import auction_documents
from scenarios.presets import table2
from tests.peer.steering.sequences import Sequence
from xmlmatch import Document, PatternError


def fed(steering, *names):
    """Say how each is fed, shortly."""
    found = [steering.describe(name) for name in names]
    return [(d.how.name, *d.inputs) for d in found]


def steering_of(texts, *, limit=2, source_feeds=None):
    """Subscribe s0, s1, ... on machines of their own m0, m1, ...; there are also x0 to x9."""
    steering = Steering("origin", source_feeds)
    for i in range(10):
        steering.add_site(f"x{i}")
    for i, text in enumerate(texts):
        steering.add_site(f"m{i}")
        steering.add(f"s{i}", text, f"m{i}", limit, i)
    return steering


BASE = ["//a{cont}", "//b{val}", "//a{cont}//b{val}"]


@pytest.mark.parametrize("seed", range(9))
def test_every_rule_holds_for_all_configurations_after_every_change(seed):
    sequence = Sequence(seed).grown(20)
    for _ in range(60):
        sequence.step()
    assert sequence.ever


@pytest.mark.parametrize("seed", range(20, 25))
def test_old_and_new_configurations_mix_without_circles_when_equals_leave_and_return(seed):
    # Few patterns, all of which embed in each other: only the feeding order keeps them apart.
    texts = ["//a[b]", "//a{id}[b]", "//a[b{id}]", "//a{id}[b{id}]"]
    sequence = Sequence(seed, texts)
    for number in range(70):
        sequence.step()
        if number % 10 == 9:
            sequence.restart()
    assert sequence.ever  # each step has checked all of them, old and new


def test_nothing_is_issued_for_nothing():
    sequence = Sequence(1).grown(20)
    for _ in range(40):
        before = {c.subscription: c for c in sequence.steering.configurations()}
        for c in sequence.step():
            if c.subscription in before:
                old = before[c.subscription]
                assert (old.choices, old.feeds) != (c.choices, c.feeds)


def test_a_steering_of_nothing_steers_the_first_to_the_source():
    steering = Steering("origin", 1)
    steering.add_site("m0")
    (first,) = steering.add("s0", "//a{cont}", "m0", None, 7)
    assert (first.choices, first.feeds, first.start, first.version) == ((), 1 << 30, 7, (1, 0, 1))
    assert fed(steering, "s0") == [("SOURCE",)]
    assert steering.describe("s0").sites == ("origin",)
    assert steering.withdraw("s0") == []
    assert steering.configurations() == []


def test_a_newcomer_is_fed_by_others_in_the_order_of_the_candidate_and_whoever_feeds_it_has_no_news():
    steering = steering_of(BASE[:2])
    (found,) = steering.add("n", BASE[2], "x0", 3, 9)
    assert [[u.subscription for u in choice] for choice in found.choices] == [["s0", "s1"]]
    assert [(u.site, u.pattern) for u in found.choices[0]] == [("m0", "//a{cont}"), ("m1", "//b{val}")]
    assert found.feeds == 5


def test_who_is_fed_by_one_that_leaves_is_fed_otherwise():
    steering = steering_of(BASE)
    steering.add("n", "//a{cont}/b{val}", "x0", 0, 0)
    assert fed(steering, "n") == [("REWRITING", "s2")]
    (moved,) = steering.withdraw("s2")
    assert (moved.subscription, fed(steering, "n")) == ("n", [("REWRITING", "s0", "s1")])


def test_an_alternative_that_leaves_is_replaced():
    steering = steering_of(["//a{cont}"] * 6, limit=None)
    before = steering.configuration("s5")
    gone = before.choices[1][0].subscription
    changed = {c.subscription: c for c in steering.withdraw(gone)}
    assert not changed["s5"].names(gone, f"m{gone[1:]}")
    assert changed["s5"].choices[0] == before.choices[0]
    assert len(changed["s5"].choices) == 4


def test_alternatives_are_on_other_machines_and_spread_over_subscriptions():
    steering = steering_of(["//a{cont}"] * 12, limit=None)
    for i in range(8):
        steering.add(f"n{i}", "//a{val}", f"x{i}", 0, 0)
    found = [steering.configuration(f"n{i}") for i in range(8)]
    for c in found:
        sites = [{u.site for u in choice} for choice in c.choices]
        assert all(sites[0].isdisjoint(other) for other in sites[1:])
    assert len({c.choices[1] for c in found}) > 2


def test_alternatives_that_came_later_are_found_when_there_is_time():
    steering = steering_of(["//a{cont}", "//a{val}"], limit=5)
    assert len(steering.configuration("s1").choices) == 1
    steering.add("n", "//a{cont}", "x0", 5, 0)
    (better,) = (c for c in steering.settle() if c.subscription == "s1")
    assert [[u.subscription for u in choice] for choice in better.choices] == [["s0"], ["n"]]
    assert steering.settle() == []


def test_those_that_find_no_feed_are_pending_without_choices():
    steering = steering_of(["//a{cont}"], limit=0, source_feeds=1)
    (waiting,) = steering.add("n", "//b{val}", "x0", 0, 0)
    assert waiting.choices == ()
    assert steering.pending.keys() == {"n"}
    assert steering.describe("n").reason == steering.pending["n"]
    assert steering.should_replan.startswith("1 pending")
    assert steering.source_feeds_used == 1
    steering.withdraw("s0")
    assert steering.pending == {}


def test_a_machine_that_fails_keeps_its_own_configurations_and_others_move():
    steering = steering_of(BASE)
    steering.add("n", "//a{cont}/b{val}", "x0", 0, 0)
    own = steering.configuration("s2")
    assert [c.subscription for c in steering.site_failed("m2")] == ["n"]
    assert steering.configuration("s2") == own
    assert steering.describe("s2").how is How.PENDING
    assert steering.pending == {}
    assert steering.site_returned("m2") == []
    assert fed(steering, "s2") == [("REWRITING", "s0", "s1")]


def test_what_left_while_a_machine_was_down_is_no_choice_on_it_any_more():
    steering = steering_of(BASE)
    steering.site_failed("m2")
    (changed,) = steering.withdraw("s1")
    assert (changed.subscription, changed.choices) == ("s2", ())


def test_a_lower_limit_sheds_consumers_and_is_told_to_the_subscription():
    steering = steering_of(["//a{cont}", "//a{val}", "//a{id}"], limit=3)
    changed = {c.subscription: c for c in steering.limit_changed("s0", 0)}
    assert changed["s0"].feeds == 0
    assert fed(steering, "s1")[0] == ("SOURCE",)


def test_a_limit_never_changes_the_place_among_equals():
    steering = steering_of(["//a{cont}"] * 2, limit=4, source_feeds=1)
    assert fed(steering, "s1") == [("COPY", "s0")]
    steering.limit_changed("s0", 1)
    steering.limit_changed("s1", None)
    steering.withdraw("s1")
    steering.add("n", "//a{cont}", "x0", 4, 0)
    steering.limit_changed("n", 100)
    assert fed(steering, "s0", "n") == [("SOURCE",), ("COPY", "s0")]


def test_levels_count_the_links_from_the_source():
    steering = steering_of(BASE)
    steering.add("n", BASE[2], "m2", 0, 0)
    steering.add("below", "//a{cont}/b{val}", "x0", 0, 0)
    assert steering.levels() == {"s0": 1, "s1": 1, "s2": 2, "n": 2, "below": 3}
    described = steering.describe("below")
    assert (described.level, described.inputs, described.sites) == (3, ("s2",), ("m2",))
    assert described.utilization > 0


def test_statistics_change_prices_and_no_feeds():
    sequence = Sequence(3, [p.text for p in table2(3, 30).distinct])
    for _ in range(40):
        sequence.add()
    before = sequence.steering.configurations()
    cost = sum(sequence.steering.describe(name).utilization for name in sequence.catalog)
    documents = [Document.parse(d) for d in auction_documents(1, 3)]
    sequence.steering.measured(Statistics.measure([row[0] for row in sequence.catalog.values()], documents))
    assert sequence.steering.configurations() == before
    assert sum(sequence.steering.describe(name).utilization for name in sequence.catalog) != cost
    for _ in range(10):
        sequence.step()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("s0", "//a", "m0", 1, 0), BadProblem),
        (("n", "//a", "nowhere", 1, 0), BadProblem),
        (("n", "//a", "m0", -1, 0), BadProblem),
        (("n", "//a[b='1'][b!='1']/b[.='1'][.='2']", "m0", 1, 0), BadProblem),
        (("n", "//a[", "m0", 1, 0), PatternError),
    ],
)
def test_what_cannot_be_added_changes_nothing(arguments, error):
    steering = steering_of(BASE)
    before = steering.configurations(), steering.entries()
    with pytest.raises(error):
        steering.add(*arguments)
    assert (steering.configurations(), steering.entries()) == before


def test_unknown_names_are_refused():
    steering = steering_of(BASE)
    for call in (steering.withdraw, steering.describe, steering.configuration):
        with pytest.raises(KeyError):
            call("nobody")
    with pytest.raises(BadProblem):
        steering.site_failed("nowhere")
    with pytest.raises(BadProblem):
        steering.add_site("m0")


def test_steering_needs_nothing_that_only_full_plans_need():
    program = """
import sys
for name in ("ortools", "pyarrow", "networkx", "pyspark"):
    sys.modules[name] = None
from peer.steering.steering import Steering
steering = Steering("origin", 10)
for i, text in enumerate(["//a{cont}", "//b{val}", "//a{cont}//b{val}", "//a{cont}"]):
    steering.add_site(f"m{i}")
    steering.add(f"s{i}", text, f"m{i}", 2, 0)
steering.site_failed("m0")
steering.site_returned("m0")
steering.withdraw("s1")
steering.settle()
print([steering.describe(f"s{i}").how.name for i in (0, 2, 3)])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert len(done.stdout.split()) == 3

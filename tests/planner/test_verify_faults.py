"""Every kind of fault that is planted into a plan by hand is found, and named."""

import itertools

import numpy as np
import pytest

from planner.configuration import How
from planner.problem import Network, Problem, Site, Subscription
from planner.verify import verify
from rewriting import Statistics, find_candidates
from rewriting.feeding_order import text_hash
from rewriting.pricing import Weights
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


def with_feed(s, how, candidate, inputs, *, base=HAND):
    """Feed one subscription otherwise."""
    new = base.copy()
    new.how[s], new.candidate[s], new.inputs[s] = how, candidate, -1
    new.inputs[s, : len(inputs)] = inputs
    return new


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
    # Each embeds in the other, and both return as much: which feeds hangs on their texts, not on who came first.
    outcomes = set()
    for label, is_first in itertools.product("acdefg", (True, False)):
        view, query = Pattern.parse(f"//{label}{{val}}[b][.//b]"), Pattern.parse(f"//{label}{{val}}[b]")
        order = (view, query) if is_first else (query, view)
        problem = Problem.of(Subscription(f"s{i}", pattern, f"h{i}") for i, pattern in enumerate(order))
        u, q = order.index(view), order.index(query)
        feeds = [(How.SOURCE, -1, ()), (How.SOURCE, -1, ())]
        feeds[q] = (How.REWRITING, 0, (u,))
        sets = [[], []]
        sets[q] = [[u]]
        found = verify(problem, table_of(sets), configuration_of(*feeds)).faults
        comes_later = text_hash(view) < text_hash(query)
        outcomes.add(comes_later)
        text = f"subscription s{u} feeds subscription s{q} against the feeding order, by candidate 0"
        assert found == [text] * comes_later
    assert outcomes == {True, False}


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

"""Full plans are taken over as far as they hold: real ones, stale ones, and forged ones."""

from dataclasses import replace

import pytest

from peer.steering.proposal import Adopted, At, BadProposal, Proposal, Stale, read_proposal
from planner.configuration import How
from planner.errors import NoFeasiblePlan, NoPlanFound
from planner.planning import plan
from planner.problem import Problem, Site, Subscription
from rewriting.pricing import Weights
from spark_planner.plan_files import plan_table
from tests.peer.steering.sequences import Sequence
from xmlmatch import Pattern


def planned(sequence, *, joins=False):
    """Plan for the present catalog as the planner would; rows of plan.parquet, none if there is no plan."""
    wanted = [
        Subscription(name, pattern, site, limit)
        for name, (pattern, site, limit, _) in sequence.catalog.items()
        if site not in sequence.down
    ]
    sites = [Site(name, limit) for name, limit in sequence.limits.items()]
    feeds = sequence.steering.source_feeds
    try:
        found = plan(Problem.of(wanted, sites, source_feeds=feeds, weights=Weights(joins=joins)), seconds=5)
    except (NoFeasiblePlan, NoPlanFound):
        return []
    return plan_table(found).to_pylist()


def proposal_of(sequence):
    return read_proposal(planned(sequence), sequence.steering.epoch)


def adopt(sequence, proposal):
    """Adopt, check everything, and return what became of it."""
    found = sequence.steering.adopt(proposal)
    assert isinstance(found, Adopted)
    sequence.versions.update(dict.fromkeys(sequence.catalog, (1, sequence.steering.epoch - 1, 1 << 40)))
    sequence.took(found.configurations)
    return found


def inputs(sequence, name):
    return sequence.steering.describe(name).inputs


def forged(proposal, name, *wanted, how=How.REWRITING):
    """Let a proposal feed somebody otherwise."""
    feed = proposal.feeds[name]
    new = replace(feed, how=how, inputs=tuple(proposal.feeds[u].at for u in wanted), alternatives=())
    return Proposal(proposal.base_epoch, {**proposal.feeds, name: new})


@pytest.mark.parametrize("seed", range(6))
def test_a_real_plan_is_taken_over_whole(seed):
    sequence = Sequence(seed, source_feeds=40).grown(45)
    rows = planned(sequence, joins=seed % 2 == 0)
    proposal = read_proposal(rows, 0)
    found = adopt(sequence, proposal)
    assert (sequence.steering.epoch, found.rebased) == (1, ())
    assert found.refused == {}
    assert set(found.taken) == sequence.catalog.keys()
    for name in found.taken:
        assert inputs(sequence, name) == tuple(u.subscription for u in proposal.feeds[name].inputs)
    changed = {c.subscription for c in found.configurations}
    assert {c.epoch for c in sequence.steering.configurations()} == {1}
    for _ in range(15):
        sequence.step(limits=False)
    assert changed
    sequence.restart()


def test_the_second_time_a_plan_changes_nothing():
    sequence = Sequence(4, source_feeds=40).grown(40)
    adopt(sequence, proposal_of(sequence))
    rows = planned(sequence)
    before = sequence.steering.configurations()
    found = adopt(sequence, read_proposal(rows, 1))
    assert found.configurations == ()
    assert [c.choices for c in before] == [c.choices for c in sequence.steering.configurations()]
    assert {c.version for c in sequence.steering.configurations()} == {(1, 2, 0)}


def test_a_proposal_of_another_epoch_is_stale():
    sequence = Sequence(4, source_feeds=40).grown(20)
    first = proposal_of(sequence)
    adopt(sequence, first)
    before = sequence.steering.configurations()
    found = sequence.steering.adopt(first)
    assert found == Stale(0, 1)
    assert found.reason == "the proposal was made in epoch 0; it is epoch 1 now: plan again"
    assert sequence.steering.configurations() == before


@pytest.mark.parametrize("seed", range(4))
def test_changes_since_a_plan_was_begun_are_rebased(seed):
    sequence = Sequence(seed, source_feeds=40).grown(40)
    proposal = proposal_of(sequence)
    for _ in range(25):
        sequence.step()
    found = adopt(sequence, proposal)
    came = sequence.catalog.keys() - proposal.feeds.keys()
    assert came <= set(found.rebased)
    for name in found.rebased:
        lost = name in came or any(
            u.subscription not in sequence.catalog or u.site in sequence.down for u in proposal.feeds[name].inputs
        )
        assert lost
    assert proposal.feeds.keys() - sequence.catalog.keys()
    for _ in range(10):
        sequence.step()


def test_whoever_was_to_be_fed_by_one_that_left_keeps_its_feed_or_gets_another():
    sequence = sequence_of("//a{cont}", "//a{cont}", "//a{val}", "//a{id}")
    proposal = forged(proposal_of(sequence), "s3", "s1")
    sequence.withdraw("s1")
    found = adopt(sequence, proposal)
    assert found.refused["s3"] == "its input s1 is no subscription, or no longer one"
    assert "s3" in found.rebased
    assert inputs(sequence, "s3")


def sequence_of(*texts, limit=5, limits=()):
    """Subscribe s0, s1, ... on machines m0, m1, ... that have no limits."""
    sequence = Sequence(1, source_feeds=9)
    sequence.limits = dict.fromkeys(sequence.limits)
    sequence.steering, _ = sequence.restored(sites=[s._replace(limit=None) for s in sequence.steering.sites()])
    for i, text in enumerate(texts):
        sequence.add(text, f"m{i}", limits[i] if limits else limit)
    return sequence


BASE = ("//a{cont}", "//b{val}", "//a{cont}//b{val}", "//a{cont}")


@pytest.mark.parametrize(
    ("name", "wanted", "how", "why"),
    [
        ("s2", ("s1",), How.REWRITING, "cannot be computed from"),
        ("s1", ("s0",), How.REWRITING, "the feeding order does not let s0 feed it"),
        ("s0", ("s2", "s1"), How.REWRITING, "the feeding order does not let s2 feed it"),
        ("s0", ("s3",), How.COPY, "s3, its equal, comes after it"),
        ("s2", ("s0", "s3", "s1"), How.REWRITING, "two of its inputs are equal"),
        ("s2", ("s2",), How.COPY, "s2, its equal, comes after it"),
    ],
)
def test_a_forged_feed_is_refused_and_the_present_one_kept(name, wanted, how, why):
    sequence = sequence_of(*BASE)
    before = inputs(sequence, name)
    found = adopt(sequence, forged(proposal_of(sequence), name, *wanted, how=how))
    assert why in found.refused[name]
    assert list(found.refused) == [name]
    assert name in found.kept
    assert inputs(sequence, name) == before


def test_a_forged_circle_is_refused():
    texts = ("//a[b]", "//a{id}[b]", "//a[b{id}]")
    sequence = sequence_of(*texts)
    proposal = proposal_of(sequence)
    for name, u in (("s0", "s1"), ("s1", "s2"), ("s2", "s0")):
        proposal = forged(proposal, name, u)
    found = adopt(sequence, proposal)
    assert len(found.refused) in (1, 2)
    assert all("the feeding order" in why for why in found.refused.values())


def test_feeds_above_a_hard_limit_are_refused():
    sequence = sequence_of("//a{cont}", *["//a{val}"] * 4, limits=(2, 0, 0, 0, 0))
    proposal = proposal_of(sequence)
    for i in range(1, 5):
        proposal = forged(proposal, f"s{i}", "s0")
    found = adopt(sequence, proposal)
    assert found.refused == {"s4": "its input s0 has as many feeds as it may"}
    assert inputs(sequence, "s3") == ("s0",)


def test_feeds_above_the_limit_of_a_machine_are_refused():
    sequence = sequence_of("//a{cont}", *["//a{val}"] * 4)
    sequence.limits["m0"] = 1
    sequence.steering, _ = sequence.restored(
        sites=[s._replace(limit=sequence.limits[s.name]) for s in sequence.steering.sites()]
    )
    proposal = proposal_of(sequence)
    for i in range(1, 5):
        proposal = forged(proposal, f"s{i}", "s0")
    found = adopt(sequence, proposal)
    assert found.refused.keys() == {"s2", "s3", "s4"}
    assert found.refused["s2"] == "the machine m0 of its input s0 has as many feeds as it may"


def test_more_source_feeds_than_the_source_has_are_refused():
    sequence = sequence_of(*[f"//l{i}{{val}}" for i in range(6)], "//l0{val}", "//l1{val}")
    proposal = proposal_of(sequence)
    sequence.steering.source_feeds = 7
    sequence.steering, _ = sequence.restored()
    for i in range(8):
        proposal = forged(proposal, f"s{i}", how=How.SOURCE)
    found = adopt(sequence, proposal)
    assert found.refused == {"s7": "the source feeds 7 already"}
    assert inputs(sequence, "s7") == ("s1",)


def test_wrong_patterns_and_machines_are_refused():
    sequence = sequence_of(*BASE)
    proposal = proposal_of(sequence)
    feeds = dict(proposal.feeds)
    feeds["s0"] = replace(feeds["s0"], pattern="//a{val}")
    feeds["s1"] = replace(feeds["s1"], at=At("s1", "m7"))
    feeds["s2"] = replace(feeds["s2"], inputs=tuple(At(u.subscription, "m7") for u in feeds["s2"].inputs))
    found = adopt(sequence, Proposal(0, feeds))
    assert found.refused == {
        "s0": "its pattern is //a{cont}, not //a{val}",
        "s1": "it is on m1, not on m7",
        "s2": "its input s0 is on m0, not on m7",
    }


def test_what_is_proposed_for_a_machine_that_is_down_waits():
    sequence = sequence_of(*BASE)
    proposal = proposal_of(sequence)
    sequence.down.add("m2")
    sequence.took(sequence.steering.site_failed("m2"))
    found = adopt(sequence, proposal)
    assert "s2" not in {*found.taken, *found.refused}
    assert sequence.steering.describe("s2").how is How.PENDING


def test_alternatives_are_taken_as_far_as_they_are_good():
    sequence = sequence_of("//a{cont}", "//a{cont}", "//a{cont}", "//a{val}")
    proposal = forged(proposal_of(sequence), "s3", "s0")
    at = {name: feed.at for name, feed in proposal.feeds.items()}
    ways = ((at["s2"],), (at["s3"],), (At("nobody", "m1"),), (at["s1"],))
    feeds = {**proposal.feeds, "s3": replace(proposal.feeds["s3"], alternatives=ways)}
    adopt(sequence, Proposal(0, feeds))
    found = sequence.steering.configuration("s3").choices
    assert [[u.subscription for u in choice] for choice in found] == [["s0"], ["s2"], ["s1"]]


ROW = {"subscription": "s", "site": "m", "pattern": "//a", "how": "copy", "inputs": [], "alternatives": []}
INPUT = {"subscription": "u", "site": "m"}


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([{}], "row 1: this is no row of a plan"),
        ([ROW], "0 inputs, but fed as COPY"),
        ([ROW | {"how": "source", "inputs": [INPUT]}], "1 inputs, but fed as SOURCE"),
        ([ROW | {"how": "magic"}], "row 1"),
        ([ROW | {"inputs": [{"subscription": "u"}]}], "row 1"),
        ([ROW | {"inputs": [{"subscription": 3, "site": "m"}]}], "3 is no text"),
        ([ROW | {"inputs": None}], "row 1"),
        ([ROW | {"how": "source"}] * 2, "row 2: subscription s is there twice"),
    ],
)
def test_rows_that_are_none_of_a_plan_are_told(rows, why):
    with pytest.raises(BadProposal, match=why):
        read_proposal(rows, 0)


def test_patterns_are_compared_as_canonical_text():
    sequence = sequence_of("//a[ b ][c]{val}")
    assert sequence.steering.configuration("s0").pattern == Pattern.parse("//a[c][b]{val}").text
    assert adopt(sequence, proposal_of(sequence)).refused == {}

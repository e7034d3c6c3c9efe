"""A restart changes nothing, wherever it happens; what cannot be kept is placed anew."""

from collections import Counter
from dataclasses import replace

import msgspec
import pytest

from peer.hosting.configuration import Input
from peer.steering.entries import SiteEntry
from tests.peer.steering.sequences import Sequence


def placements(steering):
    """Say how everybody is fed; why somebody is pending may be told otherwise after a new search."""
    found = [steering.describe(entry.subscription) for entry in steering.entries()]
    return {said.subscription: replace(said, reason="") for said in found}


def assert_same(steering, other):
    assert placements(steering) == placements(other)
    assert steering.configurations() == other.configurations()
    assert (steering.entries(), steering.sites()) == (other.entries(), other.sites())
    assert steering.pending.keys() == other.pending.keys()
    assert steering.source_feeds_used == other.source_feeds_used


@pytest.mark.parametrize("seed", range(8))
def test_after_a_restart_everybody_is_fed_as_before(seed):
    sequence = Sequence(seed).grown(20)
    for number in range(60):
        sequence.step()
        if number % 3 == 0:
            again, changed = sequence.restored()
            assert changed == []
            assert_same(again, sequence.steering)


@pytest.mark.parametrize("seed", range(4))
def test_a_life_with_restarts_keeps_every_rule(seed):
    sequence = Sequence(100 + seed).grown(20)
    for number in range(50):
        sequence.step()
        if number % 4 == 0:
            assert sequence.restart() == []


@pytest.mark.parametrize("seed", range(4))
def test_without_knowing_who_was_pending_configurations_are_still_the_same(seed):
    sequence = Sequence(seed, source_feeds=4).grown(20)
    waiting = 0
    for _ in range(40):
        sequence.step()
        again, changed = sequence.restored(pending=())
        waiting += bool(sequence.steering.pending)
        fed = {name for name in sequence.catalog if sequence.steering.configuration(name).choices}
        assert fed.isdisjoint(c.subscription for c in changed)
        assert len(again.pending) <= len(sequence.steering.pending)
    assert waiting


def test_those_whose_stored_inputs_are_gone_or_wrong_are_placed_anew():
    sequence = Sequence(5, ["//a{cont}"], source_feeds=9)
    for text in ("//a{cont}", "//b{val}", *["//a{val}"] * 20):
        sequence.add(text, limit=8)
    stored = {c.subscription: c for c in sequence.steering.configurations()}
    ghost, wrong, against, lost = "s5", "s6", "s7", "s8"
    inputs = {
        ghost: Input("nobody", "m0", "//a{cont}"),
        wrong: Input("s1", sequence.catalog["s1"][1], "//b{val}"),
        against: Input("s15", sequence.catalog["s15"][1], "//a{val}"),
    }
    for name, one in inputs.items():
        stored[name] = msgspec.structs.replace(stored[name], choices=((one,),))
    del stored[lost]
    sequence.steering, changed = sequence.restored(configurations=stored.values())
    assert {c.subscription for c in changed} == {ghost, wrong, against, lost}
    sequence.versions = {}
    sequence.took(changed)


def test_a_machine_that_may_feed_less_than_before_is_relieved():
    sequence = Sequence(3, ["//a{cont}", "//a{val}"])
    sequence.limits = dict.fromkeys(sequence.limits)
    sequence.steering, _ = sequence.restored(sites=[SiteEntry(name) for name in sequence.limits])
    for _ in range(30):
        sequence.add(limit=5)
    feeds = Counter(
        u.site for c in sequence.steering.configurations() for u in (c.choices or [()])[0] if u.site != c.site
    )
    ((feeding, count),) = feeds.most_common(1)
    sequence.limits[feeding] = 1
    sites = [SiteEntry(name, limit) for name, limit in sequence.limits.items()]
    sequence.steering, changed = sequence.restored(sites=sites)
    assert len(changed) >= count - 1
    sequence.took(changed)


def test_a_new_generation_issues_everything_again():
    sequence = Sequence(1)
    for _ in range(20):
        sequence.add()
    again, changed = sequence.restored(generation=4)
    assert [c.subscription for c in changed] == list(sequence.catalog)
    assert {c.generation for c in changed} == {4}
    assert [c.choices for c in changed] == [c.choices for c in sequence.steering.configurations()]
    assert placements(again) == placements(sequence.steering)


def test_versions_go_on_where_they_ended():
    sequence = Sequence(1)
    for _ in range(5):
        sequence.add()
    last = max(c.version for c in sequence.steering.configurations())
    sequence.steering, _ = sequence.restored()
    assert min(c.version for c in sequence.add()) > last
    again, _ = sequence.restored(epoch=7)
    assert again.epoch == 7

"""Faults of links that overlap: each holds for as long as it is said to, whatever the others do."""

from scenarios.hosts.links import Link, Links
from scenarios.running.cast import links_of
from scenarios.running.link_faults import LinkFaults
from scenarios.scenario_file import parse_scenario

HOSTS = ["source", "h00", "h01", "h02"]


def faults():
    return LinkFaults(HOSTS, Link(rtt_ms=10, loss=0.01), {("source", "h00"): Link(rtt_ms=30, mbit=5)})


def between(found, one, other):
    """Return what the carrier makes of it."""
    links, told = Links(), found.shape()
    pairs = {(a, b): Link(**link) for a, b, link in told["pairs"]}
    links.shape(Link(**told["link"]), pairs, told["cuts"])
    return links.between(one, other)


def test_a_cut_lasts_while_another_begins_and_ends():
    found = faults()
    found.cut(1, ["h00"])
    found.cut(2, ["h01", "h00"])
    assert between(found, "h01", "h00") is None
    assert found.end(2)
    assert between(found, "h00", "h02") is None
    assert between(found, "h01", "h02") == Link(rtt_ms=10, loss=0.01)
    assert found.end(1)
    assert between(found, "h00", "h02") == Link(rtt_ms=10, loss=0.01)


def test_loss_and_round_trips_change_each_for_itself_and_of_the_same_the_later_one_holds():
    found = faults()
    found.change(1, {"loss": 0.2})
    found.change(2, {"rtt_ms": 99.0})
    found.change(3, {"loss": 0.5})
    assert between(found, "h01", "h02") == Link(rtt_ms=99, loss=0.5)
    assert between(found, "h00", "source") == Link(rtt_ms=99, loss=0.5, mbit=5)
    found.end(3)
    assert between(found, "h01", "h02") == Link(rtt_ms=99, loss=0.2)
    found.end(1)
    assert between(found, "h01", "h02") == Link(rtt_ms=99, loss=0.01)
    found.end(2)
    assert between(found, "h00", "source") == Link(rtt_ms=30, mbit=5)


def test_healing_ends_all_cuts_and_nothing_else():
    found = faults()
    found.cut(1, ["h00"])
    found.change(2, {"loss": 0.3})
    found.heal()
    assert between(found, "h00", "h01") == Link(rtt_ms=10, loss=0.3)
    assert not found.end(1)


def test_what_is_not_said_of_a_pair_is_as_between_all():
    text = """
    title = "x"
    [links]
    rtt_ms = [20, 20.5]
    jitter_ms = 3
    mbit = 50
    loss = 0.02
    [[links.between]]
    hosts = ["h01", "source"]
    loss = 0
    [[links.between]]
    hosts = ["h01", "h02"]
    rtt_ms = 1
    [subscriptions]
    count = 1
    """
    _, pairs = links_of(parse_scenario(text, "x"))
    first, second = pairs["source", "h01"], pairs["h01", "h02"]
    assert (first.jitter_ms, first.mbit, first.loss) == (3, 50, 0)
    assert 20 <= first.rtt_ms <= 20.5
    assert second == Link(rtt_ms=1, jitter_ms=3, mbit=50, loss=0.02)

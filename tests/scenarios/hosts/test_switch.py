"""What lies between hosts does what it says: delay, order, bandwidth, loss, cuts, bounds."""

import random

import pytest

from scenarios.hosts.links import Link, Links
from scenarios.hosts.switch import Switch


def switch(link, **options):
    return Switch(Links(link), random.Random(1), **options)


def drained(one):
    """Return what leaves, and when."""
    found = []
    while one.next_at is not None:
        at = one.next_at
        found += [(round(at, 6), *packet) for packet in one.due(at)]
    return found


def test_a_packet_arrives_after_half_a_round_trip():
    one = switch(Link(rtt_ms=20))
    one.take(5.0, "a", "b", b"x")
    assert one.due(5.0099) == []
    assert one.due(5.0101) == [("b", b"x")]


def test_bandwidth_spaces_packets_out_and_keeps_their_order_also_with_jitter():
    one = switch(Link(rtt_ms=10, jitter_ms=50, mbit=8))
    for n in range(20):
        one.take(0.0, "a", "b", bytes([n]) * 1000)
    found = drained(one)
    assert [packet[0] for _, _, packet in found] == list(range(20))
    assert found[-1][0] >= 20 * 0.001 + 0.005


def test_directions_and_pairs_do_not_wait_for_each_other():
    one = switch(Link(mbit=8))
    one.take(0.0, "a", "b", bytes(100_000))
    one.take(0.0, "b", "a", bytes(1000))
    one.take(0.0, "a", "c", bytes(1000))
    assert [(at, to) for at, to, _ in drained(one)] == [(0.001, "a"), (0.001, "c"), (0.1, "b")]


def test_so_many_are_lost():
    one = switch(Link(loss=0.25))
    for _ in range(4000):
        one.take(0.0, "a", "b", b"x")
    assert 900 < one.counts.lost < 1100
    assert len(drained(one)) == 4000 - one.counts.lost == one.counts.passed


def test_what_is_cut_off_gets_nothing_also_not_what_is_under_way():
    one = switch(Link(rtt_ms=20))
    one.take(0.0, "a", "b", b"early")
    one.links.cut(["a"], ["a", "b"])
    one.take(0.0, "b", "a", b"x")
    one.take(0.0, "b", "c", b"others")
    assert one.due(1.0) == [("c", b"others")]
    assert one.counts.cut == 2
    one.links.heal()
    one.take(1.0, "a", "b", b"late")
    assert one.due(2.0) == [("b", b"late")]


def test_what_waits_is_bounded():
    one = switch(Link(mbit=1), queue_bytes=10_000)
    for _ in range(100):
        one.take(0.0, "a", "b", bytes(1000))
    assert one.counts.overflowed == 90
    drained(one)
    one.take(10.0, "a", "b", bytes(1000))
    assert one.counts.overflowed == 90


@pytest.mark.parametrize("wrong", [{"rtt_ms": -1}, {"loss": 1}, {"mbit": 0}, {"jitter_ms": -1}])
def test_a_link_that_cannot_be_is_refused(wrong):
    with pytest.raises(ValueError, match="a link has"):
        Link(**wrong)

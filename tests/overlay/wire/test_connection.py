"""Connections: greeting, numbering, keep-alive, and what hostile bytes do to them (nothing)."""

import contextlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overlay.wire import frames
from overlay.wire.connection import VERSIONS, Connection, Patience, Stage
from overlay.wire.errors import BrokenConnection, MalformedFrame, WireError
from overlay.wire.frames import Alive, Answer, Batch, Bye, Calm, Frontier, Gap, Hello, decode_untrusted, encode
from overlay.wire.outbox import Outbox


def greeted(now=0.0):
    """Return two connections that have greeted each other."""
    one, two = Connection(1, now), Connection(2, now)
    one.receive(two.send(1 << 20, now), now)
    two.receive(one.send(1 << 20, now), now)
    return one, two


def test_both_sides_greet_and_agree_on_a_version():
    one, two = greeted()
    assert (one.stage, two.stage, one.version) == (Stage.READY, Stage.READY, VERSIONS[1])
    assert (one.theirs.incarnation, two.theirs.incarnation) == (2, 1)


def test_versions_that_do_not_meet_end_it():
    connection = Connection(1, 0.0)
    with pytest.raises(BrokenConnection, match="versions 7 to 9"):
        connection.receive(encode(Hello(7, 9, 5, 0), 0), 0.0)
    assert connection.stage is Stage.CLOSED


def test_nothing_is_heard_before_the_greeting():
    with pytest.raises(MalformedFrame, match="before the greeting"):
        Connection(1, 0.0).receive(encode(Frontier(1, 0, 1), 0), 0.0)


def test_a_lost_frame_is_noticed_at_the_next():
    one, two = greeted()
    one.outbox.put(Alive(0))
    one.send(1 << 20, 0.0)
    one.outbox.put(Alive(0))
    with pytest.raises(BrokenConnection, match="1 frames are missing"):
        two.receive(one.send(1 << 20, 0.0), 0.0)


def test_a_repeated_frame_is_dropped():
    one, two = greeted()
    one.outbox.put_feed(Frontier(1, 0, 5))
    data = one.send(1 << 20, 0.0)
    assert two.receive(data, 0.0) == [Frontier(1, 0, 5)]
    assert two.receive(data, 0.0) == []


def test_frames_arrive_whole_however_the_bytes_are_cut():
    one, two = greeted()
    sent = [Batch(1, n, n + 1, "d", bytes([n]) * 100 * n, more=False) for n in range(40)]
    for frame in sent:
        one.outbox.put_feed(frame)
    data, rng, got = one.send(1 << 30, 0.0), random.Random(1), []
    while data:
        n = rng.randint(1, 300)
        got += two.receive(data[:n], 0.0)
        data = data[n:]
    assert got == sent


def test_silence_is_death_and_keeping_alive_prevents_it():
    patience = Patience(1.0, 3.0)
    quiet, other = Connection(1, 0.0, 0, patience), Connection(2, 0.0, 0, patience)
    quiet.receive(other.send(1 << 20, 0.0), 0.0)
    for now in (1.0, 2.0):
        other.tick(now)
        quiet.receive(other.send(1 << 20, now), now)
    quiet.tick(4.9)
    with pytest.raises(BrokenConnection, match="nothing was heard"):
        quiet.tick(5.0)


def _exchange(one, two, now):
    """Let everything that waits cross, both ways."""
    two.receive(one.send(1 << 20, now), now)
    one.receive(two.send(1 << 20, now), now)


def calm_at_1():
    """Return two connections of which the first has said ``Calm``."""
    one, two = greeted()
    one.tick(1.0, lambda: True)
    two.receive(one.send(1 << 20, 1.0), 1.0)
    return one, two


def _signs_until(one, two, begin, end, is_calm):
    """Tick one side every half second, the other too; return how many signs of life the first gave."""
    signs, now = 0, begin
    while now < end:
        one.tick(now, is_calm)
        two.tick(now)
        signs += bool(one.outbox)
        _exchange(one, two, now)
        now += 0.5
    return signs


def test_where_nothing_hangs_on_it_signs_of_life_are_rare_and_nobody_takes_that_for_death():
    one, two = greeted()
    assert _signs_until(one, two, 0.0, 31.0, lambda: False) == 30
    one, two = greeted()
    assert _signs_until(one, two, 0.0, 31.0, lambda: True) == 6  # the first after a second, then every five


def test_the_calm_that_dies_is_noticed_when_its_promise_has_passed():
    _, two = calm_at_1()
    two.tick(7.9)
    with pytest.raises(BrokenConnection, match=r"nothing was heard for 7\.0 s"):
        two.tick(8.0)


def test_who_says_something_to_the_calm_knows_in_time_that_it_is_dead():
    _, two = calm_at_1()
    two.outbox.put_feed(Frontier(1, 0, 5))
    two.send(1 << 20, 2.0)
    two.tick(4.9)
    with pytest.raises(BrokenConnection, match="nothing was heard"):
        two.tick(5.0)


def test_the_calm_answers_what_it_hears_by_a_sign_of_life_at_once():
    one, two = calm_at_1()
    two.outbox.put_feed(Frontier(1, 0, 5))
    one.receive(two.send(1 << 20, 2.0), 2.0)
    one.tick(2.5, lambda: True)
    assert two.receive(one.send(1 << 20, 2.5), 2.5) == [Alive(0)]
    one.tick(3.5, lambda: True)
    assert two.receive(one.send(1 << 20, 3.5), 3.5) == [Calm(0, 5.0)]
    two.tick(10.4)  # it lives, and is excused again


def test_a_calm_that_was_under_way_before_is_no_answer():
    one, two = greeted()
    one.tick(1.0, lambda: True)
    late = one.send(1 << 20, 1.0)
    two.outbox.put_feed(Frontier(1, 0, 5))
    two.send(1 << 20, 1.1)  # it dies without having heard this
    two.receive(late, 1.2)
    two.tick(4.0)
    with pytest.raises(BrokenConnection, match="nothing was heard"):
        two.tick(4.2)


@pytest.mark.parametrize("is_repeated", [False, True])
def test_a_calm_that_comes_together_with_something_else_or_twice_stands(is_repeated):
    one, two = greeted()
    one.outbox.put_feed(Frontier(1, 0, 5))
    said = one.send(1 << 20, 0.0)
    one.tick(1.0, lambda: True)
    calm = one.send(1 << 20, 1.0)
    if is_repeated:
        two.receive(said, 0.0)
        two.receive(calm, 1.0)
        assert two.receive(calm, 1.1) == []
    else:
        assert two.receive(said + calm, 1.0) == [Frontier(1, 0, 5), Calm(0, 5.0)]
    two.tick(7.9)
    with pytest.raises(BrokenConnection, match="nothing was heard"):
        two.tick(8.2)


def test_half_a_frame_is_answered_too():
    one, two = greeted()
    one.tick(1.0, lambda: True)
    one.send(1 << 20, 1.0)
    two.outbox.put_feed(Batch(1, 0, 1, "d", bytes(500), more=False))
    one.receive(two.send(1 << 20, 2.0)[:100], 2.0)
    one.tick(2.5, lambda: True)
    assert one.outbox


def test_a_sign_of_life_asks_for_no_answer():
    one, two = greeted()
    two.tick(1.0)
    two.send(1 << 20, 1.0)
    one.tick(1.0, lambda: True)
    two.receive(one.send(1 << 20, 1.0), 1.0)
    for now in (2.0, 3.0, 4.0, 5.0, 6.0, 7.0):
        two.tick(now)
        two.send(1 << 20, now)
    with pytest.raises(BrokenConnection, match=r"7\.0 s"):
        two.tick(8.0)


def test_who_does_not_know_calm_is_never_told():
    old = Connection(2, 0.0)
    old.receive(encode(Hello(1, 4, 1, 0), 0), 0.0)
    old.send(1 << 20, 0.0)
    old.tick(1.0, lambda: True)
    assert decode_untrusted(old.send(1 << 20, 1.0)[8:]) == Alive(0)


@pytest.mark.parametrize("seconds", [0.0, -1.0, 601.0, float("nan"), float("inf")])
def test_a_calm_that_never_ends_is_refused(seconds):
    with pytest.raises(MalformedFrame):
        decode_untrusted(encode(Calm(0, seconds), 0)[8:])


def test_a_goodbye_closes():
    one, two = greeted()
    one.outbox.put(Bye("enough"))
    assert two.receive(one.send(1 << 20, 0.0), 0.0) == [Bye("enough")]
    assert two.stage is Stage.CLOSED


def test_control_goes_first_and_feeds_take_turns():
    box = Outbox()
    for feed in (1, 2):
        for n in range(2):
            box.put_feed(Batch(feed, n, n + 1, "d", b"x", more=False))
    box.put(Alive(0))
    order, data = [], box.take(1 << 20)
    while data:
        size = int.from_bytes(data[:4])
        order.append(decode_untrusted(data[8 : 4 + size]))
        data = data[4 + size :]
    assert [getattr(frame, "feed", 0) for frame in order] == [0, 1, 2, 1, 2]


def test_a_large_batch_travels_in_fragments_and_others_overtake_it():
    box, large = Outbox(), bytes(range(256)) * 1024
    box.put_feed(Batch(1, 0, 1, "d", large, more=False))
    box.put_feed(Frontier(2, 0, 1))
    got, data = [], box.take(1 << 30)
    while data:
        size = int.from_bytes(data[:4])
        assert size <= frames.FRAGMENT + 100
        got.append(decode_untrusted(data[8 : 4 + size]))
        data = data[4 + size :]
    assert isinstance(got[1], Frontier)
    parts = [frame for frame in got if isinstance(frame, Batch)]
    assert b"".join(part.data for part in parts) == large
    assert [part.more for part in parts] == [True, True, True, False]


def test_a_length_beyond_the_limit_is_refused_before_it_is_read():
    connection = Connection(1, 0.0)
    with pytest.raises(MalformedFrame, match="bytes long"):
        connection.receive((1 << 31).to_bytes(4) + bytes(4), 0.0)


@pytest.mark.parametrize("frame", [Frontier(1, 5, 5), Gap(1, 7, 3), Frontier(-1, 0, 1), Alive(1 << 62)])
def test_numbers_that_make_no_sense_are_refused(frame):
    with pytest.raises(MalformedFrame):
        decode_untrusted(encode(frame, 0)[8:])


@given(st.binary(max_size=400))
def test_random_bytes_do_nothing_but_end_the_connection(data):
    connection = Connection(1, 0.0)
    try:
        heard = connection.receive(data, 0.0)
    except WireError:
        heard = []
        assert connection.stage is Stage.CLOSED
    assert all(isinstance(frame, Hello) for frame in heard)


@given(st.binary(max_size=200), st.integers(0, 199), st.integers(0, 255))
def test_a_damaged_frame_is_a_frame_or_malformed(body, place, value):
    good = bytearray(encode(Answer(3, ok=True, body=body), 0)[8:])
    good[place % len(good)] = value
    with contextlib.suppress(MalformedFrame):
        assert decode_untrusted(bytes(good)).__struct_fields__


def test_frames_that_say_that_there_is_nothing_do_not_pile_up():
    box = Outbox()
    for n in range(1000):
        box.put_feed(Frontier(1, n, n + 1))
        box.put_feed(Frontier(2, 5 * n, 5 * n + 1))  # a jump: what is between was said otherwise
    box.put_feed(Batch(1, 1000, 1001, "d", b"x", more=False))
    box.put_feed(Frontier(1, 1001, 1002))
    assert box.waiting == 1000 + 3
    data = box.take(1 << 20)
    assert decode_untrusted(data[8 : 4 + int.from_bytes(data[:4])]) == Frontier(1, 0, 1000)


def test_who_does_not_read_what_it_is_told_is_cut_off():
    one, _ = greeted()
    for _ in range(5):
        one.outbox.put(Answer(1, ok=True, body=bytes(15 << 20)))
    with pytest.raises(BrokenConnection, match="does not read"):
        one.tick(0.5)
    assert one.stage is Stage.CLOSED

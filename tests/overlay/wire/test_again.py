"""Data that crossed a connection before is named instead of sent, and arrives as if it had been sent."""

import random
from functools import partial

import pytest

from overlay.payloads.crossing import LEAST, Crossing, HashedCrossing
from overlay.wire import connection
from overlay.wire.connection import Connection, Stage
from overlay.wire.errors import MalformedFrame
from overlay.wire.frames import FRAGMENT, Again, Batch, Frontier, Hello, encode

EVERYTHING = 1 << 30


KINDS = {5: HashedCrossing, 6: Crossing}


def greeted(cap=1 << 20, version=6, monkeypatch=None):
    """Two ends that speak a version."""
    if version < 6:
        monkeypatch.setattr(connection, "VERSIONS", (1, version))
    made = {"make_crossing": partial(Crossing, cap), "make_hashed": partial(HashedCrossing, cap)}
    one, two = (Connection(n, 0.0, **made) for n in (1, 2))
    one.receive(two.send(EVERYTHING, 0.0), 0.0)
    two.receive(one.send(EVERYTHING, 0.0), 0.0)
    assert type(one._crossed) is type(two._crossed) is KINDS[version]
    return one, two


def batch(feed, number, data):
    return Batch(feed, number - 1, number, "d", data, more=False)


def whole(frames):
    """Put fragments together, feed by feed."""
    parts, found = {}, []
    for frame in frames:
        if isinstance(frame, Batch):
            parts.setdefault(frame.feed, []).append(frame.data)
            if not frame.more:
                found.append((frame.feed, frame.number, b"".join(parts.pop(frame.feed))))
    assert not parts
    return sorted(found)


@pytest.mark.parametrize("version", KINDS)
@pytest.mark.parametrize("seed", range(40))
def test_whatever_repeats_and_is_forgotten_everything_arrives_as_it_was(seed, version, monkeypatch):
    rng = random.Random(seed)
    cap = rng.choice([0, 300, 2_000, 20_000, 200_000])
    one, two = greeted(cap, version, monkeypatch)
    sizes = [10, LEAST - 1, LEAST, 1_000, 5_000, FRAGMENT, FRAGMENT + 1, 3 * FRAGMENT]
    contents = [rng.randbytes(rng.choice(sizes)) for _ in range(12)]
    for _ in range(30):
        for here, there in ((one, two), (two, one)):
            sent = [
                batch(feed, number, rng.choice(contents))
                for feed in range(rng.randrange(6))
                for number in range(1, rng.randrange(2, 5))
            ]
            for frame in sent:
                here.outbox.put_feed(frame)
            here.outbox.put_feed(Frontier(99, 0, 1))
            data, got = here.send(EVERYTHING, 0.0), []
            while data:
                some = rng.randrange(1, 100_000)
                got += there.receive(data[:some], 0.0)
                data = data[some:]
            assert whole(got) == sorted((frame.feed, frame.number, frame.data) for frame in sent)
            assert there._crossed.size_bytes == here.outbox.crossed.size_bytes <= cap


def test_content_crosses_once_while_the_cap_allows():
    one, two = greeted(cap=10_000)
    data = bytes(range(256)) * 20
    lengths = []
    for number in (1, 2, 3):
        one.outbox.put_feed(batch(number, number, data))
        sent = one.send(EVERYTHING, 0.0)
        lengths.append(len(sent))
        assert [frame.data for frame in two.receive(sent, 0.0)] == [data]
    assert lengths[0] > len(data)
    assert max(lengths[1:]) < 100
    assert one.outbox.saved_bytes == 2 * (len(data) - 8)


def test_a_new_connection_begins_with_nothing():
    data = b"x" * 1_000
    for _ in range(2):
        one, two = greeted()
        one.outbox.put_feed(batch(1, 1, data))
        sent = one.send(EVERYTHING, 0.0)
        assert len(sent) > len(data)
        assert [frame.data for frame in two.receive(sent, 0.0)] == [data]


def test_who_does_not_know_names_is_sent_everything():
    one = Connection(1, 0.0)
    one.send(EVERYTHING, 0.0)
    one.receive(encode(Hello(1, 3, 5, 0), 0), 0.0)
    for number in (1, 2):
        one.outbox.put_feed(batch(1, number, b"x" * 1_000))
        assert len(one.send(EVERYTHING, 0.0)) > 1_000


@pytest.mark.parametrize("version", KINDS)
@pytest.mark.parametrize("name", [b"", b"y" * 16, b"z" * 5_000, bytes(8), b"\0\0\0\0\0\0\0\1", b"\1"])
def test_data_that_never_crossed_cannot_be_named(name, version, monkeypatch):
    one, two = greeted(version=version, monkeypatch=monkeypatch)
    with pytest.raises(MalformedFrame, match="did not cross"):
        two.receive(encode(Again(1, 0, 1, "d", name, more=False), 1), 0.0)
    assert two.stage is Stage.CLOSED
    with pytest.raises(MalformedFrame, match="did not cross"):
        Connection(3, 0.0).receive(encode(Again(1, 0, 1, "d", name, more=False), 0), 0.0)
    assert one.stage is Stage.READY


def test_who_keeps_something_knows_it_by_content_as_long_as_it_is_kept():
    sender, kept = Crossing(2_000), []
    rng = random.Random(2)
    contents = [rng.randbytes(rng.choice([LEAST, 700, 1_999, 2_001])) for _ in range(8)]
    for _ in range(500):
        sender.sending(rng.choice(contents))
        kept.append(len(sender._kept))
        assert {sender._kept[count] for count in sender._counts.values()} == set(sender._counts)
        assert set(sender._kept.values()) == set(sender._counts)
    assert {1, 2} <= set(kept)

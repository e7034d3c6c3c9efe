"""Documents that nobody is waiting for come together; who waits gets each at once, and so does who feeds them."""

import math
import random

from overlay.wire.frames import Batch, Cancel, Credit, Open, Opened, Pace
from peer.hosting.configuration import Configuration, Input, encode
from peer.hosting.holding import HOLD_S
from peer.hosting.host import Host
from peer.hosting.results import DOCUMENTS
from tests.peer.hosting.test_catch_up import Source, document


def publish(source, now):
    source.documents.append(document(source.last))
    source.views.published(source.last, f"d{source.last}", source.documents[-1], now=now)


def numbers(source, feed):
    return [frame.number for frame in source.of(feed, Batch)]


def pace(source, feed, *, is_gentle):
    source.views.handle("m", Pace(feed, is_gentle))


def test_who_is_not_waiting_gets_documents_together_and_who_is_gets_each_at_once():
    source = Source([])
    gentle, waiting = source.open("/*{cont}"), source.open("/*{cont}")
    pace(source, gentle, is_gentle=True)
    seen = []
    for now in (10.0, 10.2, 10.4, 10.6, 10.65, 10.72, 11.5):
        publish(source, now)
        assert numbers(source, waiting) == [*range(1, source.last + 1)]
        seen.append(len(numbers(source, gentle)))
        assert not source.views.has_work
    assert seen == [1, 1, 3, 3, 3, 6, 7]
    assert [frame.data for frame in source.of(gentle)] == [frame.data for frame in source.of(waiting)]


def test_the_last_document_is_sent_in_time():
    source = Source([])
    feed = source.open("/*{cont}")
    pace(source, feed, is_gentle=True)
    publish(source, 5.0)
    assert source.views.held_until == math.inf
    publish(source, 5.2)
    assert source.views.held_until == 5.2 + HOLD_S
    source.views.pump(5.25)
    assert numbers(source, feed) == [1]
    source.views.pump(source.views.held_until)
    assert (numbers(source, feed), source.views.held_until) == ([1, 2], math.inf)


def test_who_begins_to_wait_gets_what_is_held_and_an_entry_that_is_no_document_is_held_with_it():
    source = Source([])
    feed = source.open("/*{cont}")
    pace(source, feed, is_gentle=True)
    publish(source, 5.0)
    publish(source, 5.05)
    source.documents.append(None)
    source.views.published(3, "", None, now=5.06)
    assert source.covered(feed) == 1
    source.views.handle("m", Credit(feed, 1 << 30, 0))
    assert source.covered(feed) == 1
    pace(source, feed, is_gentle=False)
    assert (numbers(source, feed), source.covered(feed)) == ([1, 2], 3)
    publish(source, 5.1)
    assert numbers(source, feed) == [1, 2, 4]


class Machine:
    """A host whose relay is fed by another machine; what it says is remembered."""

    def __init__(self):
        self.sent = []
        self.host = Host("m0", "source", self, random.Random(1))
        configuration = Configuration(
            "r", "m0", DOCUMENTS.text, 1, 1, 0, 0, 9, ((Input("up", "m1", DOCUMENTS.text),),)
        )
        self.host.install(configuration, encode(configuration), 0.0)
        [self.feed] = [frame.feed for _, frame in self.sent]

    def send(self, site, frame):
        self.sent.append((site, frame))
        return True

    def forbids(self, site, asked):
        return ""

    def paces(self):
        return [frame.is_gentle for _, frame in self.sent if isinstance(frame, Pace) and frame.feed == self.feed]


def test_a_machine_waits_while_anybody_does_whom_its_relay_feeds():

    machine = Machine()
    machine.host.keep_pace(is_awaited=False)
    assert machine.paces() == []  # the feed is not open yet
    machine.host.handle("m1", Opened(machine.feed, 0, 1), 0.0)
    machine.host.keep_pace(is_awaited=True)
    assert machine.paces() == []  # that is how feeds begin
    machine.host.keep_pace(is_awaited=False)
    machine.host.keep_pace(is_awaited=False)
    assert machine.paces() == [True]
    machine.host.handle("m2", Open(7, "r", "d", DOCUMENTS.text, b"", b"", 1, 0, 1000), 0.0)
    machine.host.keep_pace()
    assert machine.paces() == [True, False]
    machine.host.handle("m2", Pace(7, is_gentle=True), 0.0)
    assert machine.paces() == [True, False, True]
    machine.host.keep_pace(is_awaited=True)
    assert machine.paces() == [True, False, True, False]
    machine.host.keep_pace(is_awaited=False)
    machine.host.handle("m2", Pace(7, is_gentle=False), 0.0)
    machine.host.handle("m2", Cancel(7), 0.0)
    machine.host.keep_pace()
    assert machine.paces() == [True, False, True, False, True, False, True]

"""The rules of a host, one by one: what it grants, refuses, tries and gives up, frame by frame."""

import random

import numpy as np
import pytest

from overlay.feeds.items import Item, Kind
from overlay.wire.frames import Batch, Cancel, Credit, Ended, Frontier, Open, Opened
from peer.hosting.configuration import Configuration, Input, encode
from peer.hosting.feeding import FeedingTimes
from peer.hosting.history import History, Stretch
from peer.hosting.host import Host
from peer.hosting.outlet import Outlet
from peer.hosting.results import Joining, from_document, whole_link
from rewriting import at_once, columns
from rewriting.columns import ColumnLimits
from rewriting.columns import encode as encode_columns
from xmlmatch import Document, Matcher, Pattern, match

TEXT = "//a{cont}"
PATTERN = Pattern.parse(TEXT)
WINDOW = 1000
ONE, TWO = Input("u1", "m1", TEXT), Input("u2", "m2", TEXT)


def results(text="x", pattern=PATTERN):
    """Return what the pattern has on a small document, as bytes."""
    document = Document.parse(f"<r><a><b>{text}</b></a></r>".encode())
    return from_document(whole_link(pattern), Matcher([pattern]).match(document), 0, document)


class Machine:
    """A host whose port remembers; every other machine is connected."""

    def __init__(self, *choices, frontier=10, text=TEXT):
        self.sent, self.stored_upto = [], []
        times = FeedingTimes(open_s=3.0, rest_s=2.0, longest_rest_s=2.0)
        self.host = Host("m0", "source", self, random.Random(1), times, window=WINDOW)
        self.install(*choices, frontier=frontier, text=text)

    def install(self, *choices, frontier=10, revision=1, text=TEXT, now=0.0):
        found = Configuration("s", "m0", text, 1, 1, revision, 0, 1, choices)
        self.host.install(found, encode(found), now, frontier=frontier, lowest=0)

    @property
    def hosted(self):
        return self.host.subscriptions["s"]

    def send(self, site, frame):
        self.sent.append((site, frame))
        return True

    def store(self, subscription, items, upto):
        self.stored_upto.append(upto)

    def stored(self, subscription, after, upto, most_bytes):
        return Stretch([], upto)

    def forbids(self, site, asked):
        return ""

    def take(self, kind, site=None):
        """Take out the frames of a kind that were sent, to one machine or to any."""
        found = [(to, f) for to, f in self.sent if isinstance(f, kind) and site in (None, to)]
        self.sent = [one for one in self.sent if one not in found]
        return [frame for _, frame in found]

    def opened(self, site, now=0.0, after=None):
        """Let a machine answer the last request to open a feed from it; return the feed's number."""
        (asked,) = self.take(Open, site)
        self.host.handle(site, Opened(asked.feed, asked.after if after is None else after, 0), now)
        return asked.feed


def asking(downstream="d", feed=7, after=10, generation=1):
    return Open(feed, "s", downstream, TEXT, b"", b"", generation, after, WINDOW)


def test_who_has_nothing_is_fed_as_soon_as_the_source_is_back_however_long_it_rests():
    machine = Machine()
    machine.hosted.feeding.times = FeedingTimes(open_s=3.0, rest_s=100.0, longest_rest_s=1000.0)
    machine.take(Open)
    machine.host.site_lost("source", 1.0)
    machine.host.tick(4.0)
    assert machine.take(Open) == []
    machine.host.site_up("m9", 5.0)
    machine.host.tick(5.0)
    assert machine.take(Open) == []
    machine.host.site_up("source", 6.0)
    machine.host.tick(6.0)
    assert len(machine.take(Open, "source")) == 1


def test_who_is_fed_by_another_lets_the_first_choice_rest_though_it_is_back():
    machine = Machine((ONE,))
    machine.hosted.feeding.times = FeedingTimes(open_s=3.0, rest_s=100.0, longest_rest_s=1000.0)
    machine.take(Open)
    machine.host.site_lost("m1", 1.0)
    machine.opened("source", 1.0)
    machine.host.site_up("m1", 2.0)
    machine.host.tick(2.0)
    assert machine.take(Open) == []


def test_a_feed_of_another_generation_of_the_log_is_not_opened():
    machine = Machine()
    machine.host.handle("m9", asking(feed=6, generation=0), 0.0)
    assert [frame.why for frame in machine.take(Ended, "m9")] == ["lost"]
    machine.host.handle("m9", asking(feed=8, generation=2), 0.0)
    assert machine.take(Opened, "m9") == []  # it waits until that generation is known here
    machine.host.handle("m9", asking(feed=7, generation=1), 0.0)
    assert len(machine.take(Opened, "m9")) == 1


def test_credit_is_granted_when_results_are_on_disk_and_not_before():
    machine = Machine()
    feed = machine.opened("source")
    machine.host.handle("source", Batch(feed, 10, 11, "d", results("y" * WINDOW), more=False), 0.0)
    machine.host.tick(1.0)
    assert machine.stored_upto == [11]
    assert machine.take(Credit) == []
    machine.host.committed("s", 11)
    assert [frame.acknowledged for frame in machine.take(Credit, "source")] == [11]


def test_while_the_disk_is_full_credit_is_granted_but_nothing_acknowledged():
    machine = Machine()
    machine.host.is_full = True
    feed = machine.opened("source")
    machine.host.handle("source", Batch(feed, 10, 11, "d", results("y" * WINDOW), more=False), 0.0)
    assert [frame.acknowledged for frame in machine.take(Credit, "source")] == [10]


def test_a_subscription_that_was_withdrawn_opens_no_feed():
    machine = Machine()
    machine.host.handle("m9", asking("d", 7), 0.0)
    machine.host.withdraw("s", 0.0, 10)
    machine.sent.clear()
    machine.host.handle("m8", asking("e", 8), 0.0)
    assert [frame.why for frame in machine.take(Ended, "m8")] == ["gone"]
    assert "s" in machine.host.subscriptions  # it feeds on


def test_what_cannot_be_joined_is_asked_for_again_from_the_same_document_on():
    machine = Machine((Input("u1", "m1", "//*{cont}"),), text="//a{cont}")
    feed = machine.opened("m1")
    machine.host.handle("m1", Batch(feed, 10, 11, "d", b"\xc1 this is no result", more=False), 0.0)
    assert machine.stored_upto == []
    assert [asked.after for asked in machine.take(Open, "source")] == [10]
    assert machine.hosted.feeding.frontier == machine.hosted.frontier == 10


def test_a_machine_that_is_lost_is_fed_no_more_and_leaves_its_place_to_others():
    machine = Machine()
    feed = machine.opened("source")
    machine.host.handle("m9", asking("d", 7), 0.0)
    machine.host.handle("m8", asking("e", 8), 0.0)
    assert [frame.why for frame in machine.take(Ended, "m8")] == ["busy"]
    machine.host.site_lost("m9", 0.0)
    machine.sent.clear()
    machine.host.handle("source", Batch(feed, 10, 11, "d", results(), more=False), 0.0)
    assert [site for site, _ in machine.sent] == []
    machine.host.handle("m8", asking("e", 8), 0.0)
    assert len(machine.take(Opened, "m8")) == 1


def test_frames_of_a_feed_count_only_from_the_machine_that_was_asked():
    machine = Machine()
    (asked,) = machine.take(Open, "source")
    machine.host.handle("m9", Opened(asked.feed, 10, 0), 0.0)
    machine.host.handle("m9", Frontier(asked.feed, 10, 99), 0.0)
    machine.host.handle("m9", Ended(asked.feed, "gone", ""), 0.0)
    assert machine.stored_upto == []
    machine.host.handle("source", Opened(asked.feed, 10, 0), 0.0)
    machine.host.handle("source", Frontier(asked.feed, 10, 12), 0.0)
    assert machine.stored_upto == [12]


def outlet(frontier=10, lowest=0, most=1, **more):
    history = History(frontier, lowest, lambda after, upto, size: Stretch([], upto))
    return Outlet(PATTERN, history, most, "m0", **more)


def test_an_outlet_feeds_no_more_machines_than_its_limit_and_counts_who_moves_once():
    box = outlet(most=1)
    assert isinstance(box.open("m1", asking("d", 1))[0], Opened)
    assert isinstance(box.open("m2", asking("e", 2))[0], Ended)
    assert isinstance(box.open("m1", asking("d", 3))[0], Opened)
    assert isinstance(box.open("m0", asking("own", 4))[0], Opened)
    assert box.crossing == {"d"}


@pytest.mark.parametrize(("after", "opened"), [(3, 5), (5, 5), (7, 7)])
def test_a_feed_is_opened_no_lower_than_what_can_be_served(after, opened):
    box = outlet(frontier=10, lowest=5)
    assert box.open("m1", asking("d", 1, after=after)) == [Opened(1, opened, 0)]
    assert [frame for _, frame in box.pump()] == [Frontier(1, opened, 10)]


@pytest.mark.parametrize("is_last_resort", [False, True])
def test_who_needs_what_is_stored_no_more_is_told_so(is_last_resort):
    box = outlet(most=1, is_last_resort=is_last_resort)
    box.open("m1", asking("d", 1, after=3))
    box.history.lowest = 5
    told = [frame for _, frame in box.pump()]
    expected = Frontier(1, 3, 10) if is_last_resort else Ended(1, "lost", "that is not stored here any more")
    assert told == [expected]
    assert bool(box.feeds) is is_last_resort


def test_what_reading_finds_dropped_is_no_gap_for_others_may_have_it():
    def stored(after, upto, _):
        box.history.lowest = 5  # the store has dropped it, and so far nobody has said so
        return Stretch([Item(5, Kind.GAP, after=after)], 5)

    box = Outlet(PATTERN, History(10, 0, stored), 1, "m0")
    box.open("m1", asking("d", 1, after=3))
    assert [frame for _, frame in box.pump()] == [Ended(1, "lost", "that is not stored here any more")]


def test_a_sender_that_lacks_what_is_owed_is_replaced():
    machine = Machine((ONE,))
    machine.opened("m1", after=50)
    assert [asked.after for asked in machine.take(Open, "source")] == [10]
    assert [cancel.feed for cancel in machine.take(Cancel, "m1")]


def test_a_sender_that_lacked_something_is_tried_again_when_that_is_no_longer_needed():
    machine = Machine((ONE,))
    machine.opened("m1", after=50)
    feed = machine.opened("source")
    machine.host.handle("source", Frontier(feed, 10, 20), 0.0)
    machine.host.tick(60.0)
    assert machine.take(Open, "m1") == []
    machine.host.handle("source", Frontier(feed, 20, 50), 60.0)
    machine.host.tick(61.0)
    assert [asked.after for asked in machine.take(Open, "m1")] == [50]


def test_results_stay_in_memory_until_they_are_stored():
    history = History(0, 0, lambda after, upto, size: Stretch([], upto), recent_bytes=1)
    items = [Item(n, Kind.RESULTS, b"0123456789") for n in range(1, 4)]
    history.add(items, 3)
    assert list(history.read(0, 1 << 20).items) == items
    history.stored_upto(2)
    assert history.recent_bytes == 10


@pytest.mark.parametrize(("number", "upto"), [(3, 5), (6, 5), (2, 2)])
def test_nothing_is_added_to_a_history_that_does_not_follow(number, upto):
    history = History(3, 0, lambda after, upto, size: Stretch([], upto))
    with pytest.raises(ValueError, match="is outside"):
        history.add([Item(number, Kind.RESULTS, b"x")], upto)
    with pytest.raises(ValueError, match="goes back from 3 to 2"):
        history.add([], 2)
    assert history.frontier == 3


def test_a_new_way_of_being_fed_takes_over_only_when_it_is_open_and_has_come_as_far():
    machine = Machine((ONE,))
    old = machine.opened("m1")
    machine.install((TWO,), revision=2)
    machine.host.handle("m1", Frontier(old, 10, 20), 0.0)
    assert machine.stored_upto == [20]  # the other is not even open
    new = machine.opened("m2")
    machine.host.handle("m2", Frontier(new, 10, 15), 0.0)
    machine.host.handle("m1", Frontier(old, 20, 21), 0.0)
    assert machine.stored_upto == [20, 21]
    assert machine.take(Cancel, "m1") == []
    machine.host.handle("m2", Frontier(new, 15, 30), 0.0)
    assert machine.stored_upto == [20, 21, 30]
    assert [cancel.feed for cancel in machine.take(Cancel, "m1")] == [old]


def test_a_way_with_two_machines_takes_over_when_both_are_open():
    text = "//a{cont}[b{val}]"
    pair = (Input("u1", "m1", "//a{cont}"), Input("u2", "m2", "//a[b{val}]"))
    Joining(Pattern.parse(text), tuple(Pattern.parse(one.pattern) for one in pair)).cuts()
    machine = Machine(text=text)
    old = machine.opened("source")
    machine.install(pair, revision=2, text=text)
    machine.opened("m1")
    machine.host.handle("source", Frontier(old, 10, 12), 0.0)
    assert machine.stored_upto == [12]
    assert machine.take(Cancel, "source") == []


def test_an_input_that_would_be_asked_for_nothing_is_not_fed_from():
    text = "//a[c]/b{val}"
    choice = (Input("u1", "m1", "//b{val}"), Input("u2", "m2", "//a[c]/b{cont}"))
    machine = Machine(choice, text=text)
    machine.opened("m2")
    assert machine.take(Open) == []
    assert machine.hosted.feeding.is_live
    machine.install(choice, revision=2, text=text)
    assert machine.take(Open) == []
    assert [one.subscription for one in machine.hosted.feeding.current.inputs] == ["u2"]


def test_a_join_that_gives_more_than_can_be_sent_is_an_error_and_the_next_document_comes(monkeypatch):
    text = "//a{cont}[b{val}]"
    inputs = Input("u1", "m1", "//a{cont}"), Input("u2", "m2", "//b{val}")
    joining = Joining(Pattern.parse(text), tuple(Pattern.parse(one.pattern) for one in inputs))
    machine = Machine(inputs, text=text)
    kept = []
    machine.store = lambda subscription, items, upto: kept.extend(items)
    feeds = [machine.opened(site) for site in ("m1", "m2")]
    for number, word in ((11, "x" * 30), (12, "y")):
        document = Document.parse(f"<r><a><b>{word}</b></a></r>".encode())
        for feed, site, link in zip(feeds, ("m1", "m2"), joining.rewriting.links, strict=True):
            data = encode_columns(link.send(match(link.view, document)))
            if number == 11 and site == "m2":
                limits = ColumnLimits(max_bytes=60)
                monkeypatch.setattr(columns, "LIMITS", limits)
                monkeypatch.setattr(at_once, "_LIMITS", np.array([*at_once._LIMITS[:4], limits.max_bytes]))
            machine.host.handle(site, Batch(feed, number - 1, number, "d", data, False), 0.0)
    assert [(item.number, item.kind) for item in kept] == [(11, Kind.ERROR), (12, Kind.RESULTS)]
    assert b"the most is 60" in kept[0].data


@pytest.mark.parametrize("choices", [(), ((TWO,),)])
def test_a_new_first_choice_that_failed_is_tried_again_while_the_old_one_feeds(choices):
    machine = Machine((ONE,))
    machine.opened("m1")
    machine.install(*choices, revision=2)
    site = "m2" if choices else "source"
    (asked,) = machine.take(Open, site)
    machine.host.handle(site, Ended(asked.feed, "busy", ""), 0.0)
    assert machine.hosted.feeding.is_live
    machine.host.tick(10.0)
    machine.opened(site, now=10.0)
    machine.host.tick(10.1)
    assert machine.hosted.feeding.is_as_configured

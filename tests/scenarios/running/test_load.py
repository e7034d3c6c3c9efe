"""Full load: as much is under way as may be and no more, and whom a fault has hit holds nobody up."""

import threading

import pytest

from peer.errors import TryAgain
from scenarios.hosts.links import Link
from scenarios.running.link_faults import LinkFaults
from scenarios.running.load import FullLoad
from scenarios.running.publishing import Publishing
from scenarios.running.story import Story
from scenarios.running.truth import Owed, Published
from xmlmatch import Pattern

AHEAD = 3


class Stage:
    """Hosts that are as far as is said, a clock that goes on by itself, and a source that takes everything."""

    def __init__(self, *hosts):
        self.hosts, self.troubles, self.upto, self.silent, self.now = list(hosts), {}, {}, set(), 0.0
        self.asked = []
        self.story = Story()
        for host in hosts:
            self.owe(f"s-{host}", host)
        self.links = LinkFaults(["source", *hosts], Link(), {})
        self.load = FullLoad(self.story, self, self.links, AHEAD, clock=self.clock)
        self.due = self.load.documents(iter(lambda: b"<a/>", None), 1e9, threading.Event())

    def owe(self, name, host, end=None):
        self.story.owed[name] = Owed(name, host, Pattern.parse("//a{val}"), 0, end)
        self.upto[name] = 0

    def clock(self):
        self.now += 1.0
        return self.now

    def trouble(self, name):
        return self.troubles.get(name, "")

    def many(self, host, do, patience_s):
        self.asked.append(host)
        if host in self.silent:
            raise TryAgain("silent")
        own = [name for name, one in self.story.owed.items() if one.host == host]
        return [{"subscription": name, "committed": self.upto.get(name, 0)} for name in [*own, "relay"]]

    def publish(self):
        next(self.due)
        self.story.documents.append(Published(10 * len(self.story.documents) + 10, 0.0, b"<a/>"))

    def fill(self):
        """Publish as long as there is room; return how many were."""
        done = 0
        while self.load.has_room():
            self.publish()
            done += 1
            assert done < 100
        return done


def test_no_more_is_under_way_than_may_be_and_the_slowest_counts():
    stage = Stage("h00", "h01")
    assert stage.fill() == AHEAD
    stage.upto |= {"s-h00": 30, "s-h01": 10}
    assert stage.fill() == 1
    stage.upto["s-h01"] = 40
    stage.upto["s-h00"] = 39  # numbers of documents are those of a log, which has others in between
    assert stage.fill() == AHEAD - 1


def test_what_is_on_its_way_to_the_source_counts():
    stage = Stage("h00")
    for _ in range(AHEAD):
        next(stage.due)
    assert not stage.load.has_room()


@pytest.mark.parametrize("how", ["away", "frozen", "cut"])
def test_who_is_hit_by_a_fault_holds_nobody_up_until_it_has_caught_up(how):
    stage = Stage("h00", "h01")
    assert stage.fill() == AHEAD
    if how == "cut":
        stage.links.cut(1, ["h01"])
    else:
        stage.troubles["h01"] = how
    stage.upto["s-h00"] = 30
    assert stage.fill() == AHEAD
    stage.troubles.clear()
    stage.links.heal()
    stage.upto["s-h00"] = 60
    assert stage.fill() == AHEAD  # it is back, and far behind
    stage.upto |= {"s-h00": 90, "s-h01": 80}
    assert stage.fill() == AHEAD - 1  # it has caught up, and counts
    stage.upto["s-h00"] = 110
    assert stage.fill() == 0


def test_nothing_is_published_while_everybody_is_hit():
    stage = Stage("h00")
    stage.troubles["h00"] = "away"
    assert stage.fill() == 0
    stage.troubles.clear()
    assert stage.fill() == AHEAD


def test_who_does_not_answer_is_where_it_was():
    stage = Stage("h00", "h01")
    assert stage.fill() == AHEAD
    stage.upto |= {"s-h00": 30, "s-h01": 30}
    stage.silent.add("h01")
    assert stage.fill() == 0
    stage.silent.clear()
    assert stage.fill() == AHEAD


def test_subscriptions_that_end_and_relays_hold_nobody_up():
    stage = Stage("h00")
    stage.owe("ended", "h00", end=20)
    assert stage.fill() == AHEAD
    stage.upto["s-h00"] = 30
    assert stage.fill() == AHEAD


def test_a_host_is_not_asked_again_at_once():
    stage = Stage("h00")
    stage.fill()
    stage.load._clock = lambda: stage.now
    stage.asked.clear()
    for _ in range(5):
        assert not stage.load.has_room()
    assert stage.asked == []
    stage.now += 1
    stage.load.has_room()
    assert stage.asked == ["h00"]


def test_a_load_ends_in_time_though_there_is_no_room_and_says_how_long_it_waited():
    stage = Stage("h00")
    due = stage.load.documents(iter(lambda: b"<a/>", None), 100.0, threading.Event())
    given = []
    for _ in due:
        stage.story.documents.append(Published(10 * len(given) + 10, 0.0, b"<a/>"))
        given.append(stage.now)
    assert len(given) == AHEAD
    assert stage.now >= 100
    assert 0 < stage.story.held_back_s <= stage.now


def test_what_several_publish_at_once_is_noted_in_the_order_of_its_numbers():
    story, gate = Story(began=100.0), threading.Barrier(2)

    def publish(name, body):
        gate.wait(30)  # two are under way at any time
        return {"document-0": 9, "document-1": 7, "document-2": 5, "document-3": 6}[name]

    publishing = Publishing(story, publish)
    publishing.begin(iter([(float(i), b"%d" % i) for i in range(4)]), 0.0, 2)
    publishing.wait(60)
    assert not publishing.is_under_way
    assert publishing.failed == []
    assert [(one.number, one.due, one.body) for one in story.documents] == [
        (5, 102.0, b"2"), (6, 103.0, b"3"), (7, 101.0, b"1"), (9, 100.0, b"0")
    ]  # fmt: skip


def test_what_fails_in_publishing_is_kept_and_ends_it():
    def publish(name, body):
        raise TryAgain("no source")

    publishing = Publishing(Story(), publish)
    publishing.begin(iter([(0.0, b"")] * 100), 0.0, 1)
    publishing.wait(60)
    assert [str(one) for one in publishing.failed] == ["no source"]

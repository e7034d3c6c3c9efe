"""Who is up, who may be asked, and what adds up over several starts of a daemon."""

import pytest

from peer.errors import TryAgain
from scenarios.running.daemons import Counted, Daemons


class Told:
    """Stands for a network: what daemons say is written down, and what is done to them is taken note of."""

    def __init__(self, **feeds):
        self.feeds, self.done, self.status = feeds, [], {}

    def many(self, name, do, patience_s):
        if name not in self.feeds:
            raise TryAgain("silent")
        return [{"crossing": crossing, "feeds": every} for crossing, every in self.feeds[name]]

    def one(self, name, do, patience_s, lag):
        if name not in self.status:
            raise TryAgain("silent")
        return self.status[name]

    def __getattr__(self, do):
        return lambda *names: self.done.append((do, *names[:1]))


def test_the_largest_feeder_is_who_feeds_most_on_other_machines_and_another_one_the_next_time():
    network = Told(h00=[(1, 90)], h01=[(2, 2), (3, 3)], h02=[(4, 4)])
    daemons = Daemons(network, ["h00", "h01", "h02", "h03"])
    assert [daemons.largest_feeder() for _ in range(4)] == ["h01", "h02", "h00", "h01"]


def test_who_is_frozen_or_away_is_nobodys_largest_feeder():
    daemons = Daemons(Told(h00=[(1, 1)], h01=[(2, 2)], h02=[(3, 3)]), ["h00", "h01", "h02"])
    assert daemons.freeze("h02", 1) == daemons.end("h01", 2, at_once=True) == ""
    assert daemons.up == ["h00"]
    assert daemons.largest_feeder() == "h00"
    daemons.end("h00", 3, at_once=False)
    assert daemons.largest_feeder() is None


def test_counts_of_all_starts_are_added_up_and_those_before_a_freeze_survive_a_kill():
    network = Told()
    daemons = Daemons(network, ["h00", "h01"])
    network.status = {"h00": {"bytes_sent": 100, "failovers": 2}, "h01": {"bytes_sent": 7, "failovers": 0}}
    daemons.freeze("h01", 0)
    network.status["h01"] = {"bytes_sent": 9999, "failovers": 9}  # frozen, it is not asked
    daemons.end("h01", 1, at_once=True)
    daemons.end("h00", 2, at_once=False)
    daemons.start("h00")
    network.status["h00"] = {"bytes_sent": 30, "failovers": 1}
    daemons.count("h00")
    assert daemons.counted() == {"h00": Counted(130, 3), "h01": Counted(7, 0)}


@pytest.mark.parametrize(("undo", "done"), [(1, "h00 is away"), (3, "")])
def test_what_was_done_later_is_not_undone_by_the_end_of_something_earlier(undo, done):
    daemons = Daemons(Told(), ["h00"])
    daemons.end("h00", 1, at_once=True)
    daemons.start("h00")
    daemons.end("h00", 3, at_once=True)
    assert daemons.start("h00", undo) == done


def test_everybody_is_brought_back_the_source_first():
    network = Told()
    daemons = Daemons(network, ["h00", "h01", "h02"])
    daemons.end("h00", 1, at_once=True)
    daemons.end("source", 2, at_once=True)
    daemons.freeze("h02", 3)
    network.done.clear()
    daemons.bring_back()
    assert [do for do, *_ in network.done] == ["signal", "start_source", "start_peer"]
    assert daemons.up == ["h00", "h01", "h02"]

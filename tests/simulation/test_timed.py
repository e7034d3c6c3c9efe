"""Machines in virtual time: what comes when follows from links, the disk, and how long work takes."""

import pytest

from peer.hosting.configuration import Configuration, Input
from peer.hosting.results import from_document, whole_link
from planner.problem import MOST_FEEDS
from scenarios.hosts.links import Link, Links
from scenarios.simulation.agenda import Agenda
from scenarios.simulation.timed import COMMIT_S, Timed
from xmlmatch import Document, Matcher, Pattern

VIEW, QUERY = "//a{cont}", "//a{id}"
BODY = b"<r><a><b>1</b></a><a/></r>"


def network(pace):
    def of(name, site, text, *inputs):
        choices = (tuple(inputs),) if inputs else ()
        return Configuration(name, site, text, 1, 1, 1, 0, MOST_FEEDS, choices)

    links = Links(Link(40.0))
    links.put("source", "h0", Link(100.0))
    timed = Timed(Agenda(1), links, pace=pace)
    timed.install([of("s0", "h0", VIEW), of("s1", "h1", QUERY, Input("s0", "h0", VIEW))])
    timed.agenda.run(10.0)
    timed.publish(BODY)
    timed.agenda.run(20.0)
    return timed


def test_without_work_only_links_and_the_disk_take_time():
    at = {name: when for name, upto, when in network(pace=0.0).safe if upto == 1}
    assert at == {"s0": pytest.approx(10.05 + COMMIT_S), "s1": pytest.approx(10.07 + COMMIT_S)}


def test_work_takes_time_and_results_are_those_of_direct_matching():
    timed = network(pace=50.0)
    at = {name: when for name, upto, when in timed.safe if upto == 1}
    assert at["s0"] > 10.05 + COMMIT_S
    assert at["s1"] > 10.07 + COMMIT_S
    assert timed.peers["h1"].busy_s > 0
    document, right = Document.parse(BODY), {}
    for name, text in (("s0", VIEW), ("s1", QUERY)):
        pattern = Pattern.parse(text)
        right[name] = from_document(whole_link(pattern), Matcher([pattern]).match(document), 0, document)
    assert {name: item.data for _, name, item in timed.made} == right

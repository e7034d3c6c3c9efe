"""Random subscriptions, documents and configurations that follow the feeding order."""

import random

from peer.hosting.configuration import Configuration, Input
from peer.hosting.results import decode_whole
from rewriting import EmbeddingGraph, rewritings
from scenarios.small_documents import PATTERNS
from tests.peer.hosting.simulation import Faults
from xmlmatch import Document, Pattern, match


class Workload:
    """Subscriptions on machines, and every way to feed each from the others."""

    def __init__(self, seed, machines, count):
        self.rng = random.Random(seed)
        self.names = [f"s{i}" for i in range(count)]
        self.patterns = [Pattern.parse(self.rng.choice(PATTERNS)) for _ in range(count)]
        self.sites = [self.rng.choice(machines) for _ in range(count)]
        self.graph = EmbeddingGraph.build(self.patterns)
        self.ways = [self._ways(i) for i in range(count)]
        self.revision = 0

    def _ways(self, i):
        own = self.patterns[i]
        able = {self.graph.pattern(n) for n in self.graph.feeders_of(self.graph.number(own)).tolist()}
        ways = [(j,) for j in range(i) if self.patterns[j] == own]
        for rewriting in rewritings(own, sorted(able, key=str), 4):
            places = [[j for j, p in enumerate(self.patterns) if p == view] for view in rewriting.views]
            ways.append(tuple(self.rng.choice(one) for one in places))
        return ways

    def configuration(self, i, start=0):
        """Draw a configuration: a few ways in random order."""
        self.revision += 1
        ways = self.rng.sample(self.ways[i], min(len(self.ways[i]), self.rng.randint(0, 3)))
        choices = tuple(
            tuple(Input(self.names[j], self.sites[j], self.patterns[j].text) for j in way) for way in ways
        )
        text = self.patterns[i].text
        return Configuration(self.names[i], self.sites[i], text, 1, 1, self.revision, start, 3, choices)

    def install(self, network, i):
        network.machines[self.sites[i]].install(self.configuration(i))

    def wrong(self, network, i, start=0, upto=None):
        """Say what is wrong with what arrived for a subscription, up to a document; empty if nothing is."""
        found, frontier = network.results(self.sites[i], self.names[i])
        log = network.source.log
        if frontier < (log.last if upto is None else upto):
            return f"{self.names[i]} knows {frontier} of {log.last}"
        start = max(start, network.machines[self.sites[i]].lowest.get(self.names[i], 0))
        for number, body in enumerate(log.entries[start:upto], start + 1):
            rows = [] if body is None else list(match(self.patterns[i], Document.parse(body)).rows())
            got = found.get(number, b"")
            if not isinstance(got, bytes):
                return f"{self.names[i]} has {got} for {number}"
            mine = list(decode_whole(self.patterns[i], got).rows()) if got else []
            if mine != rows:
                return f"{self.names[i]} {self.patterns[i]} has {mine} for {number}, not {rows}"
        return ""


def wrongs(network, work):
    """List what is wrong with what arrived."""
    return [reason for i in range(len(work.names)) if (reason := work.wrong(network, i))]


def settle(network, work, seconds=60):
    """Let everything come to rest on a network without faults."""
    network.faults = Faults()
    for name in network.machines:
        if network.machines[name].host is None:
            network.restart(name)
    network.rest(lambda: not wrongs(network, work), seconds)

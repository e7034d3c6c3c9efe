"""Machines in virtual time: real hosts and connections on a network that delays, loses, repeats and reorders.

Frames travel one by one. A machine's disk keeps what was committed; a crash loses the rest. Everything follows
from the seed.
"""

import heapq
import random
from dataclasses import dataclass, field

from overlay.feeds.items import Kind
from overlay.wire.connection import Connection, Patience, Stage
from overlay.wire.errors import WireError
from overlay.wire.frames import Batch, Cancel, Credit, Ended, Failed, Frontier, Gap, Level, Open, Opened
from peer.hosting.configuration import decode_untrusted, encode
from peer.hosting.feeding import FeedingTimes
from peer.hosting.history import Stretch
from peer.hosting.host import Host
from peer.hosting.source_views import Body, SourceViews

FROM_SENDER = (Opened, Batch, Frontier, Failed, Gap, Ended, Level)
SOURCE = "source"
WINDOW = 1 << 20
TIMES = FeedingTimes(open_s=2.0, rest_s=1.0, longest_rest_s=8.0)


@dataclass
class Faults:
    """How often a frame is lost, repeated or overtaken, and how long it takes."""

    lose: float = 0.0
    repeat: float = 0.0
    overtake: float = 0.0
    delay_s: float = 0.02


@dataclass
class Link:
    """Two ends of a connection, by machine."""

    ends: dict[str, Connection]
    is_up: dict[str, bool] = field(default_factory=dict)
    is_cut: bool = False

    def other(self, name):
        return next(end for end in self.ends if end != name)


class MemoryLog:
    """The source's log: durable at once."""

    generation = 1

    def __init__(self):
        self.entries = []
        self.lowest = 0

    @property
    def last(self):
        return len(self.entries)

    def bodies(self, after, upto, most_bytes):
        found, size = [], 0
        for number in range(after + 1, upto + 1):
            body = self.entries[number - 1]
            if body is not None:
                found.append(Body(number, f"d{number}", body))
                size += len(body)
                if size >= most_bytes:
                    break
        return found


class Machine:
    """A peer: its host, and a disk."""

    def __init__(self, network, name):
        self.network, self.name = network, name
        self.disk = {}  # subscription: (items by number, frontier)
        self.installed = {}
        self.lowest = {}
        self.pending = []
        self.host = None
        self.start()

    def start(self):
        self.host = Host(self.name, SOURCE, self, self.network.rng, TIMES, window=WINDOW)
        for configuration in self.installed.values():
            _, frontier = self.disk.get(configuration.subscription, ({}, None))
            self.host.install(
                configuration, encode(configuration), self.network.now, frontier=frontier,
                lowest=self.lowest.get(configuration.subscription),
            )  # fmt: skip

    def install(self, configuration):
        self.installed[configuration.subscription] = configuration
        if self.host is not None:
            self.host.install(configuration, encode(configuration), self.network.now)

    def forget(self, upto):
        """Drop stored results up to a document, as retention would."""
        for name, (items, frontier) in self.disk.items():
            self.disk[name] = {n: item for n, item in items.items() if n > upto}, frontier
            self.lowest[name] = min(upto, frontier)
            if self.host is not None:
                self.host.trimmed(name, self.lowest[name])

    def withdraw(self, subscription, end):
        del self.installed[subscription]
        if self.host is not None:
            self.host.withdraw(subscription, self.network.now, end)

    def send(self, site, frame):
        return self.network.send(self.name, site, frame)

    def store(self, subscription, items, upto):
        self.pending.append((subscription, list(items), upto))
        if len(self.pending) == 1:
            self.network.after(self.network.rng.random() * 0.05, self.commit, self.host)

    def commit(self, host):
        if host is not self.host:
            return  # the machine has crashed since
        done, self.pending = self.pending, []
        for subscription, items, upto in done:
            kept, frontier = self.disk.get(subscription, ({}, -1))
            assert upto > frontier, "a frontier went back"
            for item in items:
                assert item.number > frontier, "an item came twice"
                assert item.number not in kept, "an item came twice"
                kept[item.number] = item
            self.disk[subscription] = kept, upto
            host.committed(subscription, upto)

    def stored(self, subscription, after, upto, most_bytes):
        everything = [*self.disk.get(subscription, ({}, 0))[0].values()]
        everything += [item for name, items, _ in self.pending if name == subscription for item in items]
        found, size = [], 0
        for item in sorted(everything, key=lambda i: i.number):
            if after < item.number <= upto:
                found.append(item)
                size += len(item.data)
                if size >= most_bytes:
                    return Stretch(found, item.number)
        return Stretch(found, upto)

    def forbids(self, site, asked):
        configuration = decode_untrusted(asked.permit)
        if configuration.site != site or configuration.subscription != asked.downstream:
            return "not your permit"
        return "" if configuration.names(asked.upstream, self.name) else "not named"

    def handle(self, site, frame):
        self.host.handle(site, frame, self.network.now)

    def site_up(self, site):
        self.host.site_up(site, self.network.now)

    def site_lost(self, site):
        self.host.site_lost(site, self.network.now)

    def crash(self):
        self.host, self.pending = None, []

    def tick(self):
        self.host.tick(self.network.now)


class Source:
    """The source: its log and what it feeds."""

    name = SOURCE

    def __init__(self, network):
        self.network, self.log = network, MemoryLog()
        self.host = SourceViews(SOURCE, self.log, self)

    def publish(self, body):
        self.log.entries.append(body)
        if self.host is not None:
            self.host.published(self.log.last, f"d{self.log.last}", body)

    def send(self, site, frame):
        return self.network.send(SOURCE, site, frame)

    def forbids(self, site, asked):
        return "" if decode_untrusted(asked.permit).site == site else "not your permit"

    def handle(self, site, frame):
        if isinstance(frame, Open | Credit | Cancel):
            self.host.handle(site, frame)

    def site_up(self, site):
        pass

    def site_lost(self, site):
        self.host.site_lost(site)

    def crash(self):
        self.host = None

    def start(self):
        self.host = SourceViews(SOURCE, self.log, self)

    def tick(self):
        self.host.pump()


class Network:
    """Machines, the links between them, and time."""

    dead_s = 1.5

    def __init__(self, seed, names, faults=None):
        self.rng, self.now, self.faults = random.Random(seed), 0.0, faults or Faults()
        self._events, self._count = [], 0
        self.links = {}
        self.source = Source(self)
        self.machines = {name: Machine(self, name) for name in names} | {SOURCE: self.source}
        self.sent_bytes = dict.fromkeys(self.machines, 0)
        self._beat()

    def after(self, delay, action, *arguments):
        self._count += 1
        heapq.heappush(self._events, (self.now + delay, self._count, action, arguments))

    def run(self, seconds):
        """Let time pass."""
        end = self.now + seconds
        while self._events and self._events[0][0] <= end:
            self.now, _, action, arguments = heapq.heappop(self._events)
            action(*arguments)
        self.now = end

    def rest(self, is_done, seconds):
        """Let time pass until everything has come to rest."""
        self.run(seconds)

    def _beat(self):
        for machine in self.machines.values():
            if machine.host is not None:
                machine.tick()
        for link in list(self.links.values()):
            for name, connection in list(link.ends.items()):
                if link.is_up.get(name) is not False and connection.stage is not Stage.CLOSED:
                    try:
                        connection.tick(self.now)
                    except WireError:
                        self._broken(link, name)
                    self._flush(link, name)
        self.after(0.25, self._beat)

    def send(self, name, site, frame):
        key = frozenset((name, site))
        link = self.links.get(key)
        if link is None:
            self._dial(key, name, site)
            return False
        if not link.is_up.get(name):
            return False
        box = link.ends[name].outbox
        box.put_feed(frame) if isinstance(frame, FROM_SENDER) else box.put(frame)
        self.after(0, self._flush, link, name)
        return True

    def _dial(self, key, name, site):
        patience = Patience(self.dead_s / 3, self.dead_s)
        ends = {end: Connection(self.rng.getrandbits(32), self.now, 0, patience) for end in (name, site)}
        link = self.links[key] = Link(ends)
        if self.machines[site].host is None:
            self.after(0.2, self._broken, link, name)
            return
        for end in (name, site):
            self.after(0.01, self._flush, link, end)

    def _flush(self, link, name):
        while link.ends[name].outbox and link.ends[name].stage is not Stage.CLOSED:
            data = link.ends[name].send(1, self.now)
            self.sent_bytes[name] += len(data)
            if self.rng.random() < self.faults.lose:
                continue
            delay = self.faults.delay_s
            if self.rng.random() < self.faults.overtake:
                delay *= 3 * self.rng.random()
            self.after(delay, self._arrive, link, link.other(name), data)
            if self.rng.random() < self.faults.repeat:
                self.after(delay * 2, self._arrive, link, link.other(name), data)

    def _arrive(self, link, name, data):
        machine, connection = self.machines[name], link.ends[name]
        if link.is_cut or machine.host is None or connection.stage is Stage.CLOSED:
            return
        other = link.other(name)
        try:
            frames = connection.receive(data, self.now)
        except WireError:
            self._broken(link, name)
            return
        if connection.stage is Stage.READY and not link.is_up.get(name):
            link.is_up[name] = True
            machine.site_up(other)
        for frame in frames:
            if isinstance(frame, (*FROM_SENDER, Open, Credit, Cancel)):
                machine.handle(other, frame)

    def _broken(self, link, name):
        """One end gives a connection up; the other notices a little later."""
        link.is_cut = True
        if link.is_up.get(name) is False:
            return
        link.is_up[name] = False
        other = link.other(name)
        key = frozenset((name, other))
        if self.links.get(key) is link:
            del self.links[key]
        link.ends[name].stage = Stage.CLOSED
        if self.machines[name].host is not None:
            self.machines[name].site_lost(other)
        self.after(0.05, self._broken, link, other)

    def freeze(self, name):
        """Let a machine fall silent for good: nobody is told, its connections just say nothing any more."""
        self.machines[name].crash()
        for key, link in list(self.links.items()):
            if name in key:
                link.is_up[name] = False
                link.is_cut = True

    def crash(self, name):
        """Kill a machine; whoever is connected notices soon."""
        self.machines[name].crash()
        for key, link in list(self.links.items()):
            if name in key:
                link.is_up[name] = False
                link.is_cut = True
                del self.links[key]
                self.after(0.05, self._broken, link, link.other(name))

    def restart(self, name):
        self.machines[name].start()

    def results(self, name, subscription):
        """Return what is on a machine's disk: kinds and data by document, and the frontier."""
        items, frontier = self.machines[name].disk.get(subscription, ({}, -1))
        return {n: item.data if item.kind is Kind.RESULTS else item.kind for n, item in items.items()}, frontier

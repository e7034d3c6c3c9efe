"""``make bench-cn``: what a message costs in the content-driven network, on an Internet-like network of routers.

20,000 routers, 1,000 machines, 100,000 subscriptions with two ranges each (Table 2 of the select-joins paper), so
a space of four axes. Events come from the same distributions, and name a payload out of 50 by a Zipf law; the
first half of them warms up, the second half is counted. The nodes are the ones that daemons would run, in virtual
time. Per event: overlay hops (messages between machines), bytes between machines, the most bytes that one machine
sends (stress), links of the Internet crossed, and hops until a subscription has it; acknowledgements apart. For
both routings, for CN and CN* over payload sizes, and for CN* over repository caps (the shape of Figures 11, 12 and
18). Last hops to subscribers are left out, as in the paper. The last line is JSON.
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import sys
import time
from collections import Counter
from itertools import accumulate

import msgspec
from rich.console import Console
from rich.table import Table

from overlay.content import frames
from overlay.content.journal import Subscribed
from overlay.content.node import ContentNode
from overlay.content.origin import Origin
from overlay.content.table import PlainLoop, ZoneTable
from overlay.payloads.desk import Desk
from overlay.zones.balance import Plan, best_split
from rewriting.filters import Dimension, Space
from scenarios.simulation.agenda import Agenda
from scenarios.simulation.internet import Internet
from scenarios.simulation.nodes import Nodes

SOURCE = "source"
SPACE = Space("stocks", (Dimension("a", low=0, high=100_000), Dimension("c", low=0, high=100_000)))
PAYLOADS = (10, 1_000, 10_000, 100_000)
CAPS = (0, 5, 10, 20, 50)
"""Payloads of 1,000 bytes that a repository holds."""
CONTENTS = 50
LARGE = 1 << 40
COUNTED = (frames.Spread, frames.Approach, frames.Fetch, frames.Payload)


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machines", type=int, default=1_000)
    parser.add_argument("--subscriptions", type=int, default=100_000)
    parser.add_argument("--routers", type=int, default=20_000)
    parser.add_argument("--events", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    console = Console()
    begin = time.monotonic()
    setting = Setting(options)
    console.print(f"{options.machines:,} machines, {options.subscriptions:,} subscriptions: {setting.about()}")
    figures = {"machines": options.machines, "subscriptions": options.subscriptions, "events": options.events}
    for name, to_neighbours in (("tree", False), ("neighbours", True)):
        found = figures[name] = {"payloads": {}, "caps": {}}
        for size in PAYLOADS:
            found["payloads"][size] = {
                "cn": setting.measure(to_neighbours, size, None),
                "cn*": setting.measure(to_neighbours, size, LARGE),
            }
        for entries in CAPS:
            found["caps"][entries] = setting.measure(to_neighbours, 1_000, entries * 1_030)
    figures["seconds"] = round(time.monotonic() - begin, 1)
    report(console, figures)
    print(json.dumps(figures))
    return 0


class Setting:
    """Zones, subscriptions and events, made once for all measurements."""

    def __init__(self, options) -> None:
        rng = random.Random(options.seed)
        self.seed = options.seed
        self.names = [f"n{i:04}" for i in range(options.machines)]
        self.net = Internet([SOURCE, *self.names], routers=options.routers, seed=options.seed)
        self.catalog = zoned(rng, self.names, options.subscriptions)
        self.events = [an_event(rng) for _ in range(options.events)]
        known = self.catalog.history.now
        self.tables = {zone: self.table(zone, grant) for zone, grant in known.grants.items()}
        weights = list(accumulate(1 / (rank + 1) ** 0.8 for rank in range(CONTENTS)))
        self.contents = rng.choices(range(CONTENTS), cum_weights=weights, k=options.events)

    def table(self, zone, grant):
        """Return the subscriptions of a zone, as those of its owner; they are the same in all measurements."""
        table = ZoneTable(grant.fence, Remembering)
        for entry in self.catalog.page(zone, ("", 0), 1 << 30)[0]:
            table.merge(msgspec.structs.replace(entry, site=grant.owner))
        table.is_loaded = True
        return table

    def about(self) -> str:
        counts = [int(count) for count in self.catalog.counts().values()]
        return (
            f"{len(counts):,} zones with {min(counts)} to {max(counts)} subscriptions; "
            f"{self.net.hops[self.net.hops > 0].mean():.1f} links of the Internet between two machines"
        )

    def measure(self, to_neighbours: bool, size: int, cap_bytes: int | None) -> dict[str, float]:
        """Publish all events and return what one costs."""
        run = Run(self, to_neighbours, cap_bytes)
        for i, (event, content) in enumerate(zip(self.events, self.contents, strict=True)):
            if i == len(self.events) // 2:
                run.begin_counting()
            run.publish({**event, "photo": f"{content:>{size}}"})
        found = run.figures()
        print(
            f"{'neighbours' if to_neighbours else 'tree'}, {size:,} bytes, cap {cap_bytes}: {found}",
            file=sys.stderr,
        )
        return found


def zoned(rng, names, subscriptions):
    """Return a catalog whose zones have been split until every machine owns one."""
    catalog = Origin(SOURCE, SPACE).catalog
    for i in range(subscriptions):
        catalog.enter(Subscribed(i + 1, f"s{i}", "", a_filter(rng)))
    catalog.change(Plan({}, {"": names[0]}))
    zones = [(-subscriptions, "")]
    for name in names[1:]:
        count, zone = heapq.heappop(zones)
        points = [entry.point for entry in catalog.page(zone, ("", 0), -count)[0]]
        cut = best_split(catalog.history.now.tree.box(zone), points, len(zone))
        if cut is None:
            raise SystemExit("more machines than the subscriptions can be shared out among")
        catalog.change(Plan({zone: cut}, {zone + "1": name}))
        less = sum(point[cut.axis] < cut.value for point in points)
        heapq.heappush(zones, (-less, zone + "0"))
        heapq.heappush(zones, (less - len(points), zone + "1"))
    return catalog


def a_filter(rng) -> str:
    """Draw ranges as Table 2 says: centres around two places, widths around one."""
    parts = []
    for name, centres, spread, width in (("a", (30e3, 70e3), 10e3, 20e3), ("c", (15e3, 85e3), 6e3, 6e3)):
        centre, wide = rng.gauss(rng.choice(centres), spread), max(100.0, rng.gauss(width, 5e3))
        parts.append(f"{name} >= {centre - wide / 2:.1f} and {name} <= {centre + wide / 2:.1f}")
    return " and ".join(parts)


def an_event(rng) -> dict[str, str]:
    """Draw values where the subscriptions are."""
    a = rng.gauss(rng.choice((25e3, 75e3)), 8e3)
    c = rng.gauss(rng.choice((15e3, 85e3)), 6e3)
    return {"a": f"{a:.1f}", "c": f"{c:.1f}"}


class Remembering(PlainLoop):
    """Matches each event once for all measurements: they are about the network."""

    def __init__(self) -> None:
        super().__init__()
        self._found: dict[tuple[str, str], list] = {}

    def match(self, attributes):
        key = attributes["a"], attributes["c"]
        if key not in self._found:
            self._found[key] = list(super().match(attributes))
        return self._found[key]


class Run:
    """One network with one routing and one kind of node."""

    def __init__(self, setting: Setting, to_neighbours: bool, cap_bytes: int | None) -> None:
        self.agenda = Agenda(setting.seed)
        self.nodes = Nodes(self.agenda, setting.net)
        self.net = setting.net
        access = setting.names[0] if to_neighbours else ""
        self.origin = Origin(SOURCE, SPACE, to_neighbours=to_neighbours, access=access)
        self.origin.catalog = self.origin.spreading._catalog = setting.catalog
        self.origin.number = self.origin.frontier = len(setting.catalog.live)
        self.nodes.start(SOURCE, self)
        self.stations: dict[str, Station] = {}
        known = setting.catalog.history.now
        for name in setting.names:
            desk = None if cap_bytes is None else Desk(name, SOURCE, cap_bytes=cap_bytes)
            node = ContentNode(name, SOURCE, SPACE, desk=desk, known=known)
            node.keeper.tables = {zone: setting.tables[zone] for zone in known.owned_by(name)}
            self.stations[name] = Station(self, node)
            self.nodes.start(name, self.stations[name])
        self.sent: Counter[str] = Counter()
        self.totals: Counter[str] = Counter()
        self.depth: dict[str, int] = {}
        self.published = 0

    def heard(self, sender, message) -> None:
        """The source hears something."""
        self.send(SOURCE, self.origin.handle(sender, message, self.agenda.now))

    def begin_counting(self) -> None:
        """Forget what was counted: until now caches were filled."""
        self.totals.clear()
        self.published = 0

    def publish(self, attributes) -> None:
        """Publish an event, wait until it has reached everybody, and count."""
        self.sent.clear()
        self.depth = {SOURCE: 0}
        number, sends = self.origin.publish(attributes, self.agenda.now, payload=["photo"])
        self.send(SOURCE, sends)
        self.agenda.run(self.agenda.now + 60.0)
        if self.origin.frontier != number:
            raise SystemExit(f"message {number} did not reach everybody")
        self.published += 1
        self.totals["stress"] += max(self.sent.values())
        self.totals["server_stress"] += self.sent[SOURCE]

    def send(self, sender, what) -> None:
        """Put frames on their way, and count them."""
        for receiver, frame in what:
            if receiver == sender:  # a subscription of the machine's own: the last hop is not counted
                self.totals["deliveries"] += len(frame.subscriptions)
                self.totals["latency"] += self.depth[sender] * len(frame.subscriptions)
                self.agenda.after(0.0, self.stations[sender].stored, frame)
                continue
            size = len(frames.encode(frame))
            self.nodes.send(sender, receiver, frame, size)
            if isinstance(frame, COUNTED):
                self.sent[sender] += size
                self.totals["bytes"] += size
                self.totals["hops"] += 1
                self.totals["links"] += self.net.hops_between(sender, receiver)
                self._deepen(sender, receiver, frame)
            else:
                self.totals["acknowledgements"] += 1
                self.totals["acknowledgement_bytes"] += size

    def _deepen(self, sender, receiver, frame) -> None:
        if isinstance(frame, frames.Spread | frames.Approach):
            self.depth.setdefault(receiver, self.depth[sender] + 1)
        elif isinstance(frame, frames.Fetch):
            self.depth[sender] += 2

    def figures(self) -> dict[str, float]:
        """Return what an event costs on average."""
        found = {name: round(total / self.published, 2) for name, total in self.totals.items()}
        found["latency"] = round(self.totals["latency"] / max(1, self.totals["deliveries"]), 2)
        return found


class Station:
    """A node in its place."""

    def __init__(self, run: Run, node: ContentNode) -> None:
        self.run, self.node = run, node

    def heard(self, sender, message) -> None:
        self.run.send(self.node.me, self.node.handle(sender, message, self.run.agenda.now))

    def stored(self, deliver) -> None:
        self.heard(self.node.me, frames.Delivered(deliver.number, deliver.prefix))


def report(console: Console, figures) -> None:
    columns = {
        "hops": "overlay hops", "bytes": "bytes", "stress": "max stress, bytes", "server_stress": "source, bytes",
        "links": "links", "latency": "hops to a subscription", "deliveries": "deliveries",
        "acknowledgements": "acknowledgements",
    }  # fmt: skip
    for title, key in (
        ("by payload size", "payloads"),
        ("CN* by payloads of 1,000 bytes that a node keeps", "caps"),
    ):
        table = Table(title=f"Per event, {title}", title_justify="left")
        for name in ("routing", "", "", *columns.values()):
            table.add_column(name, justify="right")
        for routing in ("tree", "neighbours"):
            for size, found in figures[routing][key].items():
                kinds = found if key == "payloads" else {"cn*": found}
                for kind, row in kinds.items():
                    cells = [f"{row.get(name, 0):,.1f}" for name in columns]
                    table.add_row(routing, f"{size:,}", kind.upper(), *cells)
        console.print(table)


if __name__ == "__main__":
    sys.exit(main())

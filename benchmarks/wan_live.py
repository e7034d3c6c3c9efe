"""``make bench-wan-live``: the Delta paper's WAN run (section 5.5) with real daemons, for every limit B.

The scenario *wan-10k*: 10,000 subscriptions on 50 hosts, each in a network namespace with round trips of 5 to 40
ms, and a source limited to 72 feeds. For each B two networks are made. In the first everybody is fed as planned:
it adopts the plan of least load as the solver leaves it (*ILP*, the paper's base), then the one after LOGA and the
second pass (*best*), and gets documents under each, one when the one before is everywhere. In the second every
host takes whole documents (*relays*), and they come at a rate. Everything that was stored is compared with direct
matching; exit status 1 if anything is wrong. Needs root. The last line is JSON.

Under each plan documents are also published in *dilated* time: round trips are made 100 times as long, and what is
measured is divided by 100. To the daemons it is as if the machine were 100 times as fast, so that 50 of them on
two cores have four each (Gupta et al., "To Infinity and Beyond: Time-Warped Network Emulation", NSDI 2006).
"""

import argparse
import json
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from msgspec.structs import replace as changed
from rich.console import Console
from rich.table import Table

from benchmarks.network_watch import Watch, cpu_s
from benchmarks.wan import LIMITS, PLANS, plans
from peer.daemon.relaying import RELAY
from peer.home import Conversation
from planner import Subscription
from rewriting.statistics import Statistics
from scenarios.auction_documents import auction_documents
from scenarios.hosts.places import namespaces
from scenarios.processes import SOURCE, running
from scenarios.running.cast import cast_of, links_of
from scenarios.running.figures import spread
from scenarios.running.link_faults import LinkFaults
from scenarios.running.truth import Owed, Published, Truth, judge
from scenarios.scenario_file import parse_scenario
from xmlmatch import Document, Pattern

SOURCE_FEEDS = 80
"""Plans use nine tenths: 72."""
PATIENCE_S = 600.0
AT_ONCE = 8


def main():
    """Run and print."""
    arguments = read_arguments()
    text = (Path(__file__).parent.parent / "scenarios" / "shipped" / "wan-10k.toml").read_text("utf-8")
    scenario = parse_scenario(text, "wan-10k")
    hosts = changed(scenario.hosts, count=arguments.hosts)
    wanted = changed(scenario.subscriptions, count=arguments.subscriptions)
    scenario = changed(scenario, hosts=hosts, subscriptions=wanted)
    found = {"subscriptions": arguments.subscriptions, "hosts": arguments.hosts, "limits": {}}
    for limit in arguments.limits:
        found["limits"][limit] = run_limit(scenario, arguments, limit)
    show(found)
    print(json.dumps(found))
    return 1 if any(one["wrong"] for one in found["limits"].values()) else 0


def read_arguments():
    """Read what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--limits", nargs="+", default=LIMITS, metavar="B", help="values of B (all of the paper's)"
    )
    parser.add_argument("--plans", nargs="*", default=("ILP", "best"), choices=PLANS, help="(ILP best)")
    parser.add_argument("--planned", type=int, default=11, metavar="N", help="documents a plan; one warms (11)")
    parser.add_argument(
        "--dilated", type=int, default=11, metavar="N", help="documents in dilated time; one warms"
    )
    parser.add_argument("--dilation", type=float, default=100.0, metavar="K", help="how far (100)")
    parser.add_argument("--relayed", type=int, default=200, metavar="N", help="documents with relays (200)")
    parser.add_argument("--rate", type=float, default=2.0, metavar="R", help="per second, with relays (2)")
    parser.add_argument("--subscriptions", type=int, default=10_000, metavar="N", help="(10,000)")
    parser.add_argument("--hosts", type=int, default=50, metavar="N", help="(50)")
    return parser.parse_args()


def say(what):
    """Say how far it is."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def run_limit(scenario, arguments, limit):
    """Run the networks of one B, and judge them."""
    told = {"expected": 0, "delivered": 0, "wrong": 0}
    kinds = {"never": bool(arguments.plans), "always": bool(arguments.relayed)}
    for relay in [relay for relay, is_wanted in kinds.items() if is_wanted]:
        with tempfile.TemporaryDirectory(prefix="bench-wan-") as folder:
            found = run_network(scenario, arguments, limit, relay, Path(folder))
        for name, value in found.items():
            told[name] = told[name] + value if name in told else value
        say(f"B = {limit}: {json.dumps(found)}")
    return told


def run_network(scenario, arguments, limit, relay, folder):
    """Run one network, and judge it."""
    common, pairs = links_of(scenario)
    with ExitStack() as stack:
        places = stack.enter_context(namespaces([SOURCE, *scenario.names], common, pairs, scenario.seed))
        network = stack.enter_context(running(folder, is_warm=True, places=places))
        live = Live(scenario, network, places, None if limit == "none" else int(limit))
        say(f"B = {limit}, relays: {relay}: starting, and subscribing {scenario.subscriptions.count:,} times")
        live.start(relay)
        live.subscribe()
        live.publish_one(0)  # everybody is connected
        told = planned(live, arguments, limit) if relay == "never" else relayed(live, arguments)
        network.collect()
    say(f"B = {limit}: comparing with direct matching")
    return live.judged(told)


def planned(live, arguments, limit):
    """Publish under one plan after the other."""
    made, told = live.plans(), {}
    for name in arguments.plans:
        say(f"B = {limit}: adopting {name}")
        told[name] = live.adopt(made[name])
        told[name] |= live.measure(name, [live.publish_one(i) for i in range(arguments.planned)][1:])
        if arguments.dilated:
            with live.dilated(arguments.dilation):
                numbers = [live.publish_one(i) for i in range(arguments.dilated)][1:]
                told[f"{name}, dilated"] = live.measure(f"{name}, dilated", numbers, arguments.dilation)
    return told


def relayed(live, arguments):
    """Publish at a rate, once everybody is fed by its own machine's relay."""
    begun = live.relays()
    return {"relays": begun | live.measure("relays", live.publish_at(arguments.relayed, arguments.rate))}


class Live:
    """A network of daemons, from its start to its judgement."""

    def __init__(self, scenario, network, places, limit):
        self.scenario, self.network, self.places, self.limit = scenario, network, places, limit
        cast = cast_of(changed(scenario, documents=changed(scenario.documents, count=250)))
        self.wishes, self.bodies = cast.first, cast.documents
        self.owed, self.documents, self.phases = {}, [], {}

    def start(self, relay):
        """Start everything."""
        patience = ("--timeout", str(self.scenario.hosts.timeout_s))
        self.network.start_source("--feeds", str(SOURCE_FEEDS), *patience)
        for name in self.scenario.names:
            self.network.join(name)
            self.network.begin_peer(name, "--relay", relay, *patience)
        for name in self.scenario.names:
            self.network.await_ready(name)

    def subscribe(self):
        """Subscribe everybody, some at a time."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(self._subscribe, self.wishes))

    def _subscribe(self, wish):
        columns = [[node, what.value] for node, what in wish.pattern.selection]
        told = self.network.one(
            wish.host, "subscribe", pattern=wish.pattern.text, columns=columns, limit=self.limit
        )
        self.owed[told["subscription"]] = Owed(told["subscription"], wish.host, wish.pattern, told["start"])

    def plans(self):
        """Plan over what the source knows, by the same statistics as ``make bench-wan``."""
        known = self.network.one(SOURCE, "snapshot", documents=1)
        wanted = [
            Subscription(n, Pattern.parse(text), site, most) for n, text, site, most in known["subscriptions"]
        ]
        self._epoch = known["epoch"]
        panel = [Document.parse(body) for body in auction_documents(2, 40)]
        statistics = Statistics.measure([one.pattern for one in wanted], panel)
        return plans(wanted, self.scenario.names, statistics, SOURCE_FEEDS, 120.0)

    def adopt(self, rows):
        """Let the source adopt a plan, and wait until everybody is fed by it."""
        begun = time.monotonic()
        told = self.network.one(SOURCE, "adopt", base_epoch=self._epoch, rows=rows)
        self._epoch = told["epoch"]
        left = self._settled()
        return {
            "taken": told["taken"], "refused": len(told["refused"]), "otherwise": left,
            "adopted_s": round(time.monotonic() - begun, 1),
        }  # fmt: skip

    def _settled(self):
        """Wait until everybody is fed as configured; return how many are not in the end."""
        end, quiet, left = time.monotonic() + PATIENCE_S, 0, 0
        while quiet < 2 and time.monotonic() < end:  # what was adopted may not have been told to everybody yet
            time.sleep(2)
            left = sum(not one["is_as_configured"] for one in self.standing())
            quiet = 0 if left else quiet + 1
        return left

    def relays(self):
        """Wait until every host has a relay, and everybody is fed by its own."""
        end, relays = time.monotonic() + PATIENCE_S, 0
        while relays < len(self.scenario.names) and time.monotonic() < end:
            time.sleep(2)
            relays = sum(self._has_relay(name) for name in self.scenario.names)
        return {"relays": relays, "otherwise": self._settled()}

    def _has_relay(self, name):
        return any(one["subscription"].startswith(RELAY) for one in self.network.many(name, "subscriptions"))

    def standing(self):
        """Say how all subscriptions stand."""
        return [one for name in self.scenario.names for one in self.network.many(name, "subscriptions")]

    def publish_one(self, i):
        """Publish a document, and wait until everybody has it; return its number."""
        due, cpu = time.time(), self._cpu()
        number = self._publish(i, due)
        stores = [self.network.store(name) for name in self.scenario.names]
        with Watch(stores, look_s=0.1) as watch:  # asking the daemons would cost them more than the document
            watch.wait(number, PATIENCE_S)
        self._last_cpu = self._cpu() - cpu
        return number

    def publish_at(self, count, rate):
        """Publish documents at a rate, and wait until everybody has them; return their numbers."""
        begun, numbers = time.time(), []
        with Conversation(self.network.home(SOURCE)) as source:
            for i in range(count):
                due = begun + i / rate
                time.sleep(max(0.0, due - time.time()))
                numbers.append(self._publish(i, due, source))
        numbers.append(self.publish_one(0))
        return numbers[:-1]

    def _publish(self, i, due, through=None):
        body = self.bodies[i % len(self.bodies)]
        number = self.network.publish(f"document-{len(self.documents)}", body, through)
        self.documents.append(Published(number, due, body))
        return number

    def _cpu(self):
        return sum(cpu_s(process.pid) for process in self.network._processes.values())

    @contextmanager
    def dilated(self, factor):
        """Make round trips longer while the block runs."""
        self._shape(factor)
        try:
            yield
        finally:
            self._shape(1.0)

    def _shape(self, factor):
        common, pairs = links_of(self.scenario)
        links = LinkFaults([], common, {pair: dilate(link, factor) for pair, link in pairs.items()})
        self.places.change("shape", **links.shape())

    def measure(self, name, numbers, dilation=1.0):
        """Note which documents count for a phase, and how everything stands now."""
        self.phases[name] = (numbers, dilation)
        standing = [one for one in self.standing() if not one["subscription"].startswith(RELAY)]
        feeds = self.network.one(SOURCE, "status")["feeds"]
        return {
            "levels": max(one["level"] for one in standing), "source_feeds": feeds,
            "source_share": round(feeds / len(standing), 5), "cpu_s": round(self._last_cpu, 2),
        }  # fmt: skip

    def judged(self, told):
        """Compare the stores with direct matching; add the times of every phase."""
        owed = list(self.owed.values())
        truth = Truth([one.pattern for one in owed], self.documents)
        stores = {name: self.network.store(name) for name in self.scenario.names}
        verdict = judge(stores, owed, self.documents, truth)
        for name, (numbers, dilation) in self.phases.items():
            told[name] |= times(verdict.times, set(numbers), dilation)
        wrong = verdict.wrong + verdict.gaps + verdict.errors
        return told | {"expected": verdict.expected, "delivered": verdict.delivered, "wrong": wrong}


def dilate(link, factor):
    """Return a link with longer round trips."""
    return replace(link, rtt_ms=link.rtt_ms * factor, jitter_ms=link.jitter_ms * factor)


def times(by_subscription, numbers, dilation):
    """Return view latencies and delivery times of some documents, as they would be without dilation."""
    views, last = [], {}
    for own in by_subscription.values():
        mine = [(number, seconds / dilation) for number, seconds in own.items() if number in numbers]
        if mine:
            views.append(float(np.mean([seconds for _, seconds in mine])))
        for number, seconds in mine:
            last[number] = max(last.get(number, 0.0), seconds)
    return {"view_s": spread(views), "delivery_s": spread(last.values())}


def show(found):
    """Print a table for people."""
    title = f"{found['subscriptions']:,} subscriptions on {found['hosts']} hosts, real daemons"
    table = Table(title=title, title_justify="left")
    for heading in ("B", "plan", "levels", "source feeds", "view s: avg, min, max", "delivery s: avg, min, max"):
        table.add_column(heading, justify="left" if heading in ("B", "plan") else "right")
    for limit, row in found["limits"].items():
        for name, one in ((name, one) for name, one in row.items() if isinstance(one, dict)):
            seconds = [
                ", ".join(f"{one[of][key]:.2f}" for key in ("avg", "min", "max"))
                for of in ("view_s", "delivery_s")
            ]
            feeds = f"{one['source_feeds']} ({one['source_share']:.2%})"
            table.add_row(limit, name, str(one["levels"]), feeds, *seconds)
        table.add_row(
            limit, f"{row['delivered']:,} of {row['expected']:,} results, {row['wrong']} wrong", *[""] * 4
        )
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())

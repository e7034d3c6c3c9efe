"""``make bench-network``: a source and peers as processes on loopback; against a source that feeds everybody.

The *wan* preset. Documents are published at a rate, which gives delivery times, processor time and bytes; then
all at once, which gives documents per second. Then the same network adopts a plan in which the source feeds every
subscription (none is fed by another, not even on its own machine), and gets documents in the same two ways. Last,
where nats-server is on PATH, every document goes to a process per host, which matches it there.

A document is delivered when every subscription is complete up to it, on disk, counted from when it was due.
Processor time is that of the processes, from the first document to the last delivery; ``network_watch`` says why
watching is not part of it. A sample of subscriptions is compared with direct matching; if anything is wrong the
exit status is 1. The last line is JSON.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue

import numpy as np

from benchmarks import network_nats
from benchmarks.network_report import ratios, show
from benchmarks.network_watch import TooLate, Watch, batches, cpu_s, machine_cpu_s, memory_mb
from peer.daemon.relaying import MODES, RELAY
from peer.home import Conversation
from scenarios.auction_documents import auction_documents
from scenarios.presets import wan
from scenarios.processes import SOURCE, running
from xmlmatch import Document, Matcher

SEED = 1
LIMIT = 30
WARMING = 5
AT_ONCE = 4
STARTS = 3
CALM_CORES = 0.02


def main():
    arguments = read_arguments()
    patterns = wan(SEED, arguments.subscriptions).subscriptions
    bodies = list(auction_documents(SEED, arguments.documents))
    found = {
        "peers": arguments.peers, "subscriptions": len(patterns), "distinct": len({p.text for p in patterns}),
        "rate": arguments.rate, "limit": arguments.limit, "seed": SEED, "cores": os.cpu_count(),
    }  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="bench-network-") as folder, running(Path(folder)) as network:
        bench = Bench(network, arguments, bodies)
        try:
            found |= bench.run(patterns)
        except TooLate as exc:
            sys.exit(f"{exc}; {bench.failovers()} failovers; a lower --rate or a longer --patience may help")
    found |= {"nats": None, "nats_documents": None}
    if network_nats.find_server():
        say("the rival: every document to every host")
        hosts = [patterns[i :: arguments.peers] for i in range(arguments.peers)]
        found["nats"] = network_nats.measure(hosts, bodies, arguments.rate, "results")
        say("the rival that keeps documents")
        found["nats_documents"] = network_nats.measure(hosts, bodies, arguments.rate, "documents")
    else:
        found["note"] = network_nats.WITHOUT
    found["ratios"] = ratios(found)
    show(found)
    print(json.dumps(found))
    return 0 if found["checked"]["wrong"] == 0 else 1


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peers", type=int, default=20, metavar="N", help="(20)")
    parser.add_argument("--subscriptions", type=int, default=2_000, metavar="N", help="over all peers (2,000)")
    parser.add_argument("--documents", type=int, default=200, metavar="N", help="per phase (200)")
    parser.add_argument(
        "--direct-documents", type=int, metavar="N", help="if the source feeds all (a fifth, or 20)"
    )
    parser.add_argument("--rate", type=float, default=5.0, metavar="R", help="documents per second (5)")
    parser.add_argument(
        "--limit", type=int, default=LIMIT, metavar="B", help=f"of a subscription's feeds ({LIMIT})"
    )
    parser.add_argument("--sample", type=int, default=12, metavar="N", help="subscriptions to compare (12)")
    parser.add_argument("--patience", type=float, default=300, metavar="S", help="for each phase (300)")
    parser.add_argument("--replan", action=argparse.BooleanOptionalAction, default=True, help="a full plan (yes)")
    parser.add_argument("--relay", choices=MODES, default="auto", help="of the peers (auto)")
    arguments = parser.parse_args()
    if arguments.direct_documents is None:
        arguments.direct_documents = max(arguments.documents // 5, min(arguments.documents, 20))
    return arguments


def say(what):
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


class Bench:
    """One network, from its start to the comparison."""

    def __init__(self, network, arguments, bodies):
        self.network, self.arguments, self.bodies = network, arguments, bodies
        self.peers = [f"peer-{i:02}" for i in range(arguments.peers)]
        self.files = [network.home(name) / "results.sqlite" for name in self.peers]
        self.published = {}
        self.wanted = {}

    def run(self, patterns):
        """Go through all phases and return their figures."""
        found = {"peer": self.start()}
        say("subscribing")
        begun = time.monotonic()
        self.subscribe(patterns)
        found["subscribe_ms"] = round((time.monotonic() - begun) / len(patterns) * 1000, 1)
        self.settle()
        if self.arguments.replan:
            found["replan"] = self.replan()
        found["relays"] = self.steady()
        found["calm_s"], found["idle_cores"] = self.calm()
        say(f"publishing at {self.arguments.rate} documents/s")
        before = self.failovers()
        found["network"] = self.both(self.bodies)
        levels = np.bincount([one["level"] for one in self.standing()]).tolist()
        found["network"] |= {"levels": levels, "failovers": self.failovers() - before, "failovers_before": before}
        found["peer"]["loaded_mb"] = self.memory()[0]
        say("feeding everybody from the source")
        adopted = self.feed_directly()
        found["direct"] = self.both(self.bodies[: self.arguments.direct_documents]) | adopted
        say("comparing with direct matching")
        found["checked"] = self.compare()
        return found

    def both(self, bodies):
        """Publish documents at the rate, then all at once: the second time tells how many it can be."""
        told, fast = self.phase(bodies, self.arguments.rate), self.phase(bodies, None)
        return told | {"documents_per_s": fast["documents_per_s"], "at_once_cpu_s": fast["total_cpu_s"]}

    def start(self):
        """Start everything; time a peer's start alone, and weigh the peers while they have nothing to do."""
        say(f"starting a source and {len(self.peers)} peers")
        self.network.start_source()
        self.relay = ("--relay", self.arguments.relay)
        for name in self.peers:
            self.network.join(name)
        first, times = self.peers[0], []
        for _ in range(STARTS + 1):  # the first may have to load, or even compile, the kernels
            begun = time.monotonic()
            self.network.start_peer(first)
            times.append(time.monotonic() - begun)
            self.network.stop(first)
        for name in self.peers:
            self.network.begin_peer(name, *self.relay)
        for name in self.peers:
            self.network.await_ready(name)
        time.sleep(1)
        rss, pss = self.memory()
        return {"idle_mb": rss, "idle_pss_mb": pss, "start_s": round(min(times[1:]), 2)}

    def subscribe(self, patterns):
        """Subscribe everybody, one after the other, the peers in turns."""
        for i, pattern in enumerate(patterns):
            name = self.peers[i % len(self.peers)]
            columns = [[node, what.value] for node, what in pattern.selection]
            told = self.network.one(
                name, "subscribe", pattern=pattern.text, columns=columns, limit=self.arguments.limit
            )
            self.wanted[told["subscription"]] = (name, pattern)

    def settle(self):
        """Publish a few documents and wait for everybody."""
        self.phase(self.bodies[:WARMING], None)

    def replan(self):
        """Plan anew with Spark, and wait until the source feeds no more than the plan says."""
        say("planning anew")
        begun = time.monotonic()
        command = [sys.executable, "-m", "peer", "replan", "--home", str(self.network.home(SOURCE)), "--json"]
        done = subprocess.run(command, capture_output=True, check=False, text=True)
        if done.returncode:
            return {"note": f"no full plan: {done.stderr.strip().splitlines()[-1:]}"}
        told, spent = json.loads(done.stdout.splitlines()[-1]), time.monotonic() - begun
        self.move(lambda feeds: feeds <= told["source_feeds"])
        return {
            "seconds": round(spent, 1), "source_feeds_before": told["source_feeds_before"],
            "source_feeds": told["source_feeds"], "changed": told["changed"], "refused": len(told["refused"]),
        }  # fmt: skip

    def feed_directly(self):
        """Let the source adopt a plan in which it feeds everybody, and wait until it does."""
        for name in self.peers:
            self.network.stop(name)
        for name in self.peers:
            self.network.begin_peer(name, "--relay", "never")
        for name in self.peers:
            self.network.await_ready(name)
        end = time.monotonic() + self.arguments.patience
        while any(one["subscription"].startswith(RELAY) for one in self.standing()) and time.monotonic() < end:
            self.settle()
            time.sleep(2)
        known = self.network.one(SOURCE, "snapshot", documents=1)
        rows = [
            {
                "subscription": name,
                "site": site,
                "pattern": pattern,
                "how": "source",
                "inputs": [],
                "alternatives": [],
            }
            for name, pattern, site, _ in known["subscriptions"]
        ]
        told = self.network.one(SOURCE, "adopt", base_epoch=known["epoch"], rows=rows)
        self.move(lambda feeds: feeds >= told["source_feeds"])
        self.calm()
        return {"fed_by_source": told["source_feeds"]}

    def steady(self):
        """Publish until nobody's feeds change any more, for machines look now and then whether whole documents are
        less; return how many have a relay."""
        known, end = None, time.monotonic() + self.arguments.patience
        while time.monotonic() < end:
            for _ in range(3):
                self.settle()
                time.sleep(4)
            fed = {one["subscription"]: one["fed_by"] for one in self.standing()}
            if fed == known:
                break
            known = fed
        return sum(name.startswith(RELAY) for name in known)

    def move(self, is_done):
        """Publish a document at a time until the feeds have moved: a move ends with something to take over."""
        end = time.monotonic() + self.arguments.patience
        while not is_done(self.network.one(SOURCE, "status")["feeds"]) and time.monotonic() < end:
            self.phase(self.bodies[:1], None)
            time.sleep(0.5)
        self.settle()

    def phase(self, bodies, rate):
        """Publish documents, at a rate or at once; wait for everybody; return what it took."""
        sent = self.bytes_sent()
        with Watch(self.files) as watch:
            before, busy, own = self.cpu(), machine_cpu_s(), time.process_time()
            begun = time.monotonic()
            numbers, due = self.publish(bodies, rate)
            watch.wait(max(numbers), self.arguments.patience)
            spent = {name: now - before[name] for name, now in self.cpu().items()}
            others = machine_cpu_s() - busy - (time.process_time() - own) - sum(spent.values())
            others_cores = max(others, 0.0) / (time.monotonic() - begun)
        out = {name: now - sent[name] for name, now in self.bytes_sent().items()}
        done = watch.times(np.sort(numbers))
        delivery = done.max(axis=0) - due
        count, total = batches(self.files, min(numbers), max(numbers)), sum(spent.values())
        return {
            "documents": len(bodies),
            "documents_per_s": round(len(bodies) / (done.max() - begun), 2),
            "delivery_p50_s": round(float(np.percentile(delivery, 50)), 3),
            "delivery_p99_s": round(float(np.percentile(delivery, 99)), 3),
            "view_latency_s": round(float((done - due).mean()), 3),
            "source_feeds": self.network.one(SOURCE, "status")["feeds"],
            "source_cpu_s": round(spent[SOURCE], 2),
            "source_mb_out": round(out[SOURCE] / 1e6, 2),
            "total_mb_out": round(sum(out.values()) / 1e6, 2),
            "total_cpu_s": round(total, 2),
            "batches": count,
            "cpu_ms_per_batch": round(total / max(count, 1) * 1000, 3),
            "watching_cpu_s": round(watch.cpu_s, 2),
            "others_cores": round(others_cores, 2),
        }

    def publish(self, bodies, rate):
        """Publish documents; return their numbers and when each was due, in the order of numbers."""
        begun, at_once, free = time.monotonic(), 1 if rate else AT_ONCE, SimpleQueue()

        def one(i, body):
            due = begun + i / rate if rate else time.monotonic()
            time.sleep(max(0.0, due - time.monotonic()))
            source = free.get()
            try:
                return self.network.publish(f"document-{len(self.published)}-{i}", body, source), due, body
            finally:
                free.put(source)

        with ExitStack() as stack:
            for _ in range(at_once):
                free.put(stack.enter_context(Conversation(self.network.home(SOURCE))))
            pool = stack.enter_context(ThreadPoolExecutor(at_once))
            done = sorted(pool.map(one, range(len(bodies)), bodies))
        self.published |= {number: body for number, _, body in done}
        return [number for number, _, _ in done], np.array([due for _, due, _ in done])

    def pids(self):
        return {name: self.network._processes[name].pid for name in (SOURCE, *self.peers)}

    def cpu(self):
        return {name: cpu_s(pid) for name, pid in self.pids().items()}

    def bytes_sent(self):
        return {name: self.network.one(name, "status")["bytes_sent"] for name in (SOURCE, *self.peers)}

    def memory(self):
        """Return the medians over the peers: resident, and counted once where shared."""
        found = [memory_mb(pid) for name, pid in self.pids().items() if name != SOURCE]
        return [round(float(value)) for value in np.median(found, axis=0)]

    def calm(self):
        """Wait until what the plan has brought is done, configurations on the DHT above all: documents do not cost
        that. Return how long it took, and how much of a core all daemons take now."""
        begun, seconds = time.monotonic(), 3
        while True:
            before = self.cpu()
            time.sleep(seconds)
            idle = sum(now - before[name] for name, now in self.cpu().items()) / seconds
            waited = time.monotonic() - begun
            if idle <= CALM_CORES * len(self.peers) or waited > self.arguments.patience:
                return round(waited, 1), round(idle, 3)

    def standing(self):
        return [one for name in self.peers for one in self.network.many(name, "subscriptions")]

    def failovers(self):
        return sum(one["failovers"] for one in self.standing())

    def compare(self):
        """Compare what some subscriptions have of all documents with direct matching."""
        documents = {number: Document.parse(body) for number, body in self.published.items()}
        wanted = list(self.wanted.items())
        rows = wrong = 0
        sample = wanted[:: max(len(wanted) // self.arguments.sample, 1)][: self.arguments.sample]
        for subscription, (name, pattern) in sample:
            got = {}
            for one in self.network.many(name, "entries", subscription=subscription):
                if "row" in one:
                    got.setdefault(one["document"], []).append(one["row"])
            matcher = Matcher([pattern])
            for number, document in documents.items():
                matches = matcher.match(document)
                found = matcher.node_sets(matches, 0).rows() if len(matches) else ()
                expected = [dict(zip(pattern.columns, map(plain, row), strict=True)) for row in found]
                rows += len(expected)
                wrong += got.pop(number, []) != expected
            wrong += len(got)
        return {"subscriptions": len(sample), "documents": len(documents), "rows": rows, "wrong": wrong}


def plain(value):
    return value if isinstance(value, str) else list(value)


if __name__ == "__main__":
    sys.exit(main())

"""``make bench-filters``: find the subscriptions that an event matches, among up to six million.

The workloads of Fabret et al.: *uniform* (five equalities, two of them on fixed attributes of 32, values 1 to
35), *free* (none fixed), *operators* (two equalities and three inequalities), *ranges* (ten ranges on twenty
attributes, nothing else), *distinct ranges* (no two bounds the same), and two in which subscriptions change over
time: *schemas* (other attributes) and *skew* (few values). CPU time, the least of three repetitions, with a NumPy
scan of all subscriptions beside; every algorithm's matches are compared with the scan's. ``insert_us`` is
``Matcher.insert`` of one filter after the other, ``before_event_us`` the same with an event after each,
``batch_insert_us`` a subscription of a large batch. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.filter_workloads import Ranges, Scan, Workload
from overlay.matching import ALGORITHMS, Matcher, codes
from overlay.matching.dynamic import Dynamic
from overlay.matching.static import Static
from overlay.matching.warm import warm
from scenarios.commands.progress import progress

SEED = 1
SIZES = (10_000, 100_000, 1_000_000, 6_000_000)
OTHERS_UP_TO = 1_000_000
"""Sizes at which *free* and *operators* run too."""
RANGES = 100_000
CHURN = 1_000_000
CHUNK = 1 << 17
EVENTS = 400
SLOW_EVENTS = 20
LEAST_CHANGES = 2_000
MOST_CHANGES = 100_000
"""Filters that are inserted one by one: a twelfth of the subscriptions, so that dynamic looks again meanwhile."""
TICKS = 20
UNIFORM = Workload("uniform")
FREE = Workload("free", fixed=0)
HALF = Workload("schemas", among=16)
OPERATORS = Workload("operators", operators=(codes.EQ, codes.EQ, codes.LE, codes.GE, codes.LE))
DISTINCT = Ranges("distinct ranges", distinct=True)
GOALS = {
    "uniform": "Goals, dynamic at 1,000,000: event <= 100 us, flat to 6,000,000; insert <= 20 us; <= 250 bytes.",
    "ranges": "Goal at 100,000: event <= 700 us.",
    "distinct ranges": "Goal at 100,000: event <= 700 us.",
}


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="subscriptions of the uniform workload")
    parser.add_argument("--ranges", type=int, default=RANGES, help="subscriptions of the ranges workload")
    parser.add_argument(
        "--churn", type=int, default=CHURN, help="subscriptions of the changing workloads; 0: none"
    )
    parser.add_argument(
        "--events", type=int, default=EVENTS, help="events per measurement, fewer where it is slow"
    )
    arguments = parser.parse_args(arguments)
    sizes = [int(size) for size in arguments.sizes.split(",")]
    warm()
    figures = {}
    for workload in (UNIFORM, FREE, OPERATORS):
        most = max((n for n in sizes if n <= OTHERS_UP_TO), default=0)
        wanted = sizes if workload is UNIFORM else [n for n in sizes if n == most]
        figures[workload.name] = {str(n): measure(workload, n, arguments.events) for n in wanted}
    for workload in (Ranges(), DISTINCT):
        figures[workload.name] = {str(arguments.ranges): measure(workload, arguments.ranges, arguments.events)}
    if arguments.churn:
        figures["schemas"] = adapt(HALF, replace(HALF, first=16), arguments.churn)
        figures["skew"] = adapt(UNIFORM, replace(UNIFORM, skewed=2), arguments.churn)
    show(figures)
    print(json.dumps(figures))
    return 0


def drawn_in_chunks(workload, n):
    rng = np.random.default_rng(SEED)
    for start in range(0, n, CHUNK):
        yield workload.draw(rng, min(CHUNK, n - start))


def measure(workload, n, events):
    """Measure every algorithm, and the scan, on the same subscriptions and events."""
    first = next(drawn_in_chunks(workload, n))
    rng = np.random.default_rng(SEED + 1)
    made = workload.events(rng, events, first)
    scan = Scan(workload, [np.concatenate(parts) for parts in zip(*drawn_in_chunks(workload, n), strict=True)])
    changes = min(n, MOST_CHANGES, max(LEAST_CHANGES, n // 12))
    filters = workload.filters(workload.draw(np.random.default_rng(SEED + 2), changes))
    few = made[: min(10, events)]
    expected = [scan.match(event).tolist() for event in few]
    figures = {"scan": {"event_us": least(scan.match, few, 1), "bytes": round(scan.size_bytes / n, 1)}}
    del scan
    with progress(f"{workload.name}, {n:,} subscriptions", len(ALGORITHMS)) as tick:
        for name in ALGORITHMS:
            figures[name] = measure_algorithm(name, workload, n, events=made, expected=expected, filters=filters)
            tick()
    return figures


def new_matcher(engine, workload):
    matcher = Matcher(engine)
    for j in range(workload.attributes):
        matcher.attribute(f"a{j}")
    return matcher


def measure_algorithm(name, workload, n, *, events, expected, filters):
    matcher, spent = new_matcher(ALGORITHMS[name], workload), 0.0
    for drawn in drawn_in_chunks(workload, n):
        batch = workload.batch(drawn)
        start = time.process_time()
        matcher.insert_many(batch)
        spent += time.process_time() - start
    start = time.process_time()
    if isinstance(matcher.engine, Static):
        matcher.engine.arrange()
    elif isinstance(matcher.engine, Dynamic):
        matcher.engine.settle()
    spent += time.process_time() - start
    if [matcher.match(event).tolist() for event in events[: len(expected)]] != expected:
        raise SystemExit(f"{name} does not match what a scan matches ({workload.name}, {n:,} subscriptions)")
    start = time.process_time()
    matcher.match(events[0])
    slow = time.process_time() - start > 0.001
    few = events[:SLOW_EVENTS] if slow else events
    figures = {
        "event_us": least(matcher.match, few, 3),
        "batch_insert_us": round(spent / n * 1e6, 2),
        "bytes": round(matcher.size_bytes / n, 1),
    }
    if isinstance(matcher.engine, Static | Dynamic):
        figures["tables"] = len(matcher.engine.clusters.schemas)
    return figures | measure_changes(matcher, filters, few)


def least(call, arguments, repetitions):
    """Return the least CPU time per call, in microseconds."""
    times = []
    for _ in range(repetitions):
        start = time.process_time()
        for argument in arguments:
            call(argument)
        times.append((time.process_time() - start) / len(arguments))
    return round(min(times) * 1e6, 1)


def measure_changes(matcher, filters, events):
    """Insert filters one by one, and delete as many; an event after all, so that nothing waits any more.

    Then once more, with an event after each insertion: what this takes above the events alone.
    """
    alone = least(matcher.match, events, 1)
    start = time.process_time()
    for wanted in filters:
        matcher.insert(wanted)
    matcher.match(events[0])
    inserted = time.process_time()
    for number in range(len(filters)):
        matcher.delete(number)
    matcher.match(events[0])
    deleted = time.process_time()
    for wanted, event in zip(filters, events, strict=False):
        matcher.insert(wanted)
        matcher.match(event)
    paired = (time.process_time() - deleted) / min(len(filters), len(events)) * 1e6
    return {
        "insert_us": round((inserted - start) / len(filters) * 1e6, 2),
        "delete_us": round((deleted - inserted) / len(filters) * 1e6, 2),
        "before_event_us": round(paired - alone, 1),
    }


def adapt(before, after, n):
    """Replace subscriptions of one workload by those of another; throughput over time, adapting or not."""
    figures = {}
    for name, engine in (("dynamic", Dynamic), ("unchanged", Static)):
        with progress(f"changing {after.name}, {name}", TICKS) as tick:
            figures[name] = throughput(engine, before, after, n, tick)
    return figures


def throughput(engine, before, after, n, tick):
    """Events per second of CPU time at each tick, and what a change (an insertion and a deletion) takes.

    At each tick a share of the subscriptions is replaced, the oldest first: by their like in the first three, then
    by those of the other workload, of which the events are too; in the last five all are of that kind.
    """
    rng = np.random.default_rng(SEED)
    matcher = new_matcher(engine, before)
    numbers = [int(x) for drawn in drawn_in_chunks(before, n) for x in matcher.insert_many(before.batch(drawn))]
    finish = matcher.engine.settle if isinstance(matcher.engine, Dynamic) else matcher.engine.arrange
    finish()
    rates, changes = [], []
    share = n // (TICKS - 8)
    for step in range(TICKS):
        now = before if step < 3 else after
        fresh = matcher_batch(now, rng, share)
        start = time.process_time()
        for number in numbers[:share]:
            matcher.delete(number)
        numbers = numbers[share:] + [int(x) for x in matcher.insert_many(fresh)]
        changes.append((time.process_time() - start) / share * 1e6)
        rates.append(1e6 / least(matcher.match, now.events(rng, 200, None), 3))
        tick()
    return {"events_per_s": [round(rate) for rate in rates], "change_us": [round(x, 1) for x in changes]}


def matcher_batch(workload, rng, count):
    return workload.batch(workload.draw(rng, count))


def show(figures):
    console = Console(width=max(115, Console().width))
    columns = ("event_us", "insert_us", "before_event_us", "batch_insert_us", "delete_us", "bytes", "tables")
    for workload in ("uniform", "free", "operators", "ranges", "distinct ranges"):
        table = Table(
            title=f"{workload}: CPU us per event and change, bytes per subscription", title_justify="left"
        )
        for name in ("subscriptions", "algorithm", *columns):
            table.add_column(name.replace("_", " "), justify="left" if name == "algorithm" else "right")
        for n, algorithms in figures[workload].items():
            for name, found in algorithms.items():
                table.add_row(f"{int(n):,}", name, *(f"{found[c]:,}" if c in found else "" for c in columns))
        console.print(table)
        if workload in GOALS:
            console.print(GOALS[workload])
    for workload in ("schemas", "skew"):
        for name, found in figures.get(workload, {}).items():
            console.print(f"{workload}, {name}: events per s over time {found['events_per_s']}")
            console.print(f"{workload}, {name}: us per change over time {found['change_us']}")
    console.print(f"Slower than 1 ms per event: {SLOW_EVENTS} events instead of {EVENTS}. Scan: 10 events, once.")


if __name__ == "__main__":
    sys.exit(main())

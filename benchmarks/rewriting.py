"""``make bench-rewriting``: who can feed whom among very many subscriptions, and how long it takes to find out.

The *table2* preset (Table 2 of the Delta paper). Each size runs in a process of its own, after compilation: the
embedding graph and up to 30 candidates per view, by CPU time, with the memory at its peak. Sizes of lists come
from generated documents, matched beforehand in another process. The baselines (every pair tested, Algorithm 3 with
its trie of label sets, Algorithm 4 in the paper's order, a feedback arc set) run on samples; figures for all views
are then extrapolated and marked so. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import pickle
import random
import resource
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from rewriting import EmbeddingGraph, find_candidates, rewritings
from rewriting.baselines.cycle_removal import feedback_arcs
from rewriting.baselines.embedding_graphs import LabelTrie, labels_of
from rewriting.baselines.greedy_covers import greedy_covers
from rewriting.candidates import BATCH, candidates
from rewriting.columns import encode
from rewriting.embedding import embeds
from rewriting.providers import feeders
from rewriting.statistics import Statistics
from scenarios.auction_documents import auction_documents
from scenarios.commands.progress import progress
from scenarios.presets import table2
from xmlmatch import Document, match

SIZES = (10_000, 100_000, 1_000_000)
K = 30
SEED = 1
DOCUMENTS = 40
CHANGES = 1_000
SAMPLE = 40
PAPER = {
    "edges": 10_592_053,
    "given_up": 18_665,
    "rewritable": 0.94835,
    "rewritings": 2_692_139,
    "rg_edges": 8_589_822,
    "views_per_rewriting": 2.15,
    "out_degree": 57.9,
    "wall_s": 579,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--most", type=int, default=100_000, help="leave out larger sets; 1000000 takes a quarter hour"
    )
    parser.add_argument("--least", type=int, default=0, help="leave out smaller sets")
    parser.add_argument("--step", choices=("statistics", "planning"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        step = {"statistics": take_statistics, "planning": plan}[arguments.step]
        print(json.dumps(step(arguments.folder)))
        return 0
    figures = {}
    for n in SIZES:
        if arguments.least <= n <= arguments.most:
            with tempfile.TemporaryDirectory() as folder:
                figures[str(n)] = measure(n, Path(folder))
    show(figures)
    print(json.dumps(figures))
    return 0


def measure(n, folder):
    """Draw the patterns, then measure them in processes of their own."""
    with progress(f"drawing {n:,} patterns", n) as tick:
        patterns = table2(SEED, n, tick).distinct
    random.Random(SEED).shuffle(patterns)  # unique patterns come smaller first
    with (folder / "patterns").open("wb") as out:
        pickle.dump([(p.nodes, p.selection, p.text) for p in patterns], out)
    del patterns
    figures = {}
    with progress(f"measuring {n:,} patterns", 2) as tick:
        for step in ("statistics", "planning"):
            command = [sys.executable, "-m", "benchmarks.rewriting", "--step", step, "--folder", str(folder)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            figures |= json.loads(done.stdout.splitlines()[-1])
            tick()
    return figures


def read_patterns(folder):
    """Read the patterns, their texts made already, as those of a running system are."""
    from xmlmatch import Pattern

    patterns = []
    with (folder / "patterns").open("rb") as data:
        for nodes, selection, text in pickle.load(data):
            pattern = Pattern(nodes, selection)
            pattern.__dict__["text"] = text
            patterns.append(pattern)
    return patterns


def generated_documents():
    return [Document.parse(data) for data in islice(auction_documents(SEED, DOCUMENTS), DOCUMENTS)]


def take_statistics(folder):
    patterns = read_patterns(folder)
    documents = generated_documents()
    start = time.process_time()
    known = Statistics.measure(patterns, documents)
    spent = time.process_time() - start
    np.save(folder / "sizes.npy", known.of_all(patterns))
    return {"statistics_cpu_s": round(spent, 2)}


def plan(folder):
    patterns = read_patterns(folder)
    known = Statistics.known(patterns, np.load(folder / "sizes.npy"))
    find_candidates(EmbeddingGraph.build(patterns[:2_000]), statistics=known)  # compiles
    cpu, wall = time.process_time(), time.perf_counter()
    graph = EmbeddingGraph.build(patterns)
    built = time.process_time() - cpu
    table = find_candidates(graph, K, statistics=known)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    figures = {
        "edges": table.edges,
        "given_up": table.given_up,
        "rewritable": round(table.rewritable / len(patterns), 4),
        "rewritings": len(table),
        "rg_edges": len(table) + len(table.members),
        "views_per_rewriting": round(len(table.members) / len(table), 3),
        "out_degree": round(len(table.members) / len(patterns), 1),
        "graph_cpu_s": round(built, 2),
        "cpu_s": round(cpu, 2),
        "wall_s": round(wall, 2),
        "peak_mb": round(peak),
    }
    rng = random.Random(SEED)
    figures |= measure_changes(graph, rng.sample(patterns, min(CHANGES, len(patterns))))
    figures |= measure_bytes(table, patterns, known, rng)
    return figures | measure_baselines(graph, patterns, known, rng)


def measure_bytes(table, patterns, known, rng):
    """Send the cheapest candidates of some views over documents: estimated over encoded bytes, links apart."""
    documents = generated_documents()
    estimated = sent = 0
    for q in rng.sample([q for q in range(len(patterns)) if table.of(q)], SAMPLE):
        views = [patterns[u] for u in table.of(q)[0][1]]
        rewriting = next(rewritings(patterns[q], views, 1, statistics=known))
        estimated += sum(link.cost for link in rewriting.links) * len(documents) / 1000
        for link in rewriting.links:
            sent += sum(len(encode(link.send(match(link.view, d)))) for d in documents)
    return {"bytes_estimated_over_sent": round(estimated / sent, 2)}


def measure_changes(graph, patterns):
    """Time removing patterns and adding them again, one by one, edges included."""
    times = {"remove": [], "add": []}
    for name, change in (("remove", graph.remove), ("add", graph.add)):
        change(patterns[0])
        for pattern in patterns[1:]:
            start = time.perf_counter()
            change(pattern)
            times[name].append(time.perf_counter() - start)
    return {f"{name}_p99_ms": round(float(np.percentile(spent, 99)) * 1000, 2) for name, spent in times.items()}


def measure_baselines(graph, patterns, known, rng):
    """Run the baselines on samples; what is named ``..._extrapolated_s`` was multiplied up to all views."""
    n = len(patterns)
    pairs = [(rng.choice(patterns), rng.choice(patterns)) for _ in range(3_000)]
    naive = seconds(lambda: [embeds(u, q) for u, q in pairs]) / len(pairs) * n * n
    trie = LabelTrie()
    filling = seconds(lambda: [trie.insert(labels_of(p), i) for i, p in enumerate(patterns)])
    some = rng.sample(patterns, 5)
    looking = seconds(
        lambda: [embeds(patterns[u], q) for q in some for u in islice(trie.subsets(labels_of(q)), 2_000)]
    )
    tested = sum(min(2_000, sum(1 for _ in trie.subsets(labels_of(q)))) for q in some)
    near = [sum(1 for _ in trie.subsets(labels_of(q))) for q in rng.sample(patterns, SAMPLE)]
    algorithm3 = filling + looking / max(tested, 1) * sum(near) / len(near) * n
    return (
        {"naive_extrapolated_s": round(naive), "algorithm3_extrapolated_s": round(algorithm3)}
        | measure_covers(graph, patterns, known, rng)
        | measure_cycles(patterns)
    )


def measure_covers(graph, patterns, known, rng):
    """Compare candidates with Algorithm 4's covers on a sample of queries: time, cost of the cheapest, views."""
    ours, theirs, times, views = [], [], [0.0, 0.0], []
    for query in rng.sample(patterns, SAMPLE):
        numbers = graph.feeders_of(graph.number(query)).tolist()
        able = feeders(query, [graph.pattern(u) for u in numbers], known)
        start = time.process_time()
        mine = next(iter(candidates(query, able, K, effort=BATCH)), None)
        times[0] += time.process_time() - start
        start = time.process_time()
        papers = list(greedy_covers(query, able, K, tries=2_000))
        times[1] += time.process_time() - start
        if mine and papers:
            ours.append(mine.cost)
            theirs.append(min(cost_of(cover, able, query) for cover in papers))
            views += [len(cover) for cover in papers]
    return {
        "algorithm4_extrapolated_s": round(times[1] / SAMPLE * len(patterns)),
        "algorithm4_cost_ratio": round(sum(theirs) / max(sum(ours), 1), 2),
        "algorithm4_views_per_rewriting": round(sum(views) / max(len(views), 1), 2),
    }


def cost_of(cover, able, query):
    from rewriting.statistics import DOCUMENTS as PER
    from rewriting.statistics import LINK_BYTES

    nodes = (
        min(able[v].provisions[n].cost for v in cover if n in able[v].provisions) for n in range(len(query.nodes))
    )
    return sum(nodes) + LINK_BYTES * PER * len(cover)


def measure_cycles(patterns):
    """Break the cycles of a smaller graph both ways and count the edges lost."""
    some = EmbeddingGraph.build(patterns[:10_000])
    edges = list(map(tuple, some.edges().tolist()))
    start = time.process_time()
    removed = feedback_arcs(edges)
    spent = time.process_time() - start
    known = set(edges)
    return {
        "cycles_sample": {
            "views": len(some),
            "edges": len(edges),
            "feedback_arcs": len(removed),
            "feeding_order": sum((q, u) in known for u, q in edges) // 2,
            "feedback_arcs_s": round(spent, 2),
        }
    }


def seconds(work):
    start = time.process_time()
    work()
    return time.process_time() - start


def show(figures):
    console = Console(highlight=False, width=110)
    names = {
        "edges": "EG edges",
        "given_up": "given up against cycles",
        "rewritable": "share rewritable",
        "rewritings": "rewritings (k = 30)",
        "rg_edges": "RG edges",
        "views_per_rewriting": "views per rewriting",
        "out_degree": "mean out-degree",
        "graph_cpu_s": "graph, CPU s",
        "cpu_s": "graph and candidates, CPU s",
        "wall_s": "the same, wall s",
        "peak_mb": "peak memory, MB",
        "statistics_cpu_s": f"statistics of {DOCUMENTS} documents, CPU s",
        "add_p99_ms": "add a view, p99 ms",
        "remove_p99_ms": "remove a view, p99 ms",
        "bytes_estimated_over_sent": "bytes, estimated / encoded",
        "naive_extrapolated_s": "every pair tested, s *",
        "algorithm3_extrapolated_s": "Algorithm 3, s *",
        "algorithm4_extrapolated_s": "Algorithm 4, s *",
        "algorithm4_cost_ratio": "its cheapest cover / ours, cost",
        "algorithm4_views_per_rewriting": "its views per rewriting",
    }
    table = Table(title="Who can feed whom (table2)", title_justify="left")
    table.add_column("")
    for n in figures:
        table.add_column(f"{int(n):,} views", justify="right")
    table.add_column("paper, 100,000", justify="right")
    for key, name in names.items():
        cells = [number(f[key]) for f in figures.values()]
        table.add_row(name, *cells, number(PAPER[key]) if key in PAPER else "")
    console.print(table)
    console.print("* measured on a sample and extrapolated. The paper's seconds: 8 cores of 2.93 GHz.")
    for n, f in figures.items():
        cycles = f["cycles_sample"]
        console.print(
            f"Cycles among {cycles['views']:,} of {int(n):,} views, {cycles['edges']:,} edges: the feeding order "
            f"gives up {cycles['feeding_order']:,}, a feedback arc set {cycles['feedback_arcs']:,}."
        )


def number(value):
    return f"{value:,}"


if __name__ == "__main__":
    sys.exit(main())

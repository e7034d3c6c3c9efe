"""``make bench-planner``: full plans of the table2 preset as Spark batches, cold, at several limits.

Each plan is a run of ``distributary plan`` in a process of its own: starting Python and Spark, parsing,
statistics, candidates, solving, LOGA and the second pass, writing. Memory is that of the whole tree of
processes. For scale, the program of the smallest set is also given to HiGHS as a whole. The last line is JSON.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

SEED = 1
LIMITS = ("30", "50", "100", "none")
DOCUMENTS = 40
MONOLITHIC_S = 120


def source_feeds(count, limit):
    """The limit of the source: what these sets need at B = 30 (each has a part that nobody else can feed), and a
    tenth; at B = 50 as few feeds as leave it 94 % off-loaded."""
    if (count, limit) == (100_000, "50"):
        return 6_600
    return {10_000: 6_000}.get(count, count // 10)


def tree_mb(root):
    """Sum the resident memory of a process and all below it."""
    children, memory = {}, {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                fields = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
            memory[int(entry.name)] = int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
    total, left = 0, [root]
    while left:
        process = left.pop()
        total += memory.get(process, 0)
        left += children.get(process, [])
    return total / 1e6


def run_plan(subscriptions, documents, out, limit, source, seconds=120):
    """Run one plan and return its figures, seconds from outside, and the peak memory of all its processes."""
    command = [
        str(Path(sys.executable).with_name("distributary")), "plan", "--subscriptions", str(subscriptions),
        "--documents", str(documents), "--out", str(out), "--max-feeds", limit, "--source-feeds", str(source),
        "--time-limit", str(seconds), "--json",
    ]  # fmt: skip
    started, peak = time.monotonic(), [0.0]
    with tempfile.TemporaryFile("w+") as answer:
        process = subprocess.Popen(command, stdout=answer)

        def watch():
            while process.poll() is None:
                peak[0] = max(peak[0], tree_mb(process.pid))
                time.sleep(0.3)

        watcher = threading.Thread(target=watch)
        watcher.start()
        status = process.wait()
        watcher.join()
        answer.seek(0)
        if status:
            sys.exit(f"the plan failed with status {status}")
        return json.loads(answer.read()), time.monotonic() - started, peak[0]


def told(figures, seconds, peak):
    """Pick what the benchmark reports."""
    latency, used = figures["latency_s"], figures["utilization"]
    return {
        "seconds": {**figures["seconds"], "total": round(seconds, 1)},
        "optimal": figures["outcome"] == "optimal",
        "gap": figures["gap"],
        "offloaded": round(figures["offloaded"], 4),
        "latency_ilp": round(latency["ilp"], 4),
        "latency_ties": round(latency["ties"], 4),
        "latency_loga": round(latency["loga"], 4),
        "latency_best": round(latency["best"], 4),
        "latency_bound": round(latency["bound"], 4),
        "paper_latency_ilp": round(figures["paper_latency_s"]["ilp"], 4),
        "paper_latency_best": round(figures["paper_latency_s"]["best"], 4),
        "utilization_ilp": used["ilp"],
        "utilization_loga": used["loga"],
        "utilization_best": used["best"],
        "utilization_bound": used["bound"],
        "views_per_rewriting": round(figures["views_per_rewriting"], 3),
        "joined_share": round(figures["joined_share"], 3),
        "levels_ilp": len(figures["levels"]["ilp"]) - 1,
        "levels_best": len(figures["levels"]["best"]) - 1,
        "levels": figures["levels"],
        "peak_mb": round(peak),
    }


def monolithic(subscriptions, documents, limit, source):
    """Give the whole program to HiGHS: seconds, outcome, and ours on the same program in the same process."""
    import pyarrow.parquet

    from planner.problem import Problem, Subscription
    from planner.rewritability import build
    from planner.selection import _model, select
    from planner.solver import solve
    from rewriting.candidate_table import find_candidates
    from rewriting.pricing import price
    from rewriting.statistics import Statistics
    from xmlmatch import Document, Pattern

    rows = pyarrow.parquet.read_table(subscriptions).to_pylist()
    wanted = [Subscription(r["subscription"], Pattern.parse(r["pattern"]), r["site"], limit) for r in rows]
    known = Statistics.measure(
        [s.pattern for s in wanted], [Document.parse(p.read_bytes()) for p in sorted(documents.glob("*.xml"))]
    )
    problem = Problem.of(wanted, source_feeds=source, statistics=known)
    table = find_candidates(problem.graph, statistics=known, link_bytes=problem.weights.link_bytes)
    program = build(problem, table, price(problem.graph, table, known, problem.weights))
    select(program.choices)  # the first call may load compiled code
    started = time.monotonic()
    ours = select(program.choices)
    ours_s = time.monotonic() - started
    started = time.monotonic()
    answer = solve(_model(program.choices)[0], seconds=MONOLITHIC_S, solver="highs")
    theirs_s = time.monotonic() - started
    return {
        "views": len(rows), "limit": limit, "seconds": round(theirs_s, 1), "outcome": answer.outcome.value,
        "ours_seconds": round(ours_s, 2), "ours_outcome": ours.outcome.value, "ratio": round(theirs_s / ours_s, 1),
    }  # fmt: skip


def prepare(folder, count):
    """Draw the subscriptions and write them, with sample documents."""
    import pyarrow as pa
    import pyarrow.parquet

    from scenarios.auction_documents import auction_documents
    from scenarios.presets import table2

    documents = folder / "documents"
    documents.mkdir(exist_ok=True)
    for i, data in enumerate(auction_documents(SEED, DOCUMENTS)):
        (documents / f"{i:03}.xml").write_bytes(data)
    patterns = [pattern.text for pattern in table2(SEED, count).subscriptions]
    names = [f"s{i}" for i in range(count)]
    path = folder / f"{count}.parquet"
    pyarrow.parquet.write_table(pa.table({"subscription": names, "pattern": patterns, "site": names}), path)
    return path, documents


def show(count, limit, one):
    """Print a row of the table."""
    gain = one["latency_best"] / one["latency_ilp"] - 1
    more = one["utilization_best"] / one["utilization_ilp"] - 1
    choice = "optimal" if one["optimal"] else f"{one['gap']:.1e}"
    ms = [1000 * one[f"latency_{stage}"] for stage in ("ilp", "ties", "loga", "best", "bound")]
    print(
        f"{count:>9,} {limit:>5} {one['seconds']['total']:>7.1f} {one['peak_mb']:>7,} {one['offloaded']:>8.2%}",
        f"{choice:>9} {one['utilization_ilp']:>15,}",
        *(f"{value:>6.0f}" for value in ms),
        f"{gain:>7.1%} {more:>6.1%} {one['levels_ilp']:>4} {one['levels_best']:>4}",
        flush=True,
    )


def main():
    """Run all plans and print the table and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=100_000, metavar="N", help="the largest set (100,000)")
    parser.add_argument("--least", type=int, default=10_000, metavar="N", help="the smallest set (10,000)")
    parser.add_argument("--limits", default=",".join(LIMITS), metavar="B,...", help="plan limits")
    arguments = parser.parse_args()
    sizes = [n for n in (10_000, 100_000, 1_000_000) if arguments.least <= n <= arguments.most]
    found = {}
    with tempfile.TemporaryDirectory(prefix="bench-planner-") as name:
        folder = Path(name)
        print(
            "    views     B       s      MB      off    choice     utilization   ILP   ties   LOGA   best  bound"
        )
        for count in sizes:
            subscriptions, documents = prepare(folder, count)
            found[str(count)] = {}
            for limit in arguments.limits.split(","):
                answer = run_plan(
                    subscriptions, documents, folder / f"out-{count}-{limit}", limit, source_feeds(count, limit)
                )
                one = told(*answer)
                found[str(count)][limit] = one
                show(count, limit, one)
            if count == 10_000:
                found["monolithic"] = monolithic(subscriptions, documents, 30, source_feeds(count, "30"))
                print(f"HiGHS on the whole program: {found['monolithic']}", flush=True)
    print("latencies in ms, mean per subscription; then best against ILP: latency, utilization; levels of both")
    print(json.dumps(found))


if __name__ == "__main__":
    main()

"""``make bench-capacity``: how many subscriptions and documents per second one source and some hosts carry.

The *wan* preset on loopback. Subscriptions are added step by step; at each step documents are published as fast
as the source takes them. The rate at which everybody has them is what the network carries. Then, at the last step,
documents come at shares of that rate, which shows how delivery times rise towards it; above it lag grows without
end. Last, networks of other sizes get as many subscriptions. The last line is JSON.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.capacity_picture import picture
from benchmarks.network import Bench, say
from peer.daemon.relaying import MODES
from scenarios.auction_documents import auction_documents
from scenarios.presets import wan
from scenarios.processes import running

SEED = 1
STEPS = (200, 1_000, 2_000, 4_000, 8_000)
SHARES = (0.25, 0.5, 0.75, 0.9, 1.1)
SIZES = (5, 10, 40)
OF_SIZES = 2_000
"""How many subscriptions networks of other sizes have."""
FIGURES = (
    "documents_per_s",
    "delivery_p50_s",
    "delivery_p99_s",
    "cpu_ms_per_batch",
    "source_cpu_s",
    "total_cpu_s",
)


def main():
    arguments = read_arguments()
    bodies = list(auction_documents(SEED, arguments.documents))
    patterns = wan(SEED, max(arguments.steps)).subscriptions
    found = {"peers": arguments.peers, "relay": arguments.relay, "steps": {}, "rates": {}, "sizes": {}}
    with tempfile.TemporaryDirectory(prefix="bench-capacity-") as folder, running(Path(folder)) as network:
        bench = Bench(network, arguments, bodies)
        bench.start()
        for done, wanted in zip((0, *arguments.steps), arguments.steps, strict=False):
            say(f"subscribing {wanted - done:,} times")
            bench.subscribe(patterns[done:wanted])
            bench.steady()
            bench.calm()
            found["steps"][str(wanted)] = figures(bench.phase(bodies, None))
        most = found["steps"][str(arguments.steps[-1])]["documents_per_s"]
        for share in SHARES:
            say(f"publishing at {share:.0%} of {most} documents/s")
            found["rates"][str(share)] = figures(bench.phase(bodies, most * share))
    for size in arguments.sizes:
        say(f"{size} peers")
        found["sizes"][str(size)] = of_size(size, arguments, patterns[:OF_SIZES], bodies)
    show(found)
    if arguments.svg:
        arguments.svg.write_text(picture(found))
    print(json.dumps(found))
    return 0


def of_size(size, arguments, patterns, bodies):
    """Return what a network of so many peers carries."""
    own = argparse.Namespace(**{**vars(arguments), "peers": size})
    with tempfile.TemporaryDirectory(prefix="bench-capacity-") as folder, running(Path(folder)) as network:
        bench = Bench(network, own, bodies)
        bench.start()
        bench.subscribe(patterns)
        bench.steady()
        bench.calm()
        return figures(bench.phase(bodies, None))


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peers", type=int, default=20, metavar="N", help="(20)")
    parser.add_argument("--documents", type=int, default=60, metavar="N", help="per phase (60)")
    parser.add_argument(
        "--steps", type=int, nargs="+", default=STEPS, metavar="N", help="subscriptions over all peers"
    )
    parser.add_argument(
        "--sizes", type=int, nargs="*", default=SIZES, metavar="N", help="other numbers of peers (5 10 40)"
    )
    parser.add_argument("--limit", type=int, default=30, metavar="B", help="of a subscription's feeds (30)")
    parser.add_argument("--relay", choices=MODES, default="auto", help="of the peers (auto)")
    parser.add_argument("--patience", type=float, default=600, metavar="S", help="for each phase (600)")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw the curves, too")
    return parser.parse_args()


def figures(phase):
    return {name: phase[name] for name in (*FIGURES, "batches", "documents", "source_feeds", "others_cores")}


def show(found):
    table = Table(title=f"one source and {found['peers']} peers, relays: {found['relay']}", title_justify="left")
    for heading in ("", "documents/s", "p50, s", "p99, s", "CPU ms/batch", "source CPU, s", "all CPU, s"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, one in found["steps"].items():
        table.add_row(f"{int(name):,} subscriptions, at once", *(f"{one[figure]:g}" for figure in FIGURES))
    for name, one in found["rates"].items():
        table.add_row(f"at {float(name):.0%} of what it carries", *(f"{one[figure]:g}" for figure in FIGURES))
    for name, one in found["sizes"].items():
        label = f"{OF_SIZES:,} subscriptions on {name} peers, at once"
        table.add_row(label, *(f"{one[figure]:g}" for figure in FIGURES))
    Console(highlight=False).print(table)


if __name__ == "__main__":
    sys.exit(main())

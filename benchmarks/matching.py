"""``make bench-matching``: how long it takes to parse, index and match, against one XPath after another.

CPU time, the best of several rounds over the same documents, everything in one run, so that the ratios hold on a
noisy machine. Documents: real XMark ones of 20-40 KB from ../shared/data/xmark where present, else generated.
Patterns: the *table2* preset, and *wan*, of which
nearly all match. lxml evaluates, per pattern, the compiled XPath of its first returning node, which
asks less of it than the complete node sets asked of us. As it is slow, the ratio is taken on some of the
documents, the same ones and as many rounds for both. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
from lxml import etree
from rich.console import Console
from rich.table import Table

from scenarios.auction_documents import auction_document
from scenarios.commands.progress import progress
from scenarios.presets import table2, wan
from xmlmatch import Document, Matcher, NodeSets, RowLimitError
from xmlmatch.xpath import to_xpath

REAL = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "xmark"
SIZES = (72, 1_000, 10_000, 100_000)
WAN = 10_000
SEED = 1
ROWS_PER_PATTERN = 1_000
SAMPLE = 30


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--most", type=int, default=100_000, help="leave out larger sets of patterns")
    parser.add_argument("--documents", type=int, default=40, help="how many documents at the most")
    arguments = parser.parse_args()
    data, source = read_documents(arguments.documents)
    sizes = [n for n in SIZES if n <= arguments.most]
    with progress("drawing patterns", max(sizes)) as tick:
        workload = table2(SEED, max(sizes), tick)
    patterns = workload.distinct
    np.random.default_rng(SEED).shuffle(patterns)  # unique patterns come smaller first
    figures = {"documents": len(data), "source": source, "seed": SEED}
    figures["pattern"] = {
        "nodes": round(workload.nodes, 2),
        "predicates": round(workload.predicates, 2),
        "returns": round(workload.returns, 2),
    }
    figures |= measure_documents(data)
    documents = [Document.parse(d) for d in data]
    figures["patterns"] = {}
    with progress("matching", len(sizes)) as tick:
        for n in sizes:
            figures["patterns"][str(n)] = measure_matching(patterns[:n], documents, data, figures)
            tick()
    crowd = wan(SEED, WAN).subscriptions
    figures["wan"] = {str(WAN): measure_matching(crowd, documents, data, figures)}
    figures |= measure_store(patterns)
    sample = [p for p in patterns[: 2 * SAMPLE] if all(n.label != "to" for n in p.nodes)]  # Saxon warns of "to"
    figures |= measure_slow_rivals(sample[:SAMPLE], data[:2])
    show(figures)
    print(json.dumps(figures))
    return 0


def read_documents(most):
    """Return documents of 20-40 KB and where they come from."""
    if REAL.is_dir():
        found = [path.read_bytes() for path in sorted(REAL.glob("*.xml"))]
        return [d for d in found if 20_000 <= len(d) <= 40_960][:most], "XMark"
    return [auction_document(seed, size_bytes=20_000 + 500 * seed) for seed in range(min(most, 40))], "generated"


def best_ms(work, items, rounds):
    """Milliseconds of CPU per item: the best round over all the items."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        for item in items:
            work(item)
        times.append(time.process_time() - start)
    return min(times) / len(items) * 1000


def measure_documents(data):
    parse = best_ms(Document.parse, data, 10)
    both = best_ms(lambda d: Document.parse(d).index, data, 10)
    return {
        "kilobytes": round(sum(map(len, data)) / len(data) / 1000, 1),
        "nodes": round(sum(len(Document.parse(d)) for d in data) / len(data)),
        "parse_ms": round(parse, 3),
        "index_ms": round(max(both - parse, 0), 3),
        "lxml_parse_ms": round(best_ms(etree.fromstring, data, 10), 3),
    }


def measure_matching(patterns, documents, data, figures):
    """Match all patterns, enumerate rows on a few documents, and run lxml's loop on as many as time allows."""
    matcher = Matcher(patterns)
    for document in documents:
        matcher.match(document)
    found = [matcher.match(document) for document in documents]
    match = best_ms(matcher.match, documents, 12 if len(patterns) <= 10_000 else 6)
    some = 20 if len(patterns) <= 1_000 else 10 if len(patterns) <= 10_000 else 3
    rounds = 3 if len(patterns) <= 10_000 else 1
    rows = best_ms(lambda m: enumerate_rows(m, patterns), found[: min(some, 4)], 1)
    # The ratio compares like with like: the same documents, as many rounds for either side.
    ours = best_ms(matcher.match, documents[:some], rounds)
    lxml = lxml_ms(patterns, data[:some], rounds)
    share = sum(map(len, found)) / len(found) / len(patterns)
    return {
        "match_ms": round(match, 3),
        "total_ms": round(figures["parse_ms"] + figures["index_ms"] + match, 3),
        "rows_ms": round(rows, 2),
        "lxml_ms": round(lxml, 2),
        "ratio": round(lxml / ours, 1),
        "ratio_documents": some,
        "matching_share": round(share, 3),
        "sub_patterns": matcher.sub_patterns,
        "node_entries": round(sum(int(np.diff(m.set_first)[m.results].sum()) for m in found) / len(found)),
    }


def enumerate_rows(matches, patterns):
    """Make every row of every matching pattern as Python values, up to a limit each."""
    for i, key in enumerate(matches.keys.tolist()):
        rows = NodeSets(patterns[key], matches.document, matches.sets(i)).rows(ROWS_PER_PATTERN)
        try:
            for _ in rows:
                pass
        except RowLimitError:
            continue


def lxml_ms(patterns, data, rounds):
    paths = [to_xpath(pattern, pattern.returning[0]) for pattern in patterns]
    compiled = [etree.XPath(path.text, namespaces=path.namespaces or None) for path in paths]
    trees = [etree.fromstring(d).getroottree() for d in data]
    return best_ms(lambda tree: [path(tree) for path in compiled], trees, rounds)


def measure_store(patterns):
    """Time ``add`` onto a large matcher, and weigh what it keeps per pattern."""
    tenth = len(patterns) // 10
    times = []
    matcher = Matcher(patterns[tenth:])
    for _ in range(5):
        start = time.process_time()
        keys = [matcher.add(pattern) for pattern in patterns[:tenth]]
        times.append(time.process_time() - start)
        for key in keys:
            matcher.remove(key)
    add = min(times) / tenth
    tracemalloc.start()
    kept = Matcher(patterns)
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return {"add_us": round(add * 1e6, 1), "bytes_per_pattern": round(size / len(kept))}


def measure_slow_rivals(patterns, data):
    """Run elementpath and Saxon on a small sample, in ms per pattern and document."""
    import elementpath
    from saxonche import PySaxonProcessor

    paths = [to_xpath(p, p.returning[0]).text for p in patterns]
    trees = [etree.fromstring(d) for d in data]
    slow = best_ms(
        lambda t: [elementpath.select(t, path, parser=elementpath.XPath1Parser) for path in paths], trees, 1
    )
    with PySaxonProcessor(license=False) as saxon:
        xpath = saxon.new_xpath_processor()
        xpath.set_backwards_compatible(True)
        xpath.set_caching(True)
        nodes = [saxon.parse_xml(xml_text=d.decode()) for d in data]

        def evaluate(node):
            xpath.set_context(xdm_item=node)
            for path in paths:
                xpath.evaluate(path)

        best_ms(evaluate, nodes, 1)
        quick = best_ms(evaluate, nodes, 3)
    count = len(patterns)
    return {"elementpath_ms_per_pattern": round(slow / count, 3), "saxon_ms_per_pattern": round(quick / count, 4)}


def show(figures):
    console = Console(highlight=False)
    console.print(
        f"{figures['documents']} {figures['source']} documents of {figures['kilobytes']} KB, "
        f"{figures['nodes']} nodes: parse {figures['parse_ms']} ms (lxml's tree {figures['lxml_parse_ms']} ms), "
        f"index {figures['index_ms']} ms"
    )
    pattern = figures["pattern"]
    console.print(
        f"Unique patterns of {pattern['nodes']} nodes, {pattern['predicates']} predicates, {pattern['returns']} "
        f"returns (table2); and {WAN:,} subscriptions of which 30 % are distinct (wan)"
    )
    table = Table(title="CPU milliseconds per document", title_justify="left")
    for heading in (
        "patterns", "shared as", "match", "in all", "rows", "lxml loop", "ratio", "matching",
    ):  # fmt: skip
        table.add_column(heading, justify="right")
    rows = [(f"{int(n):,}", f) for n, f in figures["patterns"].items()]
    rows += [(f"{int(n):,} wan", f) for n, f in figures["wan"].items()]
    for name, f in rows:
        table.add_row(
            name, f"{f['sub_patterns']:,}", f"{f['match_ms']:.3f}", f"{f['total_ms']:.2f}",
            f"{f['rows_ms']:.1f}", f"{f['lxml_ms']:.1f}", f"{f['ratio']:.0f} x", f"{f['matching_share']:.0%}",
        )  # fmt: skip
    console.print(table)
    console.print(
        f"add: {figures['add_us']} us per pattern; memory: {figures['bytes_per_pattern']} bytes per pattern. "
        f"Per pattern and document, on a sample of {SAMPLE}: "
        f"elementpath {figures['elementpath_ms_per_pattern']} ms, Saxon {figures['saxon_ms_per_pattern']} ms."
    )


if __name__ == "__main__":
    sys.exit(main())

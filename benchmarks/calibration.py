"""Shows how near generated auction documents are to real XMark documents of the same sizes.

Run as ``python -m benchmarks.calibration [--data DIR] [--seed N]``.  For each real document one is generated
that is as long; both sets are measured in the same way and printed side by side, with a JSON object of the
same figures on the last line.  A label is *frequent* if real documents hold two of it on average.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from lxml import etree

from scenarios.auction_documents import auction_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

DEFAULT_DATA = Path("../shared/data/xmark")
FREQUENT_PER_DOCUMENT = 2.0
KINDS = {
    "empty": r"\s*",
    "number": r"\d+(\.\d+)?",
    "date": r"\d\d/\d\d/\d{4}",
    "time": r"\d\d:\d\d:\d\d",
    "id or reference": r"(item|person|category|open_auction)\d+",
    "address": r".*(mailto:|http://).*",
    "digits": r"[+\d][\d ()]*",
    "words": r"[\s\S]*",
}
FAN_OUTS = {
    "bidder": "open_auction",
    "mail": "mailbox",
    "incategory": "item",
    "interest": "profile",
    "watch": "watches",
    "listitem": "parlist",
    "bold": "text",
}
OPTIONAL = {
    "person": ("phone", "address", "homepage", "creditcard", "profile", "watches"),
    "profile": ("education", "gender", "age"),
    "address": ("province",),
    "open_auction": ("reserve", "privacy"),
    "description": ("parlist",),
    "listitem": ("parlist",),
}
PIECES = ("item", "category", "person", "open_auction", "closed_auction")
NUMBERS = ("initial", "current", "reserve", "increase", "price", "age", "zipcode", "happiness", "quantity")


@dataclass
class Measures:
    """What was counted over one set of documents."""

    documents: int = 0
    size_bytes: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    attributes: Counter[str] = field(default_factory=Counter)
    depths: Counter[int] = field(default_factory=Counter)
    deepest: Counter[int] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    samples: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, document: bytes) -> None:
        """Count one document."""
        self.documents += 1
        self.size_bytes += len(document)
        # Real documents hold no DTD; entities stay unresolved all the same.
        root = etree.fromstring(document, etree.XMLParser(resolve_entities=False))
        self.deepest[self._add_element(root, 1)] += 1

    def _add_element(self, element: etree._Element, depth: int) -> int:
        label = str(element.tag)
        self.labels[label] += 1
        self.depths[depth] += 1
        for name, value in element.items():
            self.attributes[f"{label}@{name!s}"] += 1
            self._add_value(f"@{name!s}", str(value))
        # One count per parent that has such a child, however many it has.
        self.pairs.update((label, child) for child in sorted({str(child.tag) for child in element}))
        if not len(element) and element.text is not None:
            self._add_value(label, element.text)
        if label == "text":
            self.samples["words per text"].append(len("".join(map(str, element.itertext())).split()))
        if label in PIECES:
            self.samples[f"bytes per {label}"].append(len(etree.tostring(element, with_tail=False)) + 1)
        return max([depth, *(self._add_element(child, depth + 1) for child in element)])

    def _add_value(self, label: str, value: str) -> None:
        self.kinds[next(kind for kind, form in KINDS.items() if re.fullmatch(form, value))] += 1
        if label in NUMBERS or label == "@income":
            self.samples[label].append(float(value))


def figures(measures: Measures) -> dict[str, dict[str, float]]:
    """Turn counts into the figures that are compared, by section and name."""
    kilobytes = measures.size_bytes / 1024
    elements, attributes = measures.labels.total(), measures.attributes.total()
    return {
        "whole": {
            "bytes per document": measures.size_bytes / measures.documents,
            "elements per KB": elements / kilobytes,
            "attributes per KB": attributes / kilobytes,
            "nodes per KB": (elements + attributes) / kilobytes,
        },
        "label per document": _ratios(measures.labels, measures.documents),
        "attribute per document": _ratios(measures.attributes, measures.documents),
        "children per parent": {
            f"{parent}/{child}": measures.labels[child] / max(1, measures.labels[parent])
            for child, parent in FAN_OUTS.items()
        },
        "share that has it": {
            f"{parent}/{child}": measures.pairs[parent, child] / max(1, measures.labels[parent])
            for parent, children in OPTIONAL.items()
            for child in children
        },
        "share at depth": _ratios(measures.depths, elements),
        "share of documents this deep": _ratios(measures.deepest, measures.documents),
        "share of values": _ratios(measures.kinds, measures.kinds.total()),
        "distribution": dict(_quantiles(measures.samples)),
    }


def _ratios(counts: Mapping[str, int] | Mapping[int, int], total: int) -> dict[str, float]:
    return {str(key): count / total for key, count in counts.items()}


def _quantiles(samples: Mapping[str, Sequence[float]]) -> Iterator[tuple[str, float]]:
    for name, values in sorted(samples.items()):
        ordered = sorted(values)
        yield f"{name}: mean", fmean(ordered)
        for percent in (10, 50, 90):
            yield f"{name}: {percent} %", ordered[(len(ordered) - 1) * percent // 100]


def rows(
    real: Mapping[str, Mapping[str, float]], made: Mapping[str, Mapping[str, float]]
) -> Iterator[tuple[str, str, float, float]]:
    """Pair the figures of both sets; a figure that one set lacks is zero there."""
    for section, names in real.items():
        order = {**names, **made[section]}
        if section in ("label per document", "attribute per document"):
            order = dict(sorted(order.items(), key=lambda entry: (-names.get(entry[0], 0.0), entry[0])))
        if "depth" in section or "deep" in section:
            order = dict(sorted(order.items(), key=lambda entry: int(entry[0])))
        for name in order:
            yield section, name, names.get(name, 0.0), made[section].get(name, 0.0)


def summary(table: Iterable[tuple[str, str, float, float]]) -> dict[str, object]:
    """Condense the table into what the generator promises."""
    table = list(table)
    frequent = [row for row in table if row[0] == "label per document" and row[2] >= FREQUENT_PER_DOCUMENT]
    off = [name for _, name, real, made in frequent if abs(made / real - 1) > 0.2]
    nodes = next(made / real for _, name, real, made in table if name == "nodes per KB")
    return {
        "frequent_labels": len(frequent),
        "frequent_labels_off_by_over_20_percent": off,
        "mean_frequent_label_deviation": round(fmean(abs(m / r - 1) for _, _, r, m in frequent), 4),
        "nodes_per_kb_ratio": round(nodes, 4),
        "depth_share_distance": _distance(table, "share at depth"),
        "value_kind_distance": _distance(table, "share of values"),
    }


def _distance(table: Iterable[tuple[str, str, float, float]], section: str) -> float:
    """Half the sum of differences of shares: 0 for equal distributions, 1 for disjoint ones."""
    return round(sum(abs(real - made) for where, _, real, made in table if where == section) / 2, 4)


def show(table: Iterable[tuple[str, str, float, float]]) -> None:
    """Print the table, one heading per section."""
    current = ""
    for section, name, real, made in table:
        if section != current:
            current = section
            print(f"\n{section:<44}{'real':>12}{'generated':>12}{'ratio':>8}")
        ratio = f"{made / real:8.2f}" if real else f"{'-':>8}"
        print(f"  {name:<42}{real:>12.3f}{made:>12.3f}{ratio}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the process's exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration", description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder of real XMark documents")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first generated document")
    options = parser.parse_args(arguments)
    paths = sorted(options.data.glob("*.xml"))
    if not paths:
        print(f"no XMark documents (*.xml) in {options.data}", file=sys.stderr)
        return 1
    real, made = Measures(), Measures()
    for number, path in enumerate(paths):
        document = path.read_bytes()
        real.add(document)
        made.add(auction_document(options.seed + number, size_bytes=len(document)))
    table = list(rows(figures(real), figures(made)))
    show(table)
    print()
    print(json.dumps({"documents": len(paths), "seed": options.seed, **summary(table)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Named workloads: the patterns of the papers' experiments, from a seed.

``table2``: Table 2 of the Delta paper: unique views with 6.13 nodes, 0.72 predicates and 2.52 returning nodes on
average. Fitted at 100,000 views; fewer are a little smaller, for small patterns are soon used up.
``wan``: its section 5.5: of all subscriptions 30 % are distinct and the rest repeat them, popular ones most; every
document of 10 to 40 KB matches at least 90 % of them. Broad ones (a label, with its content) are among them, as
popular topics are in practice, so that of 3,000 distinct ones all but about 55 can be computed from others.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from scenarios.auction_documents import auction_documents
from scenarios.subscriptions import Shape, unique_patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from xmlmatch import Document, Matcher, Pattern

TABLE2: Final = Shape(
    sizes=(1, 3, 7, 11, 15, 17, 15, 10, 6.5, 3, 2, 1),
    rooted=0.1,
    descendant=0.2,
    branch=0.35,
    attribute=0.15,
    predicates=(27.5, 43.5, 29),
    extra_return=0.294,
)
WAN: Final = replace(TABLE2, sizes=(1, 4, 8, 10, 8, 5, 3, 1), rooted=0.05, descendant=0.3, predicates=(1,))
_DISTINCT_SHARE: Final = 0.3
_PANEL: Final = 24
_PANEL_SEED: Final = 990_000
_ZIPF: Final = 0.8
_FEWEST_LABELS: Final = 24


@dataclass(frozen=True, slots=True)
class Workload:
    """Subscriptions in the order they arrive; ``distinct`` lists each pattern once."""

    subscriptions: list[Pattern]
    distinct: list[Pattern]

    @property
    def nodes(self) -> float:
        """Nodes per distinct pattern."""
        return sum(len(p.nodes) for p in self.distinct) / len(self.distinct)

    @property
    def predicates(self) -> float:
        """Value predicates per distinct pattern."""
        return sum(len(n.predicates) for p in self.distinct for n in p.nodes) / len(self.distinct)

    @property
    def returns(self) -> float:
        """Returning nodes per distinct pattern."""
        return sum(len(p.returning) for p in self.distinct) / len(self.distinct)


def table2(seed: int, count: int, tick: Callable[[], None] = lambda: None) -> Workload:
    """Draw ``count`` different views; ``tick`` is called for each."""
    patterns = list(_ticking(unique_patterns(random.Random(seed), TABLE2, count), tick))
    return Workload(patterns, patterns)


def wan(seed: int, count: int, tick: Callable[[], None] = lambda: None) -> Workload:
    """Draw ``count`` subscriptions of which 30 % are distinct; ``tick`` is called for each distinct one."""
    rng = random.Random(seed)
    wanted = max(1, round(_DISTINCT_SHARE * count))
    panel = _panel()
    labels = _frequent_labels(panel)[: max(_FEWEST_LABELS, wanted // 8)]
    broad = [_broad(label) for label in labels][: (wanted + 1) // 2]
    shape = replace(WAN, labels=frozenset(labels))
    seen = {pattern.text for pattern in broad}
    narrow = unique_patterns(
        rng, shape, wanted - len(broad), lambda p: p.text not in seen and _matches_all(p, panel)
    )
    distinct = list(_ticking(chain(broad, narrow), tick))
    weights = [1 / (rank + 1) ** _ZIPF for rank in range(len(distinct))]
    subscriptions = distinct + rng.choices(distinct, weights, k=count - len(distinct))
    rng.shuffle(subscriptions)
    return Workload(subscriptions, distinct)


PRESETS: Final[dict[str, Callable[[int, int, Callable[[], None]], Workload]]] = {"table2": table2, "wan": wan}


def _ticking(patterns: Iterator[Pattern], tick: Callable[[], None]) -> Iterator[Pattern]:
    for pattern in patterns:
        tick()
        yield pattern


def _panel() -> list[Document]:
    """Make the documents that a wan pattern must match, all of them."""
    from xmlmatch import Document

    return [Document.parse(data) for data in islice(auction_documents(_PANEL_SEED, _PANEL), _PANEL)]


def _frequent_labels(panel: list[Document]) -> list[str]:
    """List the labels that every document of the panel has, the most frequent first."""
    common = set.intersection(*(set(document.labels) for document in panel))
    counts = dict.fromkeys(common, 0)
    for document in panel:
        for node in document.label.tolist():
            label = document.labels[node]
            if label in counts:
                counts[label] += 1
    return sorted(counts, key=lambda label: (-counts[label], label))


def _broad(label: str) -> Pattern:
    """Make the pattern that asks for everything with a label."""
    from xmlmatch import Pattern

    return Pattern.parse(f"//{label}{{val}}" if label.startswith("@") else f"//{label}{{cont}}")


def _matches_all(pattern: Pattern, panel: list[Document]) -> bool:
    from xmlmatch import match

    return all(bool(match(pattern, document)) for document in panel)


def matching_share(matcher: Matcher, documents: list[Document]) -> list[float]:
    """Return, per document, the share of the matcher's patterns that match it."""
    return [len(matcher.match(document)) / len(matcher) for document in documents]

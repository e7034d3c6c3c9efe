"""The part of the demo in which subscribers feed each other: who can, and that the results are the same."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xmlmatch import Document, Pattern

_MEASURED: Final = 20
_EXECUTED: Final = 200
_DOCUMENTS: Final = 3


@dataclass(frozen=True, slots=True)
class Feeding:
    """What was found: ``checked`` results were computed from others', ``equal`` of them as by direct matching."""

    distinct: int
    edges: int
    rewritable: int
    rewritings: int
    cpu_s: float
    checked: int
    equal: int

    def __str__(self) -> str:
        return (
            f"Of {self.distinct:,} distinct patterns, {self.rewritable:,} can be computed from others, in "
            f"{self.rewritings:,} ways, found in {self.cpu_s:.3f} CPU seconds. {self.checked:,} results were "
            f"computed from what others received: {self.equal:,} equal direct matching."
        )


def feed(patterns: Sequence[Pattern], documents: Sequence[Document]) -> Feeding:
    """Find who can feed whom, compute some patterns from others on some documents, and compare."""
    from rewriting import EmbeddingGraph, find_candidates
    from rewriting.statistics import Statistics

    distinct = list(dict.fromkeys(patterns))
    known = Statistics.measure(distinct, documents[:_MEASURED])
    find_candidates(EmbeddingGraph.build(distinct[:2]))  # the first call may load compiled code
    start = time.process_time()
    graph = EmbeddingGraph.build(distinct)
    table = find_candidates(graph, statistics=known)
    spent = time.process_time() - start
    able = (q for q in range(len(distinct)) if table.first[q] < table.first[q + 1])
    checked = equal = 0
    for q in islice(able, _EXECUTED):
        views = [graph.pattern(u) for u in table.of(q)[0][1]]
        for document in documents[:_DOCUMENTS]:
            checked += 1
            equal += _same(graph.pattern(q), views, document)
    return Feeding(len(distinct), table.edges, table.rewritable, len(table), round(spent, 4), checked, equal)


def _same(query: Pattern, views: Sequence[Pattern], document: Document) -> bool:
    """Compute a pattern from views and say whether that is what matching it gives."""
    from rewriting import rewritings
    from xmlmatch import match

    rewriting = next(rewritings(query, views, 1))
    found = rewriting.execute({view: match(view, document) for view in rewriting.views})
    return [s.tolist() for s in found.sets] == [s.tolist() for s in match(query, document).sets]

"""Who can feed whom: which patterns can be computed exactly from which others, and computing them.

Layers, bottom up: ``conditions`` (which predicates imply which), ``embedding`` (``embeds`` and ``cover``, by
the kernel of ``xmlmatch``), ``feeding_order``; ``table``, ``trie``, ``scan`` and ``graph`` (the embedding graph
of very many patterns); ``statistics``, ``providers`` and ``candidates`` (the cheapest sets of views), with the
compiled twin in ``work_area``, ``pool``, ``search``, ``batch`` and ``candidate_table``; ``fragment``,
``columns`` and ``rewritings`` (what travels, and execution). ``filters/`` holds key-value subscriptions,
``baselines/`` the paper's own algorithms. Start reading at ``embedding``, ``providers`` and ``execution``;
docs/rewriting.md tells the whole.

>>> from rewriting import embeds, rewritings
>>> from xmlmatch import Document, Pattern, match
>>> query, view = Pattern.parse("/a/c/b{val}"), Pattern.parse("//a//b{val}")
>>> embeds(view, query)
True
>>> document = Document.parse(b"<a><b>1</b><c><b>2</b></c></a>")
>>> views = [view, Pattern.parse("/a/c")]
>>> rewriting = next(rewritings(query, views))
>>> list(rewriting.execute({view: match(view, document) for view in views}).rows())
[('2',)]
"""

from typing import TYPE_CHECKING

from xmlmatch.lazy import lazy_exports

if TYPE_CHECKING:
    from rewriting.candidate_table import CandidateTable, find_candidates, unrewritable
    from rewriting.candidates import Effort
    from rewriting.embedding import cover, embeds
    from rewriting.errors import RewritingError
    from rewriting.execution import Rewriting, rewritings
    from rewriting.graph import EmbeddingGraph
    from rewriting.statistics import Statistics

__all__ = [
    "CandidateTable",
    "Effort",
    "EmbeddingGraph",
    "Rewriting",
    "RewritingError",
    "Statistics",
    "cover",
    "embeds",
    "find_candidates",
    "rewritings",
    "unrewritable",
]
_HOMES = {
    "candidate_table": ("CandidateTable", "find_candidates", "unrewritable"),
    "candidates": ("Effort",),
    "embedding": ("cover", "embeds"),
    "errors": ("RewritingError",),
    "execution": ("Rewriting", "rewritings"),
    "graph": ("EmbeddingGraph",),
    "statistics": ("Statistics",),
}
__getattr__ = lazy_exports(__name__, _HOMES)

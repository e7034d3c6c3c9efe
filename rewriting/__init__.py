"""Who can feed whom: which patterns can be computed exactly from which others.

What stands here now: ``embedding`` (``embeds`` and ``cover``, by matching a view against a query as if the query
were a document, with the kernel of ``xmlmatch``), and ``rewritable`` (which patterns of a set the others can
feed). The embedding graph, candidates and their execution build on these. ``filters/`` will hold attribute
filters, messages and regions.

>>> from rewriting import embeds
>>> from xmlmatch import Pattern
>>> embeds(Pattern.parse("//a//b{val}"), Pattern.parse("/a/c/b{val}"))
True
"""

from rewriting.candidate_table import CandidateTable, find_candidates, unrewritable
from rewriting.embedding import cover, embeds
from rewriting.graph import EmbeddingGraph
from rewriting.rewritings import Rewriting, rewritings

__all__ = [
    "CandidateTable",
    "EmbeddingGraph",
    "Rewriting",
    "cover",
    "embeds",
    "find_candidates",
    "rewritings",
    "unrewritable",
]

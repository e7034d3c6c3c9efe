"""``python -m rewriting.warm``: compile every kernel into Numba's cache, so that first use is quick."""

from __future__ import annotations

from rewriting import at_once
from rewriting.candidate_table import find_candidates
from rewriting.columns import decode_untrusted, encode
from rewriting.contents import text_of
from rewriting.execution import rewritings
from rewriting.graph import EmbeddingGraph
from rewriting.statistics import Statistics
from xmlmatch import Document, Pattern, match

_VIEWS = ("//a{cont}", "//*{val}", "//b{val}[.!='x'][.>0]", "//a{val}[b{val}]")


def warm() -> None:
    """Run each compiled function once on something small."""
    document = Document.parse(b"<a><b>1</b><c>x</c></a>")
    views = [Pattern.parse(text) for text in _VIEWS]
    query = Pattern.parse("//a[b{val}[.=1]]/c{cont}")
    graph = EmbeddingGraph.build([*views, query])
    graph.add(Pattern.parse("//c{cont}"))
    graph.edges()
    find_candidates(graph)
    apart = [Pattern.parse("//a[b{val}[.=1]]"), Pattern.parse("//c{cont}")]
    for rewriting in (*rewritings(query, [*views, apart[1]], 1), *rewritings(query, apart, 1)):
        sent = [encode(link.send(match(link.view, document))) for link in rewriting.links]
        list(rewriting.receive([decode_untrusted(data) for data in sent]).rows())
        at_once.join(rewriting, sent)
        for link, data in zip(rewriting.links, sent, strict=True):
            at_once.holds(link, data)
            at_once.cut(link, link, data)
    text_of(b"<a/>")
    Statistics.measure(views, [document])  # last: it matches, and ``xmlmatch.warm`` compiles that meanwhile


if __name__ == "__main__":
    warm()

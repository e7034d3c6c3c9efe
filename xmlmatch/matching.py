"""One pattern against one document."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from xmlmatch.nodesets import NodeSets
from xmlmatch.pattern import ANY
from xmlmatch.semijoin import reduce
from xmlmatch.values import satisfying

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from xmlmatch.document import Document
    from xmlmatch.pattern import Pattern


def match(pattern: Pattern, document: Document) -> NodeSets:
    """Match one pattern; for many patterns use a ``Matcher``.

    >>> from xmlmatch import Document, Pattern
    >>> document = Document.parse(b"<a><b k='1'>x</b><b>y</b></a>")
    >>> list(match(Pattern.parse("//b[@k]{val}"), document).rows())
    [('x',)]
    """
    candidates = [satisfying(document, _labelled(document, node.label), node.predicates) for node in pattern.nodes]
    return NodeSets(pattern, document, reduce(pattern, document, candidates))


def _labelled(document: Document, label: str) -> NDArray[np.int32]:
    index = document.index
    if label == ANY:
        return index.elements
    if label not in document.labels:
        return np.empty(0, np.int32)
    i = document.labels.index(label)
    return index.order[index.first[i] : index.first[i + 1]]

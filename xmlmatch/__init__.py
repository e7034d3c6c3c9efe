"""The pattern language, documents as arrays, and matching: what everything else stands on.

Layers, bottom up: ``kernels`` and ``pointers`` (how we compile), ``numerals`` and ``predicates`` (values),
``pattern`` and ``pattern_parser`` (what a subscription asks for), ``encodings``, ``prolog``, ``expat``,
``handlers``, ``namespaces`` and ``document`` (bytes to arrays), ``semijoin`` (the one kernel, ``reduce``),
``rows`` and ``nodesets`` (results), ``matching`` (one pattern), ``store``, ``atoms``, ``set_algebra`` and
``matcher`` (very many at once). Start reading at ``pattern`` and ``semijoin``.

>>> from xmlmatch import Document, Pattern, match
>>> document = Document.parse(b"<shop><book price='40'><title>Rivers</title></book></shop>")
>>> pattern = Pattern.parse("//book[@price >= 30]/title{val}")
>>> list(match(pattern, document).rows())
[('Rivers',)]
"""

from typing import TYPE_CHECKING

from xmlmatch.lazy import lazy_exports

if TYPE_CHECKING:
    from xmlmatch.document import Document, Limits, NodeId
    from xmlmatch.errors import DocumentError, MatchLimitError, PatternError, RowLimitError, XmlMatchError
    from xmlmatch.matcher import Matcher, Matches
    from xmlmatch.matching import match
    from xmlmatch.nodesets import NodeSets
    from xmlmatch.pattern import Axis, Column, Pattern, PatternNode, Return
    from xmlmatch.predicates import Operator, Predicate
    from xmlmatch.semijoin import reduce

__all__ = [
    "Axis",
    "Column",
    "Document",
    "DocumentError",
    "Limits",
    "MatchLimitError",
    "Matcher",
    "Matches",
    "NodeId",
    "NodeSets",
    "Operator",
    "Pattern",
    "PatternError",
    "PatternNode",
    "Predicate",
    "Return",
    "RowLimitError",
    "XmlMatchError",
    "match",
    "reduce",
]

_HOMES = {
    "document": ("Document", "Limits", "NodeId"),
    "errors": ("DocumentError", "MatchLimitError", "PatternError", "RowLimitError", "XmlMatchError"),
    "matcher": ("Matcher", "Matches"),
    "matching": ("match",),
    "nodesets": ("NodeSets",),
    "pattern": ("Axis", "Column", "Pattern", "PatternNode", "Return"),
    "predicates": ("Operator", "Predicate"),
    "semijoin": ("reduce",),
}
__getattr__ = lazy_exports(__name__, _HOMES)

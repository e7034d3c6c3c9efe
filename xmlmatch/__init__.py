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

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

# Loaded when first asked for: `distributary --help` and the errors must not wait for Numba.
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
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'xmlmatch' has no attribute {name!r}")
    value = getattr(import_module(f"xmlmatch.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value

"""Patterns as XPath 1.0, for comparing with other engines.

The node set of one pattern node is an XPath 1.0 path: the way from the root to it, everything else as
predicates. Combinations of several returning nodes are not; their columns are, one by one.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from xmlmatch.numerals import spell
from xmlmatch.pattern import Axis, children_of

if TYPE_CHECKING:
    from xmlmatch.pattern import Pattern
    from xmlmatch.predicates import Predicate


class XPath(NamedTuple):
    """An expression and the namespace prefixes it uses."""

    text: str
    namespaces: dict[str, str]


def to_xpath(pattern: Pattern, target: int) -> XPath:
    """Write the path that selects what pattern node ``target`` takes.

    >>> from xmlmatch import Pattern
    >>> to_xpath(Pattern.parse("//a[b{val}>=2][.//c]/d{val}"), 1).text
    '//a[d][.//c]/b[. >= 2]'
    """
    nodes, children = pattern.nodes, children_of(pattern.nodes)
    prefixes: dict[str, str] = {}
    main = {target}
    while nodes[min(main)].parent >= 0:
        main.add(nodes[min(main)].parent)
    text = [""] * len(nodes)
    for i in range(len(nodes) - 1, -1, -1):
        parts = [_name(nodes[i].label, prefixes)] + [f"[. {_comparison(p)}]" for p in nodes[i].predicates]
        parts += [f"[{'.//' if nodes[c].axis else ''}{text[c]}]" for c in children[i] if c not in main]
        parts += [f"{'//' if nodes[c].axis else '/'}{text[c]}" for c in children[i] if c in main]
        text[i] = "".join(parts)
    start = "//" if nodes[0].axis is Axis.DESCENDANT else "/"
    return XPath(start + text[0], {prefix: uri for uri, prefix in prefixes.items()})


def _name(label: str, prefixes: dict[str, str]) -> str:
    at, name = ("@", label[1:]) if label.startswith("@") else ("", label)
    if not name.startswith("{"):
        return label
    uri, _, local = name[1:].partition("}")
    prefix = prefixes.setdefault(uri, f"n{len(prefixes)}")
    return f"{at}{prefix}:{local}"


def _comparison(predicate: Predicate) -> str:
    """Write operator and constant; XPath 1.0 knows no exponents, and libxml2 misreads needless digits."""
    if isinstance(predicate.constant, str):
        sign = len(predicate.operator.value)
        return f"{predicate.operator.value} {str(predicate)[sign:]}"
    return f"{predicate.operator.value} {Decimal(spell(predicate.constant)):f}"

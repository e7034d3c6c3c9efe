"""Tree patterns: what a subscription asks for, in one canonical form.

A ``Pattern`` is a tuple of nodes in canonical pre-order: siblings sorted by their structure (labels, axes,
predicates, branches), then by what they return; equal branches that return nothing are kept once. Its text
(``str``) is canonical too, so equal text means the same pattern. The order of the user's columns is kept
beside it and plays no part in equality.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from xmlmatch.predicates import Predicate, satisfiable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

ANY: Final = "*"


class Axis(enum.IntEnum):
    """How a node hangs from its parent (the first one: from the document node)."""

    CHILD = 0
    DESCENDANT = 1


class Return(enum.Enum):
    """What a node returns."""

    ID = "id"
    VAL = "val"
    CONT = "cont"


_RETURN_ORDER: Final = {r: i for i, r in enumerate(Return)}


class PatternNode(NamedTuple):
    """One node; ``parent`` is the index of its parent among the pattern's nodes, -1 for the first.

    A named tuple: planning makes half a million of them, and a frozen dataclass takes four times as long.
    """

    label: str
    axis: Axis
    parent: int
    predicates: tuple[Predicate, ...] = ()
    returns: tuple[Return, ...] = ()

    @property
    def is_attribute(self) -> bool:
        """True for ``@name``."""
        return self.label.startswith("@")


class Column(NamedTuple):
    """One thing a row holds: which node, and what of it."""

    node: int
    what: Return


@dataclass(frozen=True)
class Pattern:
    """A tree pattern. Make one with ``Pattern.parse``.

    >>> pattern = Pattern.parse("//item[topic='ACME'][author{val}]/headline{cont}")
    >>> str(pattern)
    "//item[author{val}][topic='ACME']/headline{cont}"
    >>> pattern.columns
    ('author.val', 'headline.cont')
    >>> Pattern.parse(str(pattern)) == pattern
    True
    """

    nodes: tuple[PatternNode, ...]
    selection: tuple[Column, ...] = field(compare=False)

    @classmethod
    def parse(cls, text: str, namespaces: Mapping[str, str] | None = None) -> Pattern:
        """Read a pattern; ``namespaces`` maps the prefixes it uses to URIs.

        Raises ``PatternError`` with the column, what was found there and what is supported.
        """
        from xmlmatch.pattern_parser import check_length, parse

        if not isinstance(text, str):
            raise TypeError(f"a pattern is text, not {type(text).__name__}; decode it first")

        pattern = canonical(*parse(text, namespaces or {}))
        check_length(pattern.text, text)
        return pattern

    @cached_property
    def text(self) -> str:
        """The canonical text."""
        return _render(self.nodes)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Pattern.parse({self.text!r})"

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Name what a row holds, in the order of the user's text: ``author.val``; a repeated name gets ``#2``."""
        names: list[str] = []
        seen: dict[str, int] = {}
        for node, what in self.selection:
            name = f"{local_name(self.nodes[node].label)}.{what.value}"
            seen[name] = seen.get(name, 0) + 1
            names.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
        return tuple(names)

    @cached_property
    def returning(self) -> tuple[int, ...]:
        """The indexes of the returning nodes, in the order of the user's text."""
        return tuple(dict.fromkeys(node for node, _ in self.selection))

    @cached_property
    def parents(self) -> NDArray[np.int32]:
        """The parent of each node, -1 for the first."""
        return np.array([node.parent for node in self.nodes], np.int32)

    @cached_property
    def axes(self) -> NDArray[np.int8]:
        """How each node hangs from its parent."""
        return np.array([node.axis for node in self.nodes], np.int8)

    @cached_property
    def contradiction(self) -> str | None:
        """Why no document can ever match, or None."""
        if self.nodes[0].is_attribute and self.nodes[0].axis is Axis.CHILD:
            return f"{self.nodes[0].label} cannot be the root of a document; write //{self.nodes[0].label}"
        attributes = [node.label.startswith("@") for node in self.nodes]
        for node in self.nodes:
            if node.parent >= 0 and attributes[node.parent]:
                return f"{local_name(self.nodes[node.parent].label)} is an attribute and has nothing below it"
            if node.predicates and not satisfiable(node.predicates):
                return _unsatisfied(node.label, node.predicates)
        return self._contradicting_attribute() if any(attributes) else None

    def _contradicting_attribute(self) -> str | None:
        """An element has an attribute once, so all that is asked of it must hold of one value."""
        asked: dict[tuple[int, str], set[Predicate]] = {}
        for node in self.nodes:
            if node.is_attribute and node.axis is Axis.CHILD:
                asked.setdefault((node.parent, node.label), set()).update(node.predicates)
        for (_, label), predicates in asked.items():
            if not satisfiable(predicates):
                return _unsatisfied(label, sorted(predicates, key=str))
        return None


def _unsatisfied(label: str, predicates: Iterable[Predicate]) -> str:
    return f"no value of {local_name(label)} satisfies {' and '.join(f'.{p}' for p in predicates)}"


def local_name(label: str) -> str:
    """Drop the namespace from a label.

    >>> local_name("@{urn:x}id")
    '@id'
    """
    return ("@" if label.startswith("@") else "") + label.rpartition("}")[2].removeprefix("@")


def children_of(nodes: Sequence[PatternNode]) -> list[list[int]]:
    """List the children of every node, in order."""
    children: list[list[int]] = [[] for _ in nodes]
    for i, node in enumerate(nodes):
        if node.parent >= 0:
            children[node.parent].append(i)
    return children


def canonical(nodes: Sequence[PatternNode], selection: Sequence[Column]) -> Pattern:
    """Sort siblings, drop repeated branches that return nothing, and renumber.

    ``nodes`` may stand in any order in which parents come before their children.
    """
    children = children_of(nodes)
    if any(len(below) > 1 for below in children):
        _sort_siblings(nodes, children)
    return _renumber(nodes, children, selection)


def _sort_siblings(nodes: Sequence[PatternNode], children: list[list[int]]) -> None:
    """Put siblings in order and drop those that repeat; only what is below a node with several is written out."""
    compared = [False] * len(nodes)
    for i, node in enumerate(nodes):
        if node.parent >= 0:
            compared[i] = compared[node.parent] or len(children[node.parent]) > 1
    shape = [""] * len(nodes)  # the sub-pattern without what it returns
    whole = [""] * len(nodes)
    returns = [bool(node.returns) for node in nodes]
    for i in range(len(nodes) - 1, -1, -1):
        node, below = nodes[i], children[i]
        if len(below) > 1:
            below.sort(key=lambda c: (shape[c], whole[c]))
            kept: dict[str, int] = {}
            for child in below:
                kept.setdefault(f"{child} {whole[child]}" if returns[child] else whole[child], child)
            if len(kept) < len(below):
                below[:] = kept.values()
        if not returns[i]:
            returns[i] = any(returns[c] for c in below)
        if compared[i]:
            head = f"{node.axis._value_}{node.label}"
            if node.predicates:
                head += "".join([f"[.{p}]" for p in _sorted_predicates(node)])
            shape[i] = head + "".join([f"[{shape[c]}]" for c in below])
            given = ",".join(sorted([r._value_ for r in node.returns])) if node.returns else ""
            whole[i] = f"{head}{{{given}}}" + "".join([f"[{whole[c]}]" for c in below])


def _sorted_predicates(node: PatternNode) -> tuple[Predicate, ...]:
    if len(node.predicates) < 2:
        return tuple(node.predicates)
    return tuple(sorted(set(node.predicates), key=str))


def _renumber(
    nodes: Sequence[PatternNode], children: Sequence[Sequence[int]], selection: Sequence[Column]
) -> Pattern:
    new = [-1] * (len(nodes) + 1)  # the last: the parent of the first
    out: list[PatternNode] = []
    stack = [0]
    while stack:
        i = stack.pop()
        label, axis, parent, _, returns = node = nodes[i]
        new[i] = len(out)
        if len(returns) > 1:
            returns = tuple(sorted(set(returns), key=_RETURN_ORDER.__getitem__))
        out.append(PatternNode(label, axis, new[parent], _sorted_predicates(node), returns))
        stack += reversed(children[i])
    return Pattern(tuple(out), tuple([Column(new[node], what) for node, what in selection]))


def label_in_text(label: str) -> str:
    """Spell a label as pattern texts do: ``Q{uri}name`` where it has a namespace."""
    at, name = ("@", label[1:]) if label.startswith("@") else ("", label)
    return f"{at}Q{name}" if name.startswith("{") else label


def _render(nodes: Sequence[PatternNode]) -> str:
    """Write the canonical text.

    The last child that returns something continues the path; inside brackets, where none returns, the last
    child does. The other children stand in brackets, in order.
    """
    children = children_of(nodes)
    returns = [bool(node.returns) for node in nodes]
    for i in range(len(nodes) - 1, 0, -1):
        returns[nodes[i].parent] |= returns[i]
    outside = _on_main_path(nodes, children, returns)
    text = [""] * len(nodes)
    for i in range(len(nodes) - 1, -1, -1):
        node = nodes[i]
        main = _continuation(children[i], returns, required=i in outside)
        parts = [label_in_text(node.label)]
        if node.returns:
            parts.append("{" + ",".join([r._value_ for r in node.returns]) + "}")
        if len(node.predicates) == 1 and not children[i] and i not in outside:
            parts.append(str(node.predicates[0]))
        else:
            parts += [f"[.{p}]" for p in node.predicates]
        for child in children[i]:
            if child == main:
                continue
            parts.append(f"[{'.//' if nodes[child].axis else ''}{text[child]}]")
        if main is not None:
            parts.append(f"{'//' if nodes[main].axis else '/'}{text[main]}")
        text[i] = "".join(parts)
    return f"{'//' if nodes[0].axis else '/'}{text[0]}"


def _continuation(children: Sequence[int], returns: Sequence[bool], *, required: bool) -> int | None:
    """Choose the child that continues the path; ``required``: only one that returns may."""
    for child in reversed(children):
        if returns[child]:
            return child
    return None if required or not children else children[-1]


def _on_main_path(
    nodes: Sequence[PatternNode], children: Sequence[Sequence[int]], returns: Sequence[bool]
) -> set[int]:
    """Collect the nodes of the outermost path."""
    path = {0}
    i: int | None = 0
    while i is not None:
        i = _continuation(children[i], returns, required=True)
        if i is not None:
            path.add(i)
    return path

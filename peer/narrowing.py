"""Why a document does not match a pattern: the node whose set becomes empty, and what stands in its place.

Taken node by node in pre-order, a pattern keeps fewer and fewer matches. ``narrowed`` finds the first node with
which none is left, by bisection, and says whether its label, its value or its place is the reason.
"""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from xmlmatch import Pattern, match
from xmlmatch.pattern import ANY, Axis, Column, PatternNode, Return, label_in_text

if TYPE_CHECKING:
    from xmlmatch import Document

_SHOWN: Final = 3
_SHOWN_CHARACTERS: Final = 60


class Lack(enum.Enum):
    """What is missing at a node."""

    LABEL = "label"
    VALUE = "value"
    PLACE = "place"


@dataclass(frozen=True, slots=True)
class Narrowing:
    """``kept``: the part of the pattern that still matches, at ``left`` nodes of the document; ``added``: what
    leaves none. ``labelled``: how many nodes of the document have its label; ``found``: some of their values where
    those are the reason."""

    kept: str
    left: int
    added: str
    lack: Lack
    labelled: int
    found: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """Say it.

        >>> from xmlmatch import Document
        >>> document = Document.parse(b"<r><a><b>1</b></a><c/></r>")
        >>> narrowed(Pattern.parse("//a[b=2]{cont}"), document).sentence
        "//a matches 1 node; with b=2 none is left: the values there are '1'"
        >>> narrowed(Pattern.parse("//a[c]{cont}"), document).sentence
        '//a matches 1 node; with c none is left: the document has 1 node of this name, but not there'
        """
        nodes = f"{self.left:,} node{'' if self.left == 1 else 's'}"
        before = f"{self.kept} matches {nodes}; with {self.added} none is left" if self.kept else self.added
        match self.lack:
            case Lack.LABEL:
                why = "the document has no node of this name"
            case Lack.VALUE:
                why = f"the values there are {', '.join(repr(value) for value in self.found)}"
                why += f" and others ({self.labelled:,} nodes of this name)" if len(self.found) == _SHOWN else ""
            case Lack.PLACE:
                why = f"the document has {self.labelled:,} node{'' if self.labelled == 1 else 's'} of this name"
                why += ", but not there"
        return f"{before}: {why}"

    def told(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self) | {"lack": self.lack.value, "found": list(self.found), "sentence": self.sentence}


def narrowed(pattern: Pattern, document: Document) -> Narrowing | None:
    """Say why nothing of a document matches; None if something does."""
    if match(pattern, document):
        return None
    low, high = (
        0,
        len(pattern.nodes),
    )  # the first low nodes match something (or there are none), the first high do not
    while high - low > 1:
        middle = (low + high) // 2
        if match(_first(pattern, middle), document):
            low = middle
        else:
            high = middle
    return _lacking(pattern, document, low)


def _lacking(pattern: Pattern, document: Document, last: int) -> Narrowing:
    """Say what is missing at the node with which nothing is left."""
    node = pattern.nodes[last]
    kept, left = "", 0
    if last:
        before = _first(pattern, last, at=node.parent)
        kept, left = _shown(before), match(before, document).count(len(document))
    labelled = match(_alone(node.label), document).count(len(document))
    bare = (*pattern.nodes[:last], node._replace(predicates=()))
    at_place = match(_returning(bare, last), document)
    lack, found = Lack.PLACE if labelled else Lack.LABEL, dict[str, None]()
    if node.predicates and at_place:
        lack = Lack.VALUE
        found = dict.fromkeys(str(value)[:_SHOWN_CHARACTERS] for [value] in at_place.rows(len(document)))
    return Narrowing(kept, left, _shown_node(node), lack, labelled, tuple(found)[:_SHOWN])


def _first(pattern: Pattern, count: int, at: int = 0) -> Pattern:
    """Return the pattern of the first nodes, which returns one of them."""
    return _returning(pattern.nodes[:count], at)


def _returning(nodes: tuple[PatternNode, ...], at: int) -> Pattern:
    bare = tuple(node._replace(returns=(Return.VAL,) if i == at else ()) for i, node in enumerate(nodes))
    return Pattern(bare, (Column(at, Return.VAL),))


def _alone(label: str) -> Pattern:
    return _returning((PatternNode(label, Axis.DESCENDANT, -1),), 0)


def _shown(pattern: Pattern) -> str:
    return Pattern(tuple(node._replace(returns=()) for node in pattern.nodes), ()).text


def _shown_node(node: PatternNode) -> str:
    axis = "//" if node.axis is Axis.DESCENDANT else "/" if node.parent < 0 else ""
    label = ANY if node.label == ANY else label_in_text(node.label)
    conditions = [str(one) for one in node.predicates]
    if len(conditions) == 1:
        return f"{axis}{label}{conditions[0]}"
    return f"{axis}{label}{''.join(f'[.{one}]' for one in conditions)}"

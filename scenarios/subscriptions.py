"""Random subscriptions over the auction schema, in the manner of YFilter's generator.

A pattern grows node by node along the schema: from the last node or, to branch, from an earlier one; a child,
or a descendant some levels down; then values for predicates are drawn from the distributions that documents
use, and the nodes that return are chosen. ``Shape`` holds the knobs; the presets are in ``presets.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from scenarios.auction_schema import (
    ROOT,
    SCHEMA,
    attribute_labels,
    carries_value,
    child_labels,
    is_numeric,
    sample_value,
)
from xmlmatch.numerals import number
from xmlmatch.pattern import ANY, Axis, Column, Pattern, PatternNode, Return, canonical
from xmlmatch.predicates import Operator, Predicate

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator, Sequence

_NUMERIC: Final = (Operator.EQ, Operator.LT, Operator.LE, Operator.GT, Operator.GE)
_DEEPEST_SKIP: Final = 4
# Nobody subscribes to a paragraph by its whole text.
_PROSE: Final = frozenset(("text", "bold", "keyword", "emph"))


@dataclass(frozen=True, slots=True)
class Shape:
    """How random patterns look. Each field is a probability unless it says otherwise.

    ``sizes``: weights of 1, 2, 3, ... nodes.
    ``rooted``: the first step is ``/site``; otherwise ``//`` and any element.
    ``descendant``: a step is ``//`` and may skip levels; more of it matches, and embeds, more.
    ``branch``: a new node hangs from any earlier node instead of the last one.
    ``attribute``: a new node is an attribute where the element has some.
    ``any_label``: an inner element other than the first is ``*``.
    ``predicates``: weights of 0, 1, 2, ... value predicates per pattern.
    ``text_predicate``: a predicate compares text by ``=`` even where values are numbers.
    ``extra_return``: each node beyond the first that returns.
    ``both``: an element that returns gives ``val`` and ``cont``, not only one.
    """

    sizes: tuple[float, ...]
    rooted: float = 0.1
    descendant: float = 0.2
    branch: float = 0.3
    attribute: float = 0.1
    any_label: float = 0.0
    predicates: tuple[float, ...] = (1,)
    text_predicate: float = 0.3
    extra_return: float = 0.3
    both: float = 0.1
    labels: frozenset[str] | None = None
    """Only these labels are used, where given."""


@dataclass(slots=True)
class _Growing:
    """A node while the pattern grows; ``label`` is the schema's even where the pattern says ``*``."""

    label: str
    axis: Axis
    parent: int
    parent_label: str | None


def random_pattern(rng: random.Random, shape: Shape) -> Pattern:
    """Draw one pattern."""
    nodes = _grow(rng, shape)
    predicates = _draw_predicates(rng, shape, nodes)
    returns = _draw_returns(rng, shape, nodes)
    inner = {node.parent for node in nodes}
    built = [
        PatternNode(
            label=ANY if i in inner and i and rng.random() < shape.any_label else node.label,
            axis=node.axis,
            parent=node.parent,
            predicates=predicates.get(i, ()),
            returns=returns.get(i, ()),
        )
        for i, node in enumerate(nodes)
    ]
    selection = [Column(i, what) for i in sorted(returns) for what in returns[i]]
    return canonical(built, selection)


def unique_patterns(
    rng: random.Random, shape: Shape, count: int, accept: Callable[[Pattern], bool] = lambda _: True
) -> Iterator[Pattern]:
    """Yield ``count`` different patterns; raise ``ValueError`` when the shape allows too few."""
    seen: set[str] = set()
    misses = 0
    while len(seen) < count:
        pattern = random_pattern(rng, shape)
        if pattern.text in seen or pattern.contradiction or not accept(pattern):
            misses += 1
            if misses > 1000 + 200 * count:
                raise ValueError(f"the shape gives only {len(seen):,} different patterns of {count:,} asked for")
            continue
        seen.add(pattern.text)
        yield pattern


@cache
def _elements(labels: frozenset[str] | None) -> tuple[str, ...]:
    return tuple(label for label in sorted(SCHEMA) if labels is None or label in labels)


@cache
def _inner(labels: frozenset[str] | None) -> tuple[str, ...]:
    """List the elements that have something below them, each as often as it has kinds of children."""
    return tuple(
        label
        for label in _elements(labels)
        for _ in range(len(_children(label, labels)) + len(_attributes(label, labels)))
    )


@cache
def _children(label: str, labels: frozenset[str] | None) -> tuple[str, ...]:
    if label.startswith("@"):
        return ()
    return tuple(c for c in child_labels(label) if labels is None or c in labels)


@cache
def _attributes(label: str, labels: frozenset[str] | None) -> tuple[str, ...]:
    if label.startswith("@"):
        return ()
    return tuple(a for a in attribute_labels(label) if labels is None or a in labels)


@cache
def _descendants(label: str, labels: frozenset[str] | None) -> tuple[str, ...]:
    """List the labels some levels below ``label``, nearer ones more often; the way down may use any label."""
    found: list[str] = []
    front = [label]
    for _ in range(_DEEPEST_SKIP):
        front = sorted({child for above in front for child in child_labels(above)})
        found += [c for c in front if labels is None or c in labels]
    return tuple(found)


def _grow(rng: random.Random, shape: Shape) -> list[_Growing]:
    size = rng.choices(range(1, len(shape.sizes) + 1), shape.sizes)[0]
    if rng.random() < shape.rooted:
        nodes = [_Growing(ROOT, Axis.CHILD, -1, None)]
    else:
        label = rng.choice(_elements(shape.labels) if size == 1 else _inner(shape.labels))
        nodes = [_Growing(label, Axis.DESCENDANT, -1, None)]
    for _ in range(8 * size):  # a place may be full; another draw finds room elsewhere
        if len(nodes) == size:
            break
        at = rng.randrange(len(nodes)) if rng.random() < shape.branch else len(nodes) - 1
        _extend(rng, shape, nodes, at)
    return nodes


def _extend(rng: random.Random, shape: Shape, nodes: list[_Growing], at: int) -> None:
    """Hang one more node from ``nodes[at]``, or from its nearest ancestor that can have one.

    A label stands at most once below a node: a repeated branch says little new.
    """
    while at >= 0:
        label = nodes[at].label
        taken = {node.label for node in nodes if node.parent == at}
        children = [c for c in _children(label, shape.labels) if c not in taken]
        attributes = [a for a in _attributes(label, shape.labels) if a not in taken]
        if children or attributes:
            break
        at = nodes[at].parent
    else:
        return
    if attributes and (not children or rng.random() < shape.attribute):
        nodes.append(_Growing(rng.choice(attributes), Axis.CHILD, at, label))
    elif rng.random() < shape.descendant and (below := _descendants(label, shape.labels)):
        far = rng.choice(below)
        if far not in taken:
            nodes.append(_Growing(far, Axis.DESCENDANT, at, None))
    else:
        nodes.append(_Growing(rng.choice(children), Axis.CHILD, at, label))


def _draw_predicates(
    rng: random.Random, shape: Shape, nodes: Sequence[_Growing]
) -> dict[int, tuple[Predicate, ...]]:
    wanted = rng.choices(range(len(shape.predicates)), shape.predicates)[0]
    inner = {node.parent for node in nodes}
    able = [i for i, node in enumerate(nodes) if i not in inner and node.label not in _PROSE]
    able = [i for i in able if carries_value(nodes[i].label)]
    chosen = rng.sample(able, min(wanted, len(able)))
    return {i: (_predicate(rng, shape, nodes[i]),) for i in chosen}


def _predicate(rng: random.Random, shape: Shape, node: _Growing) -> Predicate:
    value = sample_value(node.label, rng, parent=node.parent_label)
    if is_numeric(node.label) and rng.random() >= shape.text_predicate:
        return Predicate(rng.choice(_NUMERIC), number(value))
    return Predicate(Operator.EQ, value)


def _draw_returns(rng: random.Random, shape: Shape, nodes: Sequence[_Growing]) -> dict[int, tuple[Return, ...]]:
    first = rng.randrange(len(nodes))
    chosen = [i for i in range(len(nodes)) if i == first or rng.random() < shape.extra_return]
    return {i: _what(rng, shape, nodes[i].label) for i in chosen}


def _what(rng: random.Random, shape: Shape, label: str) -> tuple[Return, ...]:
    if label.startswith("@"):
        return (Return.VAL,)
    if rng.random() < shape.both:
        return (Return.VAL, Return.CONT)
    return (Return.VAL,) if carries_value(label) else (Return.CONT,)

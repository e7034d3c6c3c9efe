"""Predicates on a document's values, compiled: no Python string per node.

A predicate is one column of small arrays (operator, numeric or not, number, slice of the constants' bytes).
Numbers of a document are read once per label that a numeric predicate asks about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xmlmatch.handlers import END, START
from xmlmatch.kernels import kernel
from xmlmatch.numerals import number, scan
from xmlmatch.predicates import Operator, Predicate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from xmlmatch.document import Document

CODES: Final = {operator: code for code, operator in enumerate(Operator)}
_EQ, _NE, _LT, _LE, _GT, _GE = range(6)


@kernel
def holds(
    chars: Any, start: int, end: int, value: float, operator: int, numeric: bool, constant: float, text: Any,
    text_start: int, text_end: int,
) -> bool:  # fmt: skip
    """Say whether one value satisfies one predicate; a string constant is ``text[text_start:text_end]``."""
    if not numeric:
        same = end - start == text_end - text_start
        i = 0
        while same and i < text_end - text_start:
            same = chars[start + i] == text[text_start + i]
            i += 1
        return same == (operator == _EQ)
    if operator == _EQ:
        return value == constant
    if operator == _NE:
        return value != constant
    if operator == _LT:
        return value < constant
    if operator == _LE:
        return value <= constant
    if operator == _GT:
        return value > constant
    return value >= constant


@kernel
def _keep(
    nodes: Any,
    doc_nodes: Any,
    chars: Any,
    numbers: Any,
    operator: int,
    numeric: bool,
    constant: float,
    text: Any,
) -> Any:
    out = np.empty(nodes.size, np.int32)
    n = 0
    for node in nodes:
        value = numbers[node] if numeric else 0.0
        start, end = doc_nodes[START, node], doc_nodes[END, node]
        if holds(chars, start, end, value, operator, numeric, constant, text, 0, text.size):
            out[n] = node
            n += 1
    return out[:n]


@kernel
def _read(nodes: Any, doc_nodes: Any, chars: Any, numbers: Any, hard: Any) -> int:
    """Read the numbers of ``nodes``; collect in ``hard`` those that Python must round; return how many."""
    n = 0
    for node in nodes:
        value, inexact = scan(chars, doc_nodes[START, node], doc_nodes[END, node])
        numbers[node] = value
        if inexact:
            hard[n] = node
            n += 1
    return n


def read_numbers(document: Document, nodes: NDArray[np.int32], numbers: NDArray[np.float64]) -> None:
    """Set ``numbers[node]`` for each of ``nodes``, correctly rounded, NaN where the value is no number."""
    hard = np.empty(len(nodes), np.int32)
    n = _read(nodes, document.nodes, document.chars, numbers, hard)
    for node in hard[:n].tolist():
        numbers[node] = number(document.val(node))


def satisfying(document: Document, nodes: NDArray[np.int32], predicates: Iterable[Predicate]) -> NDArray[np.int32]:
    """Keep the nodes whose string value satisfies every predicate."""
    wanted = list(predicates)
    numbers = np.empty(0)
    if any(not isinstance(p.constant, str) for p in wanted):
        numbers = np.empty(len(document))
        read_numbers(document, nodes, numbers)
    for p in wanted:
        numeric = not isinstance(p.constant, str)
        constant = 0.0 if isinstance(p.constant, str) else p.constant
        text = np.frombuffer(p.constant.encode() if isinstance(p.constant, str) else b"", np.uint8)
        nodes = _keep(nodes, document.nodes, document.chars, numbers, CODES[p.operator], numeric, constant, text)
    return nodes

"""Runs each kernel once, so that it is compiled."""

from __future__ import annotations

from overlay.matching.matcher import Matcher
from rewriting.filters import Disjunction

_TEXT = "a = 1 and b = 'x' or a in (1, 'x') and b prefix 'x' or a < 2 and a <= 2 and a > 0 and a >= 0 and b != 'y'"


def warm() -> None:
    """Insert, match and delete something small."""
    matcher = Matcher()
    number = matcher.insert(Disjunction.parse(_TEXT))
    matcher.match({"a": 1, "b": "x"})
    matcher.delete(number)

"""Runs each kernel once, so that it is compiled."""

from __future__ import annotations

from overlay.matching.algorithms import ALGORITHMS
from overlay.matching.counting import Counting
from overlay.matching.dynamic import Dynamic
from overlay.matching.matcher import Matcher
from overlay.matching.static import Static
from rewriting.filters import Disjunction, Filter

_TEXT = "a = 1 and b = 'x' or a in (1, 'x') and b prefix 'x' or a < 2 and a <= 2 and a > 0 and a >= 0 and b != 'y'"


def warm() -> None:
    """Insert, match and delete something small with every algorithm."""
    for engine in ALGORITHMS.values():
        matcher = Matcher(engine)
        numbers = [matcher.insert(Disjunction.parse(_TEXT)) for _ in range(20)]
        numbers += [matcher.insert(Filter.parse(f"c = {i}")) for i in range(100)]  # so many that everything grows
        matcher.match({"a": 1, "b": "x"})
        if isinstance(matcher.engine, Dynamic):
            matcher.engine.settle()
        if isinstance(matcher.engine, Dynamic | Static):
            clusters = matcher.engine.clusters
            clusters.add_table(1 | 4 << 15)
            clusters.move(clusters.rows_of(clusters.used()))
            matcher.match({"a": 1, "b": "x"})
            clusters.drop_table(1 | 4 << 15)
        for number in numbers:
            matcher.delete(number)
        if isinstance(matcher.engine, Counting):  # with no deletion that waits
            matcher.engine.purge()

"""The five algorithms by name: an engine each, for ``Matcher``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from overlay.matching.clustering import Clustering
from overlay.matching.counting import Counting
from overlay.matching.dynamic import Dynamic
from overlay.matching.static import Static

if TYPE_CHECKING:
    from collections.abc import Callable

    from overlay.matching.matcher import Engine
    from overlay.matching.predicate_index import PredicateIndex

ALGORITHMS: Final[dict[str, Callable[[PredicateIndex], Engine]]] = {
    "counting": Counting,
    "propagation": Clustering,
    "vectorised": partial(Clustering, by_column=True),
    "static": Static,
    "dynamic": Dynamic,
}

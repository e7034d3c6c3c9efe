"""What runs in Spark's workers: each function takes one chunk and returns what came of it; all are pure.

Chunks are so many that a worker that dies takes little with it; Spark runs its chunks again elsewhere.
"""

from __future__ import annotations

import gc
import pickle
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from rewriting.candidate_table import Part, Places
    from xmlmatch import Pattern


@dataclass(frozen=True, slots=True)
class Parsed:
    """The patterns of a chunk of texts: each a pattern, or why it is none. They travel as bytes made here, for
    Spark would look for garbage among them while it packs."""

    packed: bytes

    @property
    def patterns(self) -> list[Pattern | str]:
        """Unpack them."""
        with no_collection():
            return pickle.loads(self.packed)  # type: ignore[no-any-return]  # packed by a worker of ours


@contextmanager
def no_collection() -> Iterator[None]:
    """Make very many objects without looking for garbage among them, which takes longer than making them."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def parse_chunk(texts: Sequence[str]) -> Parsed:
    """Parse patterns; those that cannot be planned come back as a reason."""
    with no_collection():
        return Parsed(pickle.dumps([_parse(text) for text in texts], pickle.HIGHEST_PROTOCOL))


def _parse(text: str) -> Pattern | str:
    from xmlmatch import Pattern, PatternError

    try:
        pattern = Pattern.parse(text)
    except PatternError as exc:
        return str(exc)
    if pattern.contradiction:
        return f"this pattern never matches ({pattern.contradiction}), so there is nothing to plan"
    return pattern


def measure_chunk(parsed: Parsed, documents: Sequence[bytes]) -> tuple[list[str], NDArray[np.int64]]:
    """Measure the patterns of a chunk on sample documents: their texts, and the figures one after the other."""
    from rewriting.statistics import Statistics
    from xmlmatch import Document, Pattern

    patterns = list({p.text: p for p in parsed.patterns if isinstance(p, Pattern)}.values())
    known = Statistics.measure(patterns, (Document.parse(data) for data in documents))
    return [pattern.text for pattern in patterns], known.of_all(patterns)


def search_chunk(places: Places, ends: Any) -> Part:
    """Find the candidates of a run of patterns."""
    return places.run(ends)

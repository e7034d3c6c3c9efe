"""Which schemas deserve a table: the greedy choice that static and dynamic share.

Both look at a sample of rows, at how often each is checked now, and at how often it would be under each schema of
its equalities. A step takes the schema of the highest score and counts anew what the others still save.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from overlay.matching.moving_kernels import propose
from overlay.matching.table_kernels import SUBSETS

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from overlay.matching.clustering import Clustering

SAMPLE: Final = 8_192
"""Rows that are looked at: more see rarer schemas, and take longer."""


@dataclass(frozen=True, slots=True)
class Proposals:
    """Schemas for a sample of rows."""

    current: NDArray[np.float64]
    """How often each sampled row is checked, per event."""
    rows: NDArray[np.int32]
    schemas: NDArray[np.int64]
    """Distinct, packed."""
    which: NDArray[np.int64]
    """Per proposal: the place of its schema among these."""
    chances: NDArray[np.float64]
    scale: float
    """How many rows a sampled one stands for."""

    @classmethod
    def of(cls, engine: Clustering, rows: NDArray[np.int32], *, natural: bool) -> Proposals:
        """Look at an even sample of some rows; ``natural``: as if there were no tables yet."""
        step = max(1, -(-len(rows) // SAMPLE))
        sample = rows[::step]
        room = len(sample) * SUBSETS
        current, of = np.empty(len(sample)), np.empty(room, np.int32)
        keys, chances = np.empty(room, np.int64), np.empty(room)
        count = propose(
            engine.index.arrays, engine.arrays, engine.tables, sample, natural, current, of, keys, chances
        )
        schemas, which = np.unique(keys[:count], return_inverse=True)
        return cls(current, of[:count], schemas, which, chances[:count], len(rows) / max(1, len(sample)))

    def saved(self) -> NDArray[np.float64]:
        """Return per schema how many checks per event a table would save now: its power."""
        gains = np.maximum(self.current[self.rows] - self.chances, 0)
        return np.bincount(self.which, gains, len(self.schemas)).astype(np.float64) * self.scale

    def take(self, schema: int) -> float:
        """Let rows use the table of a schema; return how many rows do."""
        its = np.flatnonzero(self.which == schema)
        better = its[self.chances[its] < self.current[self.rows[its]]]
        self.current[self.rows[better]] = self.chances[better]
        return len(better) * self.scale


@dataclass(frozen=True, slots=True)
class Choice:
    """A step of the greedy choice."""

    schema: int
    power: float
    rows: float


def choose_schemas(
    proposals: Proposals, most: int, pick: Callable[[NDArray[np.float64]], int | None]
) -> list[Choice]:
    """Take schemas, at most so many, until ``pick`` finds none worth it among what each saves."""
    chosen: list[Choice] = []
    while len(chosen) < most and len(proposals.schemas):
        saved = proposals.saved()
        best = pick(saved)
        if best is None:
            break
        chosen.append(Choice(int(proposals.schemas[best]), float(saved[best]), proposals.take(best)))
    return chosen

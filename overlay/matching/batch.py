"""Conjunctions as arrays: how many subscriptions enter a matcher at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from overlay.matching import codes
from overlay.matching.errors import BadBatch

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Batch:
    """Conjunction i has the conditions from ``offsets[i]`` to ``offsets[i + 1]``.

    Attributes are numbers of a matcher (``Matcher.attribute``), operators are ``codes``; a value is a finite
    number, or for operators on text and for ``in`` what ``Matcher.text`` and ``Matcher.one_of`` return.
    """

    offsets: NDArray[np.int64]
    attributes: NDArray[np.int32]
    operators: NDArray[np.uint8]
    values: NDArray[np.float64]

    def __post_init__(self) -> None:
        for name, kind in (
            ("offsets", np.int64), ("attributes", np.int32), ("operators", np.uint8), ("values", np.float64),
        ):  # fmt: skip
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), kind))
        sizes = {len(self.attributes), len(self.operators), len(self.values)}
        if len(self.offsets) == 0 or sizes != {int(self.offsets[-1])} or self.offsets[0] != 0:
            raise BadBatch("offsets must run from 0 to the number of attributes, operators and values")
        if np.any(np.diff(self.offsets) < 0):
            raise BadBatch("offsets must not fall")
        if np.any((self.operators >= codes.CODES) | (self.operators == codes.CELL)):
            raise BadBatch(f"operators are below {codes.CODES} and not {codes.CELL}; see overlay.matching.codes")
        if not np.all(np.isfinite(self.values)):
            raise BadBatch("values must be finite")

    @classmethod
    def trusted(cls, offsets: Any, attributes: Any, operators: Any, values: Any) -> Batch:
        """Make one of what needs no check: a batch of few filters would take longer to check than to insert."""
        made = object.__new__(cls)
        object.__setattr__(made, "offsets", np.array(offsets, np.int64))
        object.__setattr__(made, "attributes", np.array(attributes, np.int32))
        object.__setattr__(made, "operators", np.array(operators, np.uint8))
        object.__setattr__(made, "values", np.array(values, np.float64))
        return made

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def part(self, start: int, end: int) -> Batch:
        """Return the conjunctions from ``start`` to ``end``."""
        first, last = self.offsets[start], self.offsets[min(end, len(self))]
        return Batch(
            self.offsets[start : end + 1] - first, self.attributes[first:last], self.operators[first:last],
            self.values[first:last],
        )  # fmt: skip

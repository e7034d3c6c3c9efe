"""Who feeds whom: a configuration, as arrays, and what it says of one subscription.

By subscription: how it is fed (``how``), by which subscriptions (``inputs``, -1 where none), and for a rewriting
its number in the candidate table. Inputs stand in the order of the candidate's views.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class How(IntEnum):
    """How a subscription is fed. ``REWRITING``: computed from others. ``COPY``: by one equal to it. ``LOCAL``:
    by an equal one on its own machine. ``PENDING``: not at all, for want of capacity."""

    REWRITING = 0
    SOURCE = 1
    COPY = 2
    LOCAL = 3
    PENDING = 4


@dataclass(slots=True, eq=False)
class Configuration:
    """The choice for every subscription; see the module's text."""

    how: NDArray[np.int8]
    candidate: NDArray[np.int64]
    inputs: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.how)

    def copy(self) -> Configuration:
        """Return one that can be changed without changing this."""
        return Configuration(self.how.copy(), self.candidate.copy(), self.inputs.copy())

    def inputs_of(self, subscription: int) -> list[int]:
        """List the subscriptions that feed this one."""
        row = self.inputs[subscription]
        found: list[int] = row[row >= 0].tolist()
        return found

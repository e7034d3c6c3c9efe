"""How this package compiles, and what several of its kernels share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

# Nothing else of that module is needed, and to name it there would compile everything anew, everywhere.
from rewriting.kernels import forget_stale, kernel  # type: ignore[attr-defined]

__all__ = ["grown", "hashed", "kernel"]

forget_stale(Path(__file__).parent)


@kernel
def hashed(first: int, second: int) -> int:
    """Mix two integers into one whose low bits can choose a bucket; products wrap around."""
    mixed = (int(first) * 0x9E3779B97F4A7C1 + int(second)) * 0x2545F4914F6CDD1D
    return mixed ^ (mixed >> 29)


def grown(array: Any, size: int, fill: int = 0) -> Any:
    """Return an array with room for ``size`` entries and a quarter more, the new ones filled."""
    if size <= len(array):
        return array
    room = max(16, size + size // 4)
    larger = np.full((room, *array.shape[1:]), fill, array.dtype)
    larger[: len(array)] = array
    return larger

"""Reading figures that may be missing or not of the form expected: what cannot be used reads as missing."""

import math
from collections.abc import Mapping
from typing import Any, Final

LIMITS: Final = ("plan", "improvement", "hard")
_LARGEST: Final = 1e18  # beyond it a number is a mistake, not a figure


def plain(value: Any) -> Any:
    """Return what JSON can say: NumPy's numbers as Python's, and null for those that are not finite."""
    if isinstance(value, Mapping):
        return {str(key): plain(of) for key, of in value.items()}
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, list | tuple):
        return [plain(of) for of in value]
    return plain(value.tolist()) if hasattr(value, "tolist") else str(value)


def number_of(value: Any) -> float | None:
    """Return a number that can be a figure, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) <= _LARGEST else None


def part_of(figures: Any, name: str) -> dict[str, Any]:
    """Return a part that has names, empty if it is missing."""
    part = figures.get(name) if isinstance(figures, dict) else None
    return part if isinstance(part, dict) else {}


def rows_of(value: Any, width: int) -> list[list[Any]]:
    """Return those rows of a list that are long enough."""
    rows = value if isinstance(value, list) else []
    return [row for row in rows if isinstance(row, list) and len(row) >= width]


def counts_of(value: Any) -> list[float]:
    """Return a list of counts, with 0 for what is no count."""
    return [max(number_of(of) or 0, 0) for of in value] if isinstance(value, list) else []


def points_of(value: Any, column: int) -> list[tuple[float, float]]:
    """Return the first column and another as points, in order; rows that lack one are left out."""
    pairs = ((number_of(row[0]), number_of(row[column])) for row in rows_of(value, column + 1))
    return sorted((x, y) for x, y in pairs if x is not None and y is not None)

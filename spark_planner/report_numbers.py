"""Numbers as text: counts, shares, changes, durations and amounts, as the report's reader meets them."""

import math
from typing import Any, Final

SPACE: Final = "\u00a0"
_MINUS: Final = "\u2212"
_CLIP: Final = 240


def count_text(value: float) -> str:
    """Say a whole number."""
    return f"{value:,.0f}"


def some_text(value: float, what: str) -> str:
    """Say a count and what is counted."""
    return f"{count_text(value)} {what}" if value == 1 else f"{count_text(value)} {what}s"


def percent_text(share: float) -> str:
    """Say a share; what is not quite nothing, or not quite all, never reads as if it were."""
    if 0 < share < 0.00005:
        return f"less than 0.01{SPACE}%"
    if 0.99995 < share < 1:
        return f"more than 99.99{SPACE}%"
    return f"{round(share * 100, 2) + 0.0:,.2f}".rstrip("0").rstrip(".") + f"{SPACE}%"


def at_most_text(share: float) -> str:
    """Say a share that is a promise: rounded up, so that the promise holds."""
    return percent_text(max(math.ceil(share * 10_000 - 1e-6), 0) / 10_000)


def change_text(value: float, base: float) -> str:
    """Say by how much a value is above or below another."""
    share = (value - base) / base
    sign = "+" if share > 0 else _MINUS if share < 0 else "±"
    return f"{sign}{abs(share) * 100:,.1f}{SPACE}%"


def duration_text(seconds: float) -> str:
    """Say a time in the unit that suits it."""
    if seconds < 1:
        return f"{seconds * 1000:.3g}{SPACE}ms" if seconds < 0.9995 else f"1.00{SPACE}s"
    if seconds < 10:
        return f"{seconds:.2f}{SPACE}s"
    if seconds < 120:
        return f"{seconds:.1f}{SPACE}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}{SPACE}h {minutes}{SPACE}min" if hours else f"{minutes}{SPACE}min {rest}{SPACE}s"


def amount_text(value: float) -> str:
    """Say a large number in four digits."""
    for size, name in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if value >= size:
            return f"{value / size:,.4g}{SPACE}{name}"
    return count_text(value)


def memory_text(megabytes: float) -> str:
    """Say an amount of memory."""
    return f"{megabytes / 1000:.1f}{SPACE}GB" if megabytes >= 1000 else f"{count_text(megabytes)}{SPACE}MB"


def clipped(value: Any) -> str:
    """Return a value as text, without its end if it is very long."""
    text = "" if value is None else str(value)
    return text if len(text) <= _CLIP else text[:_CLIP] + "…"

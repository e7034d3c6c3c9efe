"""How likely an event satisfies a predicate: as counted lately, and guessed from the constants at first."""

from __future__ import annotations

from typing import Any, Final

from overlay.matching.codes import CELL, EQ_TEXT, GE, IN, LE, LT, REACHED
from overlay.matching.kernels import kernel
from overlay.matching.predicate_fields import ATTRIBUTE, EVENTS, GREATEST, LEAST, OPERATOR, Predicates

_TRUST: Final = 64.0
"""So many events weigh as much as the guess."""


@kernel
def likelihood(p: Predicates, at: int) -> Any:
    """Return the share of events that satisfy a predicate."""
    operator, attribute = p.records[at, OPERATOR], p.records[at, ATTRIBUTE]
    if operator <= REACHED:
        if operator <= EQ_TEXT:
            guess = 1.0 / max(1, p.kinds[attribute, operator])
        elif operator == IN:
            guess = min(0.5, 3.0 / max(1, p.kinds[attribute, 0] + p.kinds[attribute, 1]))
        elif operator == CELL:
            guess = 0.1
        else:
            guess = 0.25
        return (p.hits[at] + _TRUST * guess) / (p.counters[EVENTS] + _TRUST)
    if operator > GE:
        return 0.98
    low, high = p.spans[attribute, LEAST], p.spans[attribute, GREATEST]
    below = (p.values[at] - low) / (high - low) if high > low else 0.5
    share = below if operator in (LT, LE) else 1.0 - below
    return 0.02 + 0.94 * share

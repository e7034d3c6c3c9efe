"""Numbers for what is asked of an attribute, as arrays hold them.

Those up to ``REACHED`` are *reached*: an event leads to each such predicate by hashing, so it can be an access
predicate. The others stand in lists by attribute and operator. Nobody asks for a ``CELL``: a conjunction gets one
that has no other predicate to be reached by (``cell_kernels``).
"""

from __future__ import annotations

from typing import Final

EQ: Final = 0
EQ_TEXT: Final = 1
IN: Final = 2
PREFIX: Final = 3
CELL: Final = 4
LT: Final = 5
LE: Final = 6
GT: Final = 7
GE: Final = 8
NE: Final = 9
NE_TEXT: Final = 10
PRESENT: Final = 11

CODES: Final = 12
REACHED: Final = CELL
LISTS: Final = CODES - LT
"""How many lists an attribute has."""

NUMERIC: Final = frozenset({EQ, LT, LE, GT, GE, NE})
TEXTUAL: Final = frozenset({EQ_TEXT, NE_TEXT, PREFIX})
"""Their values are numbers of texts in a vocabulary."""

"""Numbers for what is asked of an attribute, as arrays hold them.

Those up to ``PREFIX`` are *reached*: an event leads to each such predicate by hashing, so it can be an access
predicate. The others stand in lists by attribute and operator.
"""

from __future__ import annotations

from typing import Final

EQ: Final = 0
EQ_TEXT: Final = 1
IN: Final = 2
PREFIX: Final = 3
LT: Final = 4
LE: Final = 5
GT: Final = 6
GE: Final = 7
NE: Final = 8
NE_TEXT: Final = 9
PRESENT: Final = 10

CODES: Final = 11
LISTS: Final = CODES - LT
"""How many lists an attribute has."""

NUMERIC: Final = frozenset({EQ, LT, LE, GT, GE, NE})
TEXTUAL: Final = frozenset({EQ_TEXT, NE_TEXT, PREFIX})
"""Their values are numbers of texts in a vocabulary."""

"""Values of attributes: each is a text, and a number is the text that spells it.

So a filter means the same whether a message travels as a document, where all is text, or as typed values: a
number compares by what its numeral reads as. That is a double: an integer beyond 2**53 is rounded to the nearest
one, beyond the largest double it is infinite, as ``9007199254740993`` and ``1e400`` in a document are. NaN is a
text that is no number: it differs from every number and is neither above nor below any.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from rewriting.filters.errors import MessageError
from xmlmatch.numerals import number, spell

Value: TypeAlias = str | int | float


def text_of(value: Value) -> str:
    """Write a value as documents carry it; ``MessageError`` if it is neither text nor a number.

    >>> text_of("12.50"), text_of(12.5), text_of(2**64), text_of(-0.0), text_of(float("nan"))
    ('12.50', '12.5', '18446744073709551616', '0', 'NaN')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MessageError(f"{value!r} is no value: use text or a number")
    if isinstance(value, int):
        return _digits(value)
    return "NaN" if math.isnan(value) else spell(value)


def number_of(value: Value) -> float:
    """Read a value as a number, NaN if it is none.

    >>> number_of("12.50"), number_of(2**53 + 1), number_of(10**400), number_of("sport")
    (12.5, 9007199254740992.0, inf, nan)
    """
    if type(value) is float:
        return value
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return number(text_of(value))


def _digits(value: int) -> str:
    try:
        return str(value)
    except ValueError:  # Python writes no more than some thousand digits
        return "1e999" if value > 0 else "-1e999"

"""Numbers in documents and patterns: one grammar, correctly rounded.

``ws* -? (digits (. digits*)? | . digits) ([eE][+-]?digits)? ws*`` in ASCII; anything else is NaN. Never
``float()`` alone: it also takes ``4_0``, ``inf`` and no-break spaces.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

import numba
import numpy as np

from xmlmatch.kernels import kernel

NUMERAL: Final = re.compile(r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SPACE: Final = " \t\r\n"
# Clinger's exact case: up to 15 digits and a power of ten up to 22 are both exact in binary, so one division
# or multiplication rounds correctly. The rest goes to Python, whose float() is correctly rounded.
_EXACT_DIGITS: Final = 15
_EXACT_POWER: Final = 22
_POWERS: Final = 10.0 ** np.arange(_EXACT_POWER + 1)


def number(text: str) -> float:
    """Read a string value as a number, NaN if it is none.

    >>> number(" 40 "), number("4e1"), number("4_0"), number("inf"), number("+40")
    (40.0, 40.0, nan, nan, nan)
    """
    stripped = text.strip(_SPACE)
    return float(stripped) if NUMERAL.fullmatch(stripped) else float("nan")


def spell(value: float) -> str:
    """Write a number so that it reads back as the same one; whole numbers without a point.

    >>> spell(40.0), spell(-0.0), spell(0.1), spell(1e300)
    ('40', '0', '0.1', '1e+300')
    """
    if math.isinf(value):
        return "1e999" if value > 0 else "-1e999"
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return repr(value)


@kernel
def scan(chars: Any, start: int, end: int) -> tuple[float, bool]:
    """Read ``chars[start:end]``; the flag is True where only Python rounds correctly (then the value is 0)."""
    while start < end and (chars[start] == 32 or 9 <= chars[start] <= 10 or chars[start] == 13):
        start += 1
    while start < end and (chars[end - 1] == 32 or 9 <= chars[end - 1] <= 10 or chars[end - 1] == 13):
        end -= 1
    negative = start < end and chars[start] == 45
    at = start + 1 if negative else start
    value, digits, scale, seen, point = 0.0, 0, 0, False, False
    while at < end:
        c = chars[at]
        if 48 <= c <= 57:
            seen = True
            if digits > 0 or c != 48:
                digits += 1
            if digits <= _EXACT_DIGITS:
                value = value * 10.0 + (c - 48)
            if point:
                scale -= 1
        elif c == 46 and not point:
            point = True
        else:
            break
        at += 1
    if not seen:
        return np.nan, False
    power, ok = _exponent(chars, at, end)
    if not ok:
        return np.nan, False
    power += scale
    if value == 0.0:
        return 0.0, False
    if digits > _EXACT_DIGITS or power > _EXACT_POWER or power < -_EXACT_POWER:
        return 0.0, True
    value = value * _POWERS[power] if power >= 0 else value / _POWERS[-power]
    return (-value if negative else value), False


@kernel
def _exponent(chars: Any, at: int, end: int) -> tuple[int, bool]:
    """Read an optional exponent that must reach ``end``; large ones stop growing, they are inexact anyway."""
    if at == end:
        return 0, True
    if chars[at] != 101 and chars[at] != 69:
        return 0, False
    at += 1
    sign = 1
    if at < end and (chars[at] == 45 or chars[at] == 43):
        sign = -1 if chars[at] == 45 else 1
        at += 1
    if at == end:
        return 0, False
    power = 0
    while at < end:
        if not 48 <= chars[at] <= 57:
            return 0, False
        power = min(power * 10 + numba.int64(chars[at] - 48), 1 << 40)  # beyond any number of digits
        at += 1
    return sign * power, True

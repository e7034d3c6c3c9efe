"""Numbers read character by character and rounded from an exact fraction."""

from fractions import Fraction

_DIGITS = "0123456789"
_SPACE = " \t\r\n"
# Beyond this many digits before or after the point every value is infinite or zero in double precision.
_FAR = 5_000


def _digits(text, at):
    end = at
    while end < len(text) and text[end] in _DIGITS:
        end += 1
    return text[at:end], end


def exact(text):
    """Return (negative, mantissa, power of ten) of a numeral, None for what is no number."""
    at, end = 0, len(text)
    while at < end and text[at] in _SPACE:
        at += 1
    while end > at and text[end - 1] in _SPACE:
        end -= 1
    text = text[at:end]
    negative = text.startswith("-")
    whole, at = _digits(text, 1 if negative else 0)
    fraction = ""
    if at < len(text) and text[at] == ".":
        fraction, at = _digits(text, at + 1)
    if not whole and not fraction:
        return None
    power = 0
    if at < len(text) and text[at] in "eE":
        sign, at = 1, at + 1
        if at < len(text) and text[at] in "+-":
            sign, at = (-1 if text[at] == "-" else 1), at + 1
        exponent, at = _digits(text, at)
        if not exponent:
            return None
        power = sign * int(exponent)
    if at != len(text):
        return None
    return negative, int(whole + fraction), power - len(fraction)


def to_number(text):
    """Read a string value as XPath 1.0 does, with exponents; NaN for what is no number."""
    found = exact(text)
    if found is None:
        return float("nan")
    negative, mantissa, power = found
    magnitude = _round(mantissa, power)
    return -magnitude if negative else magnitude


def _round(mantissa, power):
    if mantissa == 0:
        return 0.0
    size = len(str(mantissa)) + power
    if size > _FAR:
        return float("inf")
    if size < -_FAR:
        return 0.0
    try:
        return float(mantissa * Fraction(10) ** power)
    except OverflowError:
        return float("inf")


def compare(value, operator, constant):
    """Say whether a string value satisfies ``operator constant`` by the rules of the pattern language."""
    if isinstance(constant, str):
        return {"=": value == constant, "!=": value != constant}[operator]
    number = to_number(value)
    outcomes = {
        "=": number == constant,
        "!=": number != constant,  # NaN differs from everything
        "<": number < constant,
        "<=": number <= constant,
        ">": number > constant,
        ">=": number >= constant,
    }
    return outcomes[operator]

"""Matching of filters by a plain loop, from the meaning of the text alone."""

import math
import re

NUMERAL = re.compile(r"[ \t\r\n]*(-?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?)[ \t\r\n]*")


def to_text(value):
    """Write a value as a document would carry it."""
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return "NaN"
    return repr(value) if math.isfinite(value) else "-1e999"[value > 0 :]


def to_number(value):
    found = NUMERAL.fullmatch(to_text(value))
    return float(found[1]) if found else math.nan


def holds(operator, constant, value):
    """Say whether a value satisfies ``operator constant``; ``in`` takes a tuple, ``prefix`` a text."""
    if operator == "in":
        return any(holds("=", c, value) for c in constant)
    if operator == "prefix":
        return to_text(value)[: len(constant)] == constant
    left, right = (to_text(value), constant) if isinstance(constant, str) else (to_number(value), float(constant))
    return {
        "=": left == right, "!=": left != right, "<": left < right, "<=": left <= right, ">": left > right,
        ">=": left >= right,
    }[operator]  # fmt: skip


def conjunction_matches(conditions, event):
    return all(name in event and holds(operator, constant, event[name]) for name, operator, constant in conditions)


def matching(subscriptions, event):
    """List the keys of the subscriptions (key to conjunctions) that an event satisfies, sorted."""
    return sorted(k for k, rows in subscriptions.items() if any(conjunction_matches(r, event) for r in rows))

"""When a full plan is due. Pure: what the source says of itself in, a reason out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def due(state: Mapping[str, Any], every_s: float | None, drift: float | None) -> str:
    """Say why a plan is due; empty if none is. Without either, plans are made only when asked for.

    >>> state = {"subscriptions": 100, "age_s": 50.0, "churn": 25, "planned": 100}
    >>> state |= {"feeds": 10, "planned_feeds": 10}
    >>> due(state, None, 0.2)
    '25 of 100 subscriptions came or went'
    >>> due(state, 3600, 0.5), due(state, 30, 0.5)
    ('', 'the last plan is 50 s old')
    """
    if not state["subscriptions"] or (every_s is None and drift is None):
        return ""
    if state["age_s"] is None:
        return "there is no plan yet"
    if every_s is not None and state["age_s"] >= every_s:
        return f"the last plan is {state['age_s']:,.0f} s old"
    if drift is None:
        return ""
    churn, planned = state["churn"], state["planned"]
    if churn and churn >= drift * planned:
        return f"{churn:,} of {planned:,} subscriptions came or went"
    more, before = state["feeds"] - state["planned_feeds"], state["planned_feeds"]
    if more > 0 and more >= drift * before:
        return f"the source feeds {state['feeds']:,}; {before:,} were planned"
    return ""


def back_off_s(failures: int, least_s: float, most_s: float) -> float:
    """Return how long to wait after so many failures in a row.

    >>> [back_off_s(n, 30, 3600) for n in (0, 1, 2, 20)]
    [0.0, 30.0, 60.0, 3600.0]
    """
    return 0.0 if failures == 0 else float(min(least_s * 2 ** min(failures - 1, 30), most_s))

"""The head of the report: what came of the run in plain words, its key numbers, and what is not exact."""

from collections.abc import Iterable
from typing import Any

from spark_planner.charts import escaped, small_bar
from spark_planner.report_figures import LIMITS, number_of, part_of
from spark_planner.report_numbers import (
    amount_text,
    at_most_text,
    clipped,
    count_text,
    duration_text,
    memory_text,
    percent_text,
    some_text,
)


def headline(figures: dict[str, Any]) -> str:
    """Return the head of the page."""
    size = [
        (number_of(figures.get("subscriptions")), "subscription"),
        (number_of(figures.get("patterns")), "distinct pattern"),
        (number_of(figures.get("sites")), "site"),
    ]
    about = " · ".join(some_text(number, what) for number, what in size if number is not None)
    lede = escaped(" ".join(_sentences(figures)))
    tiles = "".join(_tile(*tile) for tile in _tiles(figures))
    return (
        f'<header><p class="eyebrow">distributary</p><h1>Plan report</h1><p class="about">{about}</p>'
        f'<p class="lede">{lede}</p><dl class="tiles">{tiles}</dl>{_limits(figures)}{_inexact(figures)}</header>'
    )


def _sentences(figures: dict[str, Any]) -> Iterable[str]:
    """Say in plain words who is fed by whom, how good that is, and what latency improvement did."""
    yield from _who_feeds(figures)
    yield from _how_good(figures)
    before, after = (number_of(part_of(figures, "latency_s").get(key)) for key in ("ilp", "best"))
    if before is not None and after is not None and after < before:
        more = _more_utilization(part_of(figures, "utilization"))
        change = f"from {duration_text(before)} to {duration_text(after)}{more}"
        yield f"Improvement then lowered the mean latency {change}."


def _who_feeds(figures: dict[str, Any]) -> Iterable[str]:
    total, fed = number_of(figures.get("subscriptions")), number_of(part_of(figures, "source").get("feeds"))
    pending = number_of(figures.get("pending")) or 0
    if total is None or fed is None:
        return
    fed_words = (
        f"{count_text(fed)} of {some_text(total, 'subscription')} {'is' if fed == 1 else 'are'} fed by the source"
    )
    if pending:
        others = count_text(max(total - fed - pending, 0))
        yield f"{fed_words}, {others} by each other, and {count_text(pending)} by nobody, for want of capacity."
    else:
        yield fed_words + ("." if fed >= total else "; the others feed each other.")


def _how_good(figures: dict[str, Any]) -> Iterable[str]:
    gap, outcome = number_of(figures.get("gap")), figures.get("outcome")
    but = ", for a problem that is not exact in every respect" if figures.get("exact") is False else ""
    if outcome == "optimal":
        yield f"The choice is proven optimal: none within the limits has a lower utilization{but}."
    elif outcome == "feasible" and gap is not None:
        yield f"The choice is not proven optimal, but at most {at_most_text(gap)} above the optimum{but}."
    elif outcome == "feasible":
        yield f"The choice is within the limits; how far it is from the optimum is not known{but}."


def _more_utilization(utilization: dict[str, Any]) -> str:
    before, after = number_of(utilization.get("ilp")), number_of(utilization.get("best"))
    if before is None or after is None or before <= 0 or after < before:
        return ""
    return f", for {percent_text(after / before - 1)} more utilization" if after > before else ", at no cost"


def _tiles(figures: dict[str, Any]) -> Iterable[tuple[str, ...]]:
    yield from _source_tiles(figures)
    gap = number_of(figures.get("gap"))
    if figures.get("outcome") == "optimal":
        yield "Choice", "optimal", "proven by the solver"
    elif figures.get("outcome") == "feasible" and gap is not None:
        yield "Gap", at_most_text(gap), "the most it can be above the optimum"
    for name, part, say, note in (
        ("Mean latency", "latency_s", duration_text, "to a subscription"),
        ("Utilization", "utilization", amount_text, "byte equivalents a document"),
    ):
        before, after = (number_of(part_of(figures, part).get(key)) for key in ("ilp", "best"))
        now = before if after is None else after
        if now is not None:
            yield (
                name,
                say(now),
                note if before in (None, now) else f"{note}; {say(before or 0)} before improvement",
            )
    total, peak = number_of(part_of(figures, "seconds").get("total")), number_of(figures.get("peak_mb"))
    if total is not None:
        yield "Planned in", duration_text(total), "" if peak is None else f"{memory_text(peak)} of memory at most"


def _source_tiles(figures: dict[str, Any]) -> Iterable[tuple[str, ...]]:
    source = part_of(figures, "source")
    fed, limit, plan = (number_of(source.get(key)) for key in ("feeds", "limit", "plan_limit"))
    if fed is not None:
        bar = "" if limit is None else small_bar(fed, limit, tone="best", tick=plan)
        note = "no limit" if "limit" in source else ""
        if limit is not None:
            note = f"of at most {count_text(limit)}" + (
                "" if plan is None else f"; plans may use {count_text(plan)}"
            )
        yield "Fed by the source", count_text(fed), note, bar
    offloaded = number_of(figures.get("offloaded"))
    if offloaded is not None:
        yield "Offloaded", percent_text(offloaded), "of subscriptions, not fed by the source"


def _tile(label: str, value: str, note: str, bar: str = "") -> str:
    return (
        f'<div><dt>{escaped(label)}</dt><dd class="big">{escaped(value)}</dd>'
        f'<dd class="note">{bar}{escaped(note)}</dd></div>'
    )


def _limits(figures: dict[str, Any]) -> str:
    """Say the limits on feeds per subscription, in one line."""
    limits = part_of(figures, "limits")
    parts = [
        f'<span><span class="{name}"><i></i>{name}</span> <b>{escaped(clipped(limits[name]))}</b></span>'
        for name in LIMITS
        if limits.get(name) is not None
    ]
    return f'<p class="limits">Feeds per subscription, at most: {" ".join(parts)}</p>' if parts else ""


def _inexact(figures: dict[str, Any]) -> str:
    reasons = figures.get("inexact")
    if not isinstance(reasons, list) or not reasons:
        return ""
    items = "".join(f"<li>{escaped(clipped(reason))}</li>" for reason in reasons)
    return f'<aside><h2>What is not exact</h2><ul class="reasons">{items}</ul></aside>'

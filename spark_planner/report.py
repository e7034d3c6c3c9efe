"""The report of a planning run: its figures as JSON, and as one HTML page that needs nothing but itself.

A page is a headline in plain words, key numbers, and one card per picture. A card whose figures are missing, or
not of the form expected, is left out: a report comes at the end of a long run and must not be what fails.
Pictures are drawn by ``charts``; below each stand its numbers as a table, for all who cannot or will not see it.
"""

import json
import math
import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from spark_planner.charts import (
    Axis,
    Bar,
    Line,
    Mark,
    escaped,
    horizontal_bars,
    linear_axis,
    log_axis,
    plot,
    small_bar,
    tick_step,
)

_Of = TypeVar("_Of")

_NAMES: Final = {
    "ilp": "Integer program",
    "loga": "After LOGA",
    "best": "Best found",
    "bound": "Lower bound",
}
_LIMITS: Final = ("plan", "improvement", "hard")
_STAGES: Final = ("normalise", "statistics", "candidates", "solve", "improve", "write")
_LARGEST: Final = 1e18  # beyond it a number is a mistake, not a figure
_FEWEST_PLACES: Final = 6  # an axis of whole numbers is at least so long, or one bar would fill it
_MOST_BARS: Final = 80
_MOST_POINTS: Final = 400
_MOST_ROWS: Final = 100
_MOST_LISTED: Final = 12
_CLIP: Final = 240
_SPACE: Final = "\u00a0"
_MINUS: Final = "\u2212"


class Markup(str):
    """Text that is HTML already; any other text is escaped where it enters the page."""

    __slots__ = ()


def report_html(figures: Mapping[str, Any]) -> str:
    """Return the page; parts of the figures may be missing."""
    known = _plain(figures)
    cards = [
        _compared(known),
        _levels(known),
        _fan_out(known),
        _latency_trace(known),
        _utilization_trace(known),
        _site_curve(known),
        _stages(known),
        _busiest(known),
        _feeders(known),
    ]
    body = f'{_header(known)}<main class="cards">{"".join(cards)}</main>{_FOOTER}'
    return f"{_HEAD}<body>{body}</body></html>\n"


def write_report(figures: Mapping[str, Any], folder: Path) -> None:
    """Write report.json and report.html; a reader sees the old file or the new one, never a part."""
    files = {
        "report.json": json.dumps(_plain(figures), indent=2, sort_keys=True) + "\n",
        "report.html": report_html(figures),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        _replace(folder / name, text)


def _replace(path: Path, text: str) -> None:
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with unfinished.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


# Reading figures


def _plain(value: Any) -> Any:
    """Return what JSON can say: NumPy's numbers as Python's, and null for those that are not finite."""
    if isinstance(value, Mapping):
        return {str(key): _plain(of) for key, of in value.items()}
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, list | tuple):
        return [_plain(of) for of in value]
    return _plain(value.tolist()) if hasattr(value, "tolist") else str(value)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) <= _LARGEST else None


def _part(figures: Any, name: str) -> dict[str, Any]:
    """Return a part that has names, empty if it is missing."""
    part = figures.get(name) if isinstance(figures, dict) else None
    return part if isinstance(part, dict) else {}


def _rows(value: Any, width: int) -> list[list[Any]]:
    """Return those rows of a list that are long enough."""
    rows = value if isinstance(value, list) else []
    return [row for row in rows if isinstance(row, list) and len(row) >= width]


def _counts(value: Any) -> list[float]:
    return [max(_number(of) or 0, 0) for of in value] if isinstance(value, list) else []


def _points(value: Any, column: int) -> list[tuple[float, float]]:
    """Return the first column and another as points, in order; rows that lack one are left out."""
    pairs = ((_number(row[0]), _number(row[column])) for row in _rows(value, column + 1))
    return sorted((x, y) for x, y in pairs if x is not None and y is not None)


# Numbers as text


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _some(value: float, what: str) -> str:
    """Say a count and what is counted."""
    return f"{_count(value)} {what}" if value == 1 else f"{_count(value)} {what}s"


def _percent(share: float) -> str:
    """Say a share; what is not quite nothing, or not quite all, never reads as if it were."""
    if 0 < share < 0.00005:
        return f"less than 0.01{_SPACE}%"
    if 0.99995 < share < 1:
        return f"more than 99.99{_SPACE}%"
    return f"{round(share * 100, 2) + 0.0:,.2f}".rstrip("0").rstrip(".") + f"{_SPACE}%"


def _at_most(share: float) -> str:
    """Say a share that is a promise: rounded up, so that the promise holds."""
    return _percent(max(math.ceil(share * 10_000 - 1e-6), 0) / 10_000)


def _change(value: float, base: float) -> str:
    """Say by how much a value is above or below another."""
    share = (value - base) / base
    sign = "+" if share > 0 else _MINUS if share < 0 else "±"
    return f"{sign}{abs(share) * 100:,.1f}{_SPACE}%"


def _duration(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.3g}{_SPACE}ms" if seconds < 0.9995 else f"1.00{_SPACE}s"
    if seconds < 10:
        return f"{seconds:.2f}{_SPACE}s"
    if seconds < 120:
        return f"{seconds:.1f}{_SPACE}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}{_SPACE}h {minutes}{_SPACE}min" if hours else f"{minutes}{_SPACE}min {rest}{_SPACE}s"


def _amount(value: float) -> str:
    """Say a large number in four digits."""
    for size, name in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if value >= size:
            return f"{value / size:,.4g}{_SPACE}{name}"
    return _count(value)


def _clipped(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= _CLIP else text[:_CLIP] + "…"


# The headline


def _header(figures: dict[str, Any]) -> str:
    size = [
        (_number(figures.get("subscriptions")), "subscription"),
        (_number(figures.get("patterns")), "distinct pattern"),
        (_number(figures.get("sites")), "site"),
    ]
    about = " · ".join(_some(number, what) for number, what in size if number is not None)
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
    before, after = (_number(_part(figures, "latency_s").get(key)) for key in ("ilp", "best"))
    if before is not None and after is not None and after < before:
        more = _more_utilization(_part(figures, "utilization"))
        yield f"Improvement then lowered the mean latency from {_duration(before)} to {_duration(after)}{more}."


def _who_feeds(figures: dict[str, Any]) -> Iterable[str]:
    total, fed = _number(figures.get("subscriptions")), _number(_part(figures, "source").get("feeds"))
    pending = _number(figures.get("pending")) or 0
    if total is None or fed is None:
        return
    fed_words = f"{_count(fed)} of {_some(total, 'subscription')} {'is' if fed == 1 else 'are'} fed by the source"
    if pending:
        others = _count(max(total - fed - pending, 0))
        yield f"{fed_words}, {others} by each other, and {_count(pending)} by nobody, for want of capacity."
    else:
        yield fed_words + ("." if fed >= total else "; the others feed each other.")


def _how_good(figures: dict[str, Any]) -> Iterable[str]:
    gap, outcome = _number(figures.get("gap")), figures.get("outcome")
    but = ", for a problem that is not exact in every respect" if figures.get("exact") is False else ""
    if outcome == "optimal":
        yield f"The choice is proven optimal: none within the limits has a lower utilization{but}."
    elif outcome == "feasible" and gap is not None:
        yield f"The choice is not proven optimal, but at most {_at_most(gap)} above the optimum{but}."
    elif outcome == "feasible":
        yield f"The choice is within the limits; how far it is from the optimum is not known{but}."


def _more_utilization(utilization: dict[str, Any]) -> str:
    before, after = _number(utilization.get("ilp")), _number(utilization.get("best"))
    if before is None or after is None or before <= 0 or after < before:
        return ""
    return f", for {_percent(after / before - 1)} more utilization" if after > before else ", at no cost"


def _tile(label: str, value: str, note: str, bar: str = "") -> str:
    return (
        f'<div><dt>{escaped(label)}</dt><dd class="big">{escaped(value)}</dd>'
        f'<dd class="note">{bar}{escaped(note)}</dd></div>'
    )


def _tiles(figures: dict[str, Any]) -> Iterable[tuple[str, ...]]:
    yield from _source_tiles(figures)
    gap = _number(figures.get("gap"))
    if figures.get("outcome") == "optimal":
        yield "Choice", "optimal", "proven by the solver"
    elif figures.get("outcome") == "feasible" and gap is not None:
        yield "Gap", _at_most(gap), "the most it can be above the optimum"
    for name, part, say, note in (
        ("Mean latency", "latency_s", _duration, "to a subscription"),
        ("Utilization", "utilization", _amount, "byte equivalents a document"),
    ):
        before, after = (_number(_part(figures, part).get(key)) for key in ("ilp", "best"))
        now = before if after is None else after
        if now is not None:
            yield (
                name,
                say(now),
                note if before in (None, now) else f"{note}; {say(before or 0)} before improvement",
            )
    total, peak = _number(_part(figures, "seconds").get("total")), _number(figures.get("peak_mb"))
    if total is not None:
        yield "Planned in", _duration(total), "" if peak is None else f"{_memory(peak)} of memory at most"


def _source_tiles(figures: dict[str, Any]) -> Iterable[tuple[str, ...]]:
    source = _part(figures, "source")
    fed, limit, plan = (_number(source.get(key)) for key in ("feeds", "limit", "plan_limit"))
    if fed is not None:
        bar = "" if limit is None else small_bar(fed, limit, tone="best", tick=plan)
        note = "no limit" if "limit" in source else ""
        if limit is not None:
            note = f"of at most {_count(limit)}" + ("" if plan is None else f"; plans may use {_count(plan)}")
        yield "Fed by the source", _count(fed), note, bar
    offloaded = _number(figures.get("offloaded"))
    if offloaded is not None:
        yield "Offloaded", _percent(offloaded), "of subscriptions, not fed by the source"


def _memory(megabytes: float) -> str:
    return f"{megabytes / 1000:.1f}{_SPACE}GB" if megabytes >= 1000 else f"{_count(megabytes)}{_SPACE}MB"


def _limits(figures: dict[str, Any]) -> str:
    """Say the limits on feeds per subscription, in one line."""
    limits = _part(figures, "limits")
    parts = [
        f'<span><span class="{name}"><i></i>{name}</span> <b>{escaped(_clipped(limits[name]))}</b></span>'
        for name in _LIMITS
        if limits.get(name) is not None
    ]
    return f'<p class="limits">Feeds per subscription, at most: {" ".join(parts)}</p>' if parts else ""


def _inexact(figures: dict[str, Any]) -> str:
    reasons = figures.get("inexact")
    if not isinstance(reasons, list) or not reasons:
        return ""
    items = "".join(f"<li>{escaped(_clipped(reason))}</li>" for reason in reasons)
    return f'<aside><h2>What is not exact</h2><ul class="reasons">{items}</ul></aside>'


# Cards


def _card(title: str, table: str, *, kind: str, caption: str) -> str:
    """Return a card with a table that is itself the picture."""
    start = f'<section class="card {kind}"><h2>{escaped(title)}</h2>'
    return f'{start}{table}<p class="caption">{escaped(caption)}</p></section>'


def _figure(title: str, svg: str, caption: str, table: str, legend: Sequence[tuple[str, str]] = ()) -> str:
    """Return a card with a chart, how to read it, and its numbers."""
    keys = "".join(f'<li class="{tone}"><i></i><span>{escaped(name)}</span></li>' for tone, name in legend)
    keys = f'<ul class="legend">{keys}</ul>' if keys else ""
    return (
        f'<section class="card"><figure><h2>{escaped(title)}</h2>{keys}{svg}'
        f"<figcaption>{escaped(caption)}</figcaption></figure>"
        f"<details><summary>Numbers</summary>{table}</details></section>"
    )


def _table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose first column names its rows; of very many rows some are shown, and it says so."""
    every = list(rows)
    shown = _thinned(every, _MOST_ROWS)
    if len(shown) < len(every):
        caption += f" ({len(shown)} of {_count(len(every))} rows; report.json has all)"
    top = "".join(f'<th scope="col">{_cell(of)}</th>' for of in head)
    body = "".join(
        f'<tr><th scope="row">{_cell(row[0])}</th>{"".join(f"<td>{_cell(of)}</td>" for of in row[1:])}</tr>'
        for row in shown
    )
    return (
        f'<div class="scroll" tabindex="0"><table><caption>{escaped(caption)}</caption>'
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(text: str) -> str:
    return text if isinstance(text, Markup) else escaped(text)


def _thinned(items: Sequence[_Of], most: int) -> Sequence[_Of]:
    """Return at most so many of the items, evenly spread, with the first and the last."""
    if len(items) <= most:
        return items
    return [items[n * (len(items) - 1) // (most - 1)] for n in range(most)]


def _compared(figures: dict[str, Any]) -> str:
    """Compare the integer program's choice, what improvement made of it, and the lower bounds."""
    columns = [
        (name, part, say)
        for name, part, say in (
            ("Utilization", "utilization", _count),
            ("Mean latency", "latency_s", _duration),
            ("Mean latency as in the paper", "paper_latency_s", _duration),
        )
        if any(_number(_part(figures, part).get(key)) is not None for key in _NAMES)
    ]
    rows = [
        [name, *(_compared_cell(_part(figures, part), key, say) for _, part, say in columns)]
        for key, name in _NAMES.items()
        if any(_number(_part(figures, part).get(key)) is not None for _, part, _ in columns)
    ]
    if not rows:
        return ""
    table = _table(
        "Utilization in byte equivalents per document; latency over all subscriptions",
        ["Choice", *(name for name, _, _ in columns)],
        rows,
    )
    caption = (
        "The integer program minimises utilization; LOGA and the search after it give some of it back for a lower "
        "latency. Percentages compare with the integer program."
    )
    if _part(figures, "paper_latency_s"):
        caption += " In the paper's latency, feeds do not share their sender's uplink."
    return _card("Utilization and latency", table, kind="wide", caption=caption)


def _compared_cell(part: dict[str, Any], key: str, say: Callable[[float], str]) -> str:
    value, base = _number(part.get(key)), _number(part.get("ilp"))
    if value is None:
        return ""
    most = max(_number(of) or 0 for of in part.values())
    change = "" if key == "ilp" or not base else f" <small>{escaped(_change(value, base))}</small>"
    return Markup(f"{escaped(say(value))}{change}{small_bar(value, most, tone=key)}")


def _levels(figures: dict[str, Any]) -> str:
    part = _part(figures, "levels")
    series = {key: _counts(part.get(key)) for key in _NAMES if any(_counts(part.get(key)))}
    if not series:
        return ""
    deepest = {key: max(n for n, count in enumerate(of) if count) for key, of in series.items()}
    first, last = 0 if any(of[0] for of in series.values()) else 1, max(deepest.values())
    share = 0.8 / len(series)
    bars = [
        Bar(
            n - 0.4 + k * share,
            n - 0.4 + (k + 1) * share,
            of[n],
            key,
            f"{_NAMES[key]}, level {n}: {_count(of[n])}",
        )
        for k, (key, of) in enumerate(series.items())
        for n in range(first, deepest[key] + 1)
    ]
    y = log_axis("subscriptions (logarithmic)", max(bar.value for bar in bars))
    title = "Levels before and after improvement" if len(series) > 1 else "Levels"
    svg = plot(title, _whole_axis("level (1: fed by the source)", first, last), y, bars=bars)
    rows = [
        [str(n), *(_count(of[n]) if n < len(of) else "0" for of in series.values())]
        for n in range(first, last + 1)
    ]
    table = _table("Subscriptions by level", ["Level", *(_NAMES[key] for key in series)], rows)
    means = " ".join(
        f"{_NAMES[key]}: {_mean_level(of):.2f} on average, {deepest[key]} at most." for key, of in series.items()
    )
    caption = (
        "A subscription's level is how many hops a document takes to it; further left is sooner. Counts "
        f"have a logarithmic scale, so that the few furthest away are seen too. {means}"
    )
    return _figure(title, svg, caption, table, [(key, _NAMES[key]) for key in series])


def _mean_level(counts: Sequence[float]) -> float:
    return sum(n * count for n, count in enumerate(counts)) / sum(counts)


def _whole_axis(label: str, first: float, last: float) -> Axis:
    """Return an axis on which each whole number stands in the middle of its bar."""
    return linear_axis(label, first - 0.5, max(last, first + _FEWEST_PLACES - 1) + 0.5, most=10, whole=True)


def _fan_out(figures: dict[str, Any]) -> str:
    part = _part(figures, "fan_out")
    pairs = zip(_counts(part.get("feeds")), _counts(part.get("subscriptions")), strict=False)
    counts = sorted((feeds, count) for feeds, count in pairs if count > 0)
    if not counts:
        return ""
    limits = {name: _number(_part(part, "limits").get(name)) for name in _LIMITS}
    most = counts[-1][0]
    # A limit far beyond all data would leave the data no room.
    near = {name: of for name, of in limits.items() if of is not None and of <= max(4 * most, 60)}
    last = max(most, *near.values(), 0)
    width = 1 if last < _MOST_BARS else int(tick_step(0, last, most=_MOST_BARS, whole=True))
    title = "Fan-out against the limits" if near else "Fan-out"
    svg = plot(
        title,
        _whole_axis("feeds (how many others a subscription feeds)", 0, last // width * width + width - 1),
        log_axis("subscriptions (logarithmic)", max(count for _, count in _binned(counts, width))),
        bars=[_fan_out_bar(first, width, count) for first, count in _binned(counts, width)],
        marks=[Mark(of + 0.5, f"{name} {_count(of)}", name) for name, of in near.items()],
    )
    rows = [[_count(feeds), _count(count)] for feeds, count in counts]
    caption = " ".join(_fan_out_words(counts, limits, near, width))
    return _figure(title, svg, caption, _table("Subscriptions by feeds", ["Feeds", "Subscriptions"], rows))


def _binned(counts: Iterable[tuple[float, float]], width: int) -> list[tuple[float, float]]:
    """Add up counts over ranges of a width; each range is named by its first number."""
    sums: dict[float, float] = {}
    for feeds, count in counts:
        first = feeds // width * width
        sums[first] = sums.get(first, 0) + count
    return sorted(sums.items())


def _fan_out_bar(first: float, width: int, count: float) -> Bar:
    name = _count(first) if width == 1 else f"{_count(first)} to {_count(first + width - 1)}"
    return Bar(
        first - 0.5 + 0.08 * width, first - 0.5 + 0.92 * width, count, "best", f"{name} feeds: {_count(count)}"
    )


def _fan_out_words(
    counts: Sequence[tuple[float, float]],
    limits: Mapping[str, float | None],
    near: Mapping[str, float],
    width: int,
) -> Iterable[str]:
    idle = sum(count for feeds, count in counts if feeds == 0)
    yield f"{_some(idle, 'subscription')} feed{'s' if idle == 1 else ''} nobody."
    if near:
        yield "Bars left of a line are within that limit."
    if limits["plan"] is not None:
        above = sum(count for feeds, count in counts if feeds > limits["plan"])
        yield f"{_count(above) if above else 'None'} {'are' if above > 1 else 'is'} above the plan limit."
    far = [f"{name} {_count(of)}" for name, of in limits.items() if of is not None and name not in near]
    if far:
        yield f"Limits too far right to be shown: {', '.join(far)}."
    if width > 1:
        yield f"Each bar stands for {width} numbers of feeds."


def _latency_trace(figures: dict[str, Any]) -> str:
    points = _points(figures.get("trace"), 1)
    if not points:
        return ""
    start, end = points[0][1], points[-1][1]
    words = f"from {_duration(start)} to {_duration(end)}" if start != end else f"{_duration(end)} throughout"
    caption = f"Mean over all subscriptions, as improvement went on: {words}."
    unit, scale = ("s", 1) if max(y for _, y in points) >= 2 else ("ms", 1000)
    scaled = [(x, y * scale) for x, y in points]
    return _trace("Latency against time", figures, scaled, f"mean latency ({unit})", caption)


def _utilization_trace(figures: dict[str, Any]) -> str:
    points = _points(figures.get("trace"), 2)
    if not points:
        return ""
    caption = "What the lower latency costs: utilization at the same moments."
    large = max(y for _, y in points) >= 1e7
    label = f"{'million ' if large else ''}byte equivalents per document"
    scaled = [(x, y / 1e6 if large else y) for x, y in points]
    return _trace("Utilization against time", figures, scaled, label, caption)


def _trace(
    title: str, figures: dict[str, Any], points: Sequence[tuple[float, float]], label: str, caption: str
) -> str:
    low, high = min(y for _, y in points), max(y for _, y in points)
    if low > high / 2:
        caption += " The vertical axis does not start at 0."
    y = linear_axis(label, low if low > high / 2 else 0, high, most=5, rounded=True)
    rows = _rows(figures.get("trace_marks"), 2)
    marks = [Mark(at, _clipped(row[1])[:28], "loga") for row in rows if (at := _number(row[0])) is not None]
    x = linear_axis("time (s)", 0, max(points[-1][0], *(mark.at for mark in marks), 0))
    svg = plot(title, x, y, lines=[Line(_thinned(points, _MOST_POINTS), "best")], marks=marks)
    numbers = [[f"{at:,.2f}", f"{value:,.6g}"] for at, value in points]
    return _figure(title, svg, caption, _table(title, ["Time (s)", label[0].upper() + label[1:]], numbers))


def _site_curve(figures: dict[str, Any]) -> str:
    points = _points(_part(figures, "site_utilization").get("shares"), 1)
    if not points:
        return ""
    points = points if points[0][0] <= 0 else [(0.0, 0.0), *points]
    title = "Utilization by site"
    x = linear_axis("share of sites, busiest first", 0, 100, most=5, unit=f"{_SPACE}%")
    y = linear_axis("share of utilization", 0, 100, most=5, unit=f"{_SPACE}%")
    curve = Line([(100 * a, 100 * b) for a, b in _thinned(points, _MOST_POINTS)], "best")
    svg = plot(title, x, y, lines=[Line([(0, 0), (100, 100)], "bound", dashed=True), curve])
    words = f"The busiest tenth of the sites carries {_percent(_interpolated(points, 0.1))} of the utilization."
    caption = f"{words} The further the curve bends above the dashed line, the less even the load."
    rows = [[_percent(a), _percent(b)] for a, b in points]
    table = _table(title, ["Busiest sites", "Utilization"], rows)
    return _figure(title, svg, caption, table, [("best", "this plan"), ("bound", "all sites alike")])


def _interpolated(points: Sequence[tuple[float, float]], at: float) -> float:
    """Return a curve's height at a place; at its ends it goes on level."""
    before, after = points[0], points[-1]
    for point in points:
        before = point if point[0] <= at else before
    for point in reversed(points):
        after = point if point[0] >= at else after
    if after[0] <= before[0]:
        return before[1]
    return before[1] + (after[1] - before[1]) * (at - before[0]) / (after[0] - before[0])


def _busiest(figures: dict[str, Any]) -> str:
    sites = [
        (_clipped(row[0]), of)
        for row in _rows(figures.get("busiest_sites"), 2)
        if (of := _number(row[1])) is not None
    ]
    if not sites:
        return ""
    sites = sorted(sites, key=lambda site: -site[1])[:_MOST_LISTED]
    most = sites[0][1]
    rows = [[name, Markup(f"{_count(of)}{small_bar(of, most, tone='best')}")] for name, of in sites]
    table = _table("Sites by utilization", ["Site", "Byte equivalents per document"], rows)
    return _card("Busiest sites", table, kind="list", caption="Each bar is compared with the busiest site.")


def _feeders(figures: dict[str, Any]) -> str:
    listed = figures.get("largest_feeders")
    every = [of for of in listed if isinstance(of, dict)] if isinstance(listed, list) else []
    counted = [of for of in every if _number(of.get("feeds")) is not None]
    feeders = sorted(counted, key=lambda of: -of["feeds"])[:_MOST_LISTED]
    if not feeders:
        return ""
    most = max(max(of["feeds"], _number(of.get("limit")) or 0) for of in feeders)
    rows = [[_feeder_name(of), _feeder_load(of, most)] for of in feeders]
    table = _table("Subscriptions by feeds", ["Subscription", "Feeds"], rows)
    caption = (
        "The tick in a bar is the subscription's plan limit. Improvement may go beyond it, up to its own limit: "
        "those bars have the colour of that limit."
    )
    return _card("Largest feeders", table, kind="list", caption=caption)


def _feeder_name(feeder: dict[str, Any]) -> str:
    name, pattern, site = (escaped(_clipped(feeder.get(key))) for key in ("name", "pattern", "site"))
    at = f" <small>at {site}</small>" if site else ""
    return Markup(f"{name}{at}" + (f"<code>{pattern}</code>" if pattern else ""))


def _feeder_load(feeder: dict[str, Any], most: float) -> str:
    feeds, limit = feeder["feeds"], _number(feeder.get("limit"))
    words = f"no{_SPACE}limit" if limit is None else f"plan{_SPACE}{_count(limit)}"
    tone = "best" if limit is None or feeds <= limit else "improvement"
    return Markup(f"{_count(feeds)} <small>{words}</small>{small_bar(feeds, most, tone=tone, tick=limit)}")


def _stages(figures: dict[str, Any]) -> str:
    part = {name: value for name, of in _part(figures, "seconds").items() if (value := _number(of)) is not None}
    total = part.pop("total", None)
    names = sorted(part, key=lambda name: _STAGES.index(name) if name in _STAGES else len(_STAGES))
    stages = [(name, max(part[name], 0)) for name in names]
    if not stages:
        return ""
    rest = 0 if total is None else total - sum(value for _, value in stages)
    if total is not None and rest > total / 100:
        stages.append(("other", rest))
    title = "Seconds by stage"
    svg = horizontal_bars(
        title, "time (s)", [(_clipped(name)[:14], of, _duration(of)) for name, of in stages], tone="best"
    )
    longest = max(stages, key=lambda stage: stage[1])
    caption = f"The stages of planning, in order; the longest is {_clipped(longest[0])}."
    caption += "" if total is None else f" In total {_duration(total)}."
    rows = [[_clipped(name), f"{of:,.2f}"] for name, of in stages]
    return _figure(title, svg, caption, _table(title, ["Stage", "Seconds"], rows))


# The page

_FOOTER: Final = """<footer><p><b>Feed</b>: one subscription, or the source, serving a subscription on another
machine. <b>Utilization</b>: what a document costs all machines together, in bytes sent and received, with the work
of handling them weighed as bytes. <b>Latency</b>: from publication until a subscription has what it asked
for.</p></footer>"""

_STYLE: Final = """
:root{color-scheme:light dark;--page:#f4f6f6;--card:#fff;--ink:#1b2a32;--soft:#5a6b74;--rule:#dde4e6;
--track:#e9eeef;--ilp:#7891a5;--loga:#7a6bb0;--best:#0b7a75;--bound:#8a8f94;--plan:#4f7a12;--improvement:#b86a00;--hard:#b3261e}
@media(prefers-color-scheme:dark){:root{--page:#10171b;--card:#182228;--ink:#e4ecef;--soft:#9bacb5;--rule:#2c3a42;
--track:#26333a;--ilp:#7f9bb1;--loga:#a596dd;--best:#3dbdb3;--bound:#8c979e;--plan:#9cc653;--improvement:#eba340;
--hard:#f2857c}}
*{box-sizing:border-box}
body{margin:0 auto;padding:32px 20px 40px;max-width:1100px;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",sans-serif;
font-variant-numeric:tabular-nums}
h1,h2,p,ul,dl,dd,figure{margin:0;padding:0}
h1{font-size:28px;line-height:1.2;letter-spacing:-.01em}
h2{font-size:16px;line-height:1.3}
small,.caption,figcaption,footer,.note,.about,.limits,.legend,caption{color:var(--soft);font-size:13px}
.eyebrow{color:var(--best);font-weight:600;font-size:13px}
.about{margin-top:2px}
.lede{margin:18px 0 22px;max-width:46em;font-size:18px;line-height:1.5}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(158px,1fr));gap:1px;overflow:hidden;
border:1px solid var(--rule);border-radius:10px;background:var(--rule)}
.tiles>div{padding:14px 16px;background:var(--card)}
.tiles dt{color:var(--soft);font-size:13px}
.big{font-size:23px;font-weight:600;line-height:1.35}
.limits{margin-top:12px}
.limits>span{margin-right:14px;white-space:nowrap}.limits b{color:var(--ink)}
aside{margin-top:16px;padding:12px 16px;border-left:4px solid var(--improvement);background:var(--card)}
.reasons{padding-left:18px}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,440px),1fr));gap:18px;margin-top:18px}
.card{min-width:0;padding:18px 20px 16px;border:1px solid var(--rule);border-radius:10px;background:var(--card)}
.wide{grid-column:1/-1}
.caption,figcaption{margin-top:10px}
.legend{display:flex;flex-wrap:wrap;gap:2px 16px;margin-top:6px;list-style:none}
.legend span{color:var(--soft)}
i{display:inline-block;width:10px;height:10px;margin-right:6px;border-radius:2px;background:currentColor}
.ilp{color:var(--ilp)}.loga{color:var(--loga)}.best{color:var(--best)}.bound{color:var(--bound)}
.plan{color:var(--plan)}.improvement{color:var(--improvement)}.hard{color:var(--hard)}
.chart{display:block;width:100%;height:auto;margin-top:10px;overflow:visible}
.chart text{fill:var(--soft);font-size:12px}
.chart .name,.chart .value{fill:var(--ink)}
.chart .flag{fill:currentColor;font-weight:600;paint-order:stroke;stroke:var(--card);stroke-width:4px}
.fill{fill:currentColor}
.stroke,.mark,.grid,.base{fill:none}
.stroke{stroke:currentColor;stroke-width:2;stroke-linejoin:round}
.dashed{stroke-dasharray:5 4;stroke-width:1.5}
.mark{stroke:currentColor;stroke-width:1.5}
.grid{stroke:var(--rule)}.base{stroke:var(--soft)}
.track{fill:var(--track)}.tick{fill:var(--ink)}
.small{display:block;width:100%;height:5px;margin-top:3px}
.note .small{margin:4px 0 5px}
details{margin-top:8px}
summary{width:max-content;color:var(--best);font-size:13px;cursor:pointer}
.scroll{margin-top:8px;overflow:auto}details .scroll{max-height:420px}
table{width:100%;border-collapse:collapse;font-size:14px}
caption{padding-bottom:6px;text-align:left}.list td{min-width:96px;white-space:nowrap}
.list caption{position:absolute;width:1px;height:1px;overflow:hidden}
th,td{padding:6px 0 6px 18px;border-top:1px solid var(--rule);text-align:right;vertical-align:top;font-weight:400}
th:first-child{min-width:5.5em;padding-left:0;text-align:left;overflow-wrap:anywhere}
thead th{border-top:0;color:var(--soft);font-size:13px;vertical-align:bottom}
code{display:block;color:var(--soft);font-size:12.5px;overflow-wrap:anywhere}
footer{margin-top:22px;max-width:62em}
@media(max-width:560px){body{padding:20px 12px 28px}.card{padding:14px 14px 12px}.lede{font-size:16px}
.chart text{font-size:15px}.tiles{grid-template-columns:1fr 1fr}.tiles>div{padding:10px 12px}.big{font-size:19px}
th,td{padding-left:10px}}
"""

# The policy lets the page load nothing at all, whatever a name or a pattern might smuggle in.
_HEAD: Final = f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Plan report</title>
<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>{_STYLE}</style></head>
"""

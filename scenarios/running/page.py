"""The report of a run as one HTML page that needs nothing but itself, and as JSON."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final

from scenarios.running.picture import topology
from scenarios.running.strip import MOST_LANES, strip
from scenarios.scenario_file import SOURCE
from spark_planner.charts import Axis, Line, escaped, horizontal_bars, linear_axis, plot
from spark_planner.report_cards import chart_card, table_card, table_html
from spark_planner.report_numbers import count_text, duration_text, percent_text, some_text
from spark_planner.report_style import STYLE

if TYPE_CHECKING:
    from pathlib import Path

_STYLE: Final = ".said th,.said td{text-align:left}.said td:last-child{width:45%;white-space:normal}"
_HEAD: Final = f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Scenario report</title>
<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>{STYLE}{_STYLE}</style></head>
"""
_MOST_HOSTS: Final = 25


def write_pages(found: dict[str, Any], folder: Path) -> None:
    """Write report.json and report.html."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_text(json.dumps(found, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    (folder / "report.html").write_text(page(found), encoding="utf-8")


def page(found: dict[str, Any]) -> str:
    """Return the page."""
    cards = [
        _delivery_card(found),
        _speed_card(found),
        _levels_card(found),
        _bytes_card(found),
        _topology_card(found),
        _events_card(found),
    ]
    return f'{_HEAD}<body>{_headline(found)}<main class="cards">{"".join(cards)}</main></body></html>\n'


def _headline(found: dict[str, Any]) -> str:
    wrong = found["violations"]
    verdict = "Everybody got exactly its own" if not wrong else some_text(len(wrong), "violation")
    lede = (
        f"{count_text(found['delivered'])} of {count_text(found['expected'])} results were delivered to "
        f"{count_text(found['subscriptions'])} subscriptions on {count_text(found['host_count'])} hosts, "
        f"{count_text(found['wrong'])} wrong. The source fed {count_text(found['source_feeds'])} of them "
        f"({percent_text(found['source_share'])})."
    )
    if found["rate"] == "full":
        count, per_s = found["load"]["documents"], found["load"]["per_s"]
        lede += f" At full load {count_text(count)} documents were published, {per_s:.1f} per second."
    saved = 1 - found["bytes_sent"].get(SOURCE, 0) / max(found["direct_bytes"], 1)
    tiles = [
        ("Delivery, average", _seconds(found["delivery_s"], "avg")),
        ("Delivery, 99 %", _seconds(found["delivery_s"], "p99")),
        ("View latency, average", _seconds(found["view_latency_s"], "avg")),
        ("Failovers", count_text(found["failovers"])),
        ("Gaps", count_text(found["gaps"])), ("Source's bytes saved", percent_text(max(saved, 0.0))),
    ]  # fmt: skip
    drawn = "".join(
        f'<div><dt>{escaped(name)}</dt><dd class="big">{escaped(value)}</dd></div>' for name, value in tiles
    )
    listed = "".join(f"<li>{escaped(one)}</li>" for one in wrong)
    aside = f'<aside><b>Violations</b><ul class="reasons">{listed}</ul></aside>' if wrong else ""
    about = f"{found['about']} Seed {found['seed']}, hosts: {found['hosts']}."
    return (
        f'<p class="eyebrow">Scenario {escaped(found["scenario"])}</p><h1>{escaped(verdict)}</h1>'
        f'<p class="about">{escaped(about)}</p><p class="lede">{escaped(lede)}</p>'
        f'<dl class="tiles">{drawn}</dl>{aside}'
    )


def _seconds(part: dict[str, float], name: str) -> str:
    return duration_text(part[name]) if name in part else "none"


def _delivery_card(found: dict[str, Any]) -> str:
    points = [(at, seconds) for at, seconds in found["deliveries"]]
    if not points:
        return ""
    spans = [(begin, end, text, _tone(text)) for begin, end, text in found["spans"]]
    rows = [[f"{at:g} s", duration_text(seconds)] for at, seconds in points]
    more = len(spans) - MOST_LANES
    caption = "When each document was due, and how long until every subscription with results for it had them. "
    caption += "Below: faults and plans, from when to when."
    caption += f" {more} more are in the table at the end." if more > 0 else ""
    card = chart_card(
        "Delivery time, and what happened", strip("Delivery time of each document", points, spans), caption,
        table_html("Delivery time by document", ["due at", "delivery time"], rows),
    )  # fmt: skip
    return card.replace('class="card"', 'class="card wide"', 1)


def _tone(text: str) -> str:
    match text.partition(" ")[0]:
        case "replan":
            return "loga"
        case "subscribe" | "unsubscribe" | "start" | "thaw" | "heal" | "join" | "full":
            return "ties"
        case "stop" | "leave":
            return "improvement"
        case _:
            return "hard"


def _speed_card(found: dict[str, Any]) -> str:
    """Delivery times and latencies as shares of documents and results that were faster."""
    tones = ("best", "ties", "loga", "improvement", "plan", "ilp")
    every = {_level(level): one for level, one in found["level_curves_s"].items() if one}
    if not found["delivery_curve_s"]:
        return ""
    shown = dict(list(every.items())[: len(tones)])
    curves = [
        *((one, tone, name) for (name, one), tone in zip(shown.items(), tones, strict=False)),
        (found["delivery_curve_s"], "hard", "a document, everywhere"),
    ]
    least = max(min(values[0] for values, _, _ in curves), 0.001)
    lines = [
        Line([(max(value, least), 100 * i / (len(values) - 1)) for i, value in enumerate(values)], tone)
        for values, tone, _ in curves
    ]
    most = max(values[-1] for values, _, _ in curves)
    chart = plot(
        "Latency by level, and delivery time", _seconds_axis("seconds since the document was due", least, most),
        linear_axis("% were served by then", 0, 100, most=5), lines=lines,
    )  # fmt: skip
    parts = {_level(level): one for level, one in found["level_latency_s"].items() if one["count"]}
    parts["a document, everywhere"] = found["delivery_s"]
    counts = {_level(level): count_text(count) for level, count in found["levels"].items()}
    columns = ("min", "avg", "p50", "p90", "p99", "max")
    rows = [
        [name, counts.get(name, ""), *(duration_text(one[of]) for of in columns)] for name, one in parts.items()
    ]
    head = ["", "subscriptions", "least", "average", "50 %", "90 %", "99 %", "most"]
    return chart_card(
        "Latency by level", chart,
        "The share of results that were stored so soon after their document was due, by how many feeds the "
        "subscription is away from the source (at the end); and of documents that were everywhere.",
        table_html("Latency by level, and delivery time", head, rows),
        [(tone, name) for _, tone, name in curves],
    )  # fmt: skip


def _level(level: str) -> str:
    """Name a level; those who have left by the end have none."""
    return "ended" if level == "0" else f"level {level}"


def _seconds_axis(label: str, least: float, most: float) -> Axis:
    """Return a logarithmic axis of times, whole decades of them."""
    low, high = math.floor(math.log10(least)), math.ceil(math.log10(max(most, least * 1.01)))
    ticks = tuple(
        (10.0**n, duration_text(10.0**n).replace(".00", "").replace(".0", "")) for n in range(low, high + 1)
    )
    return Axis(label, 10.0**low, 10.0**high, ticks, log=True)


def _levels_card(found: dict[str, Any]) -> str:
    rows = [(f"level {level}", float(count), count_text(count)) for level, count in found["levels"].items()]
    return chart_card(
        "Subscriptions by level", horizontal_bars("Subscriptions by level", "subscriptions", rows, tone="best"),
        "A subscription of level 1 is fed by the source, one of level 2 by such a subscription, and so on.",
        table_html("Subscriptions by level", ["level", "subscriptions"], [[name, text] for name, _, text in rows]),
    )  # fmt: skip


def _bytes_card(found: dict[str, Any]) -> str:
    every = sorted(found["bytes_sent"].items(), key=lambda one: (one[0] != SOURCE, -one[1]))
    rows = [(name, value / 1e6, _bytes_text(value)) for name, value in every[:_MOST_HOSTS]]
    direct = (
        f"Feeding everybody itself the source would have sent {_bytes_text(found['direct_bytes'])} of results."
    )
    return chart_card(
        "Bytes sent", horizontal_bars("Bytes sent by host", "MB", rows, tone="ilp"), direct,
        table_html("Bytes sent", ["host", "bytes"], [[name, count_text(value)] for name, value in every]),
    )  # fmt: skip


def _bytes_text(value: float) -> str:
    """Say an amount of bytes.

    >>> _bytes_text(345_928), _bytes_text(8_964_000)
    ('346 kB', '8.96 MB')
    """
    for size, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= size:
            return f"{value / size:,.3g} {name}"
    return f"{value:,.0f} bytes"


def _topology_card(found: dict[str, Any]) -> str:
    feeds = [(a, b, count) for a, b, count in found["machines"]]
    hosts = [name for name in found["bytes_sent"] if name != SOURCE]
    chart = topology("Who feeds whom", feeds, SOURCE, hosts)
    rows = [[f"{a} to {b}", count_text(count)] for a, b, count in feeds]
    caption = "As it was at the end; a wider line carries more feeds, those of the source are red."
    return chart_card(
        "Who feeds whom", chart, caption, table_html("Feeds between machines", ["from, to", "feeds"], rows)
    )


def _events_card(found: dict[str, Any]) -> str:
    rows = [[f"{at:.1f} s", what, outcome] for at, what, outcome in found["happened"]]
    rows += [[_planned_at(one), "planned", _plan_text(one)] for one in found["plans"]]
    if not rows:
        return ""
    table = table_html("What happened", ["when", "what", "outcome"], rows)
    return table_card(
        "What happened", table, kind="wide list said", caption="Faults and plans, from the first document on."
    )


def _planned_at(plan: dict[str, Any]) -> str:
    """Say when a plan was done.

    >>> _planned_at({"at": 3.0, "seconds": 20.5}), _planned_at({"at": -1.0, "seconds": 20.5})
    ('23.5 s', 'before')
    """
    return "before" if plan["at"] < 0 else f"{plan['at'] + plan['seconds']:.1f} s"


def _plan_text(plan: dict[str, Any]) -> str:
    if "failed" in plan:
        return f"failed: {plan['failed']}"
    return f"epoch {plan['epoch']}: {plan['changed']:,} moved; the source feeds {plan['source_feeds']:,}"

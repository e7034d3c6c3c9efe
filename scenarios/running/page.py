"""The report of a run as one HTML page that needs nothing but itself, and as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from scenarios.running.picture import topology
from scenarios.scenario_file import SOURCE
from spark_planner.charts import Bar, Line, Mark, escaped, horizontal_bars, linear_axis, plot, whole_axis
from spark_planner.report_cards import chart_card, table_card, table_html
from spark_planner.report_numbers import amount_text, count_text, duration_text, percent_text
from spark_planner.report_style import STYLE

if TYPE_CHECKING:
    from pathlib import Path

_HEAD: Final = f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Scenario report</title>
<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>{STYLE}</style></head>
"""
_MOST_MARKS: Final = 12
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
        _levels_card(found),
        _bytes_card(found),
        _topology_card(found),
        _events_card(found),
    ]
    return f'{_HEAD}<body>{_headline(found)}<main class="cards">{"".join(cards)}</main></body></html>\n'


def _headline(found: dict[str, Any]) -> str:
    wrong = found["violations"]
    verdict = "Everybody got exactly its own" if not wrong else f"{len(wrong)} violations"
    lede = (
        f"{count_text(found['delivered'])} of {count_text(found['expected'])} results were delivered to "
        f"{count_text(found['subscriptions'])} subscriptions on {count_text(found['host_count'])} hosts, "
        f"{count_text(found['wrong'])} wrong. The source fed {count_text(found['source_feeds'])} of them "
        f"({percent_text(found['source_share'])})."
    )
    saved = 1 - found["bytes_sent"][SOURCE] / max(found["direct_bytes"], 1)
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
    happened = found["happened"][:_MOST_MARKS]
    end = max([points[-1][0], *(at for at, _, _ in happened)])
    chart = plot(
        "Delivery time of each document", linear_axis("seconds since the first document", 0, end),
        linear_axis("seconds until the last view was served", 0, max(s for _, s in points), rounded=True),
        lines=[Line(points, "best")], marks=[Mark(at, what, "hard") for at, what, _ in happened],
    )  # fmt: skip
    rows = [[f"{at:g} s", duration_text(seconds)] for at, seconds in points]
    return chart_card(
        "Delivery time, and what happened", chart,
        "When each document was due, and how long until every subscription with results for it had them.",
        table_html("Delivery time by document", ["due at", "delivery time"], rows),
    )  # fmt: skip


def _levels_card(found: dict[str, Any]) -> str:
    part = {int(level): one for level, one in found["level_latency_s"].items() if one["count"]}
    if not part:
        return ""
    highest = max(one["p90"] for one in part.values())
    bars = [
        Bar(level - 0.4, level + 0.4, one["avg"], "best", f"level {level}: {duration_text(one['avg'])} on average")
        for level, one in part.items()
    ]
    lines = [Line([(level, one["p90"]) for level, one in part.items()], "improvement", dashed=True)]
    chart = plot(
        "Latency by level", whole_axis("level: feeds between the source and the subscription", 1, max(part)),
        linear_axis("seconds", 0, highest, rounded=True), bars=bars, lines=lines,
    )  # fmt: skip
    rows = [
        [f"level {level}", count_text(found["levels"].get(str(level), 0)), duration_text(one["min"]),
         duration_text(one["avg"]), duration_text(one["p90"]), duration_text(one["max"])]
        for level, one in part.items()
    ]  # fmt: skip
    return chart_card(
        "Latency by level", chart, "From when a document was due until its results were stored.",
        table_html("Latency by level", ["level", "subscriptions", "least", "average", "90 %", "most"], rows),
        [("best", "average"), ("improvement", "90 % are faster")],
    )  # fmt: skip


def _bytes_card(found: dict[str, Any]) -> str:
    every = sorted(found["bytes_sent"].items(), key=lambda one: (one[0] != SOURCE, -one[1]))
    rows = [(name, float(value), f"{amount_text(value)}B") for name, value in every[:_MOST_HOSTS]]
    direct = (
        f"Feeding everybody itself the source would have sent {amount_text(found['direct_bytes'])}B of results."
    )
    return chart_card(
        "Bytes sent", horizontal_bars("Bytes sent by host", "bytes", rows, tone="ilp"), direct,
        table_html("Bytes sent", ["host", "bytes"], [[name, count_text(value)] for name, value in every]),
    )  # fmt: skip


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
    rows += [["plan", f"{one['seconds']} s", _plan_text(one)] for one in found["plans"]]
    if not rows:
        return ""
    table = table_html("What happened", ["when", "what", "outcome"], rows)
    return table_card(
        "What happened", table, kind="wide list", caption="Faults and plans, from the first document on."
    )


def _plan_text(plan: dict[str, Any]) -> str:
    if "failed" in plan:
        return f"failed: {plan['failed']}"
    return f"epoch {plan['epoch']}: {plan['changed']:,} moved; the source feeds {plan['source_feeds']:,}"

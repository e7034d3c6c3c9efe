"""The cards on how latency and utilization went while latency was improved."""

from collections.abc import Sequence
from typing import Any

from spark_planner.charts import Line, Mark, linear_axis, plot
from spark_planner.report_cards import MOST_POINTS, chart_card, table_html, thinned
from spark_planner.report_figures import number_of, points_of, rows_of
from spark_planner.report_numbers import clipped, duration_text


def latency_card(figures: dict[str, Any]) -> str:
    """Show the mean latency over time."""
    points = points_of(figures.get("trace"), 1)
    if not points:
        return ""
    start, end = points[0][1], points[-1][1]
    words = (
        f"from {duration_text(start)} to {duration_text(end)}"
        if start != end
        else f"{duration_text(end)} throughout"
    )
    caption = f"Mean over all subscriptions, as improvement went on: {words}."
    unit, scale = ("s", 1) if max(y for _, y in points) >= 2 else ("ms", 1000)
    scaled = [(x, y * scale) for x, y in points]
    return _trace("Latency against time", figures, scaled, f"mean latency ({unit})", caption)


def utilization_card(figures: dict[str, Any]) -> str:
    """Show the utilization over time."""
    points = points_of(figures.get("trace"), 2)
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
    rows = rows_of(figures.get("trace_marks"), 2)
    marks = [Mark(at, clipped(row[1])[:28], "loga") for row in rows if (at := number_of(row[0])) is not None]
    x = linear_axis("time (s)", 0, max(points[-1][0], *(mark.at for mark in marks), 0))
    svg = plot(title, x, y, lines=[Line(thinned(points, MOST_POINTS), "best")], marks=marks)
    numbers = [[f"{at:,.2f}", f"{value:,.6g}"] for at, value in points]
    return chart_card(title, svg, caption, table_html(title, ["Time (s)", label[0].upper() + label[1:]], numbers))

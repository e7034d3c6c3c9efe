"""The cards on how utilization spreads over the sites: the curve over all of them, and the busiest."""

from collections.abc import Sequence
from typing import Any

from spark_planner.charts import Line, linear_axis, plot, small_bar
from spark_planner.report_cards import (
    MOST_LISTED,
    MOST_POINTS,
    Markup,
    chart_card,
    table_card,
    table_html,
    thinned,
)
from spark_planner.report_figures import number_of, part_of, points_of, rows_of
from spark_planner.report_numbers import SPACE, clipped, count_text, percent_text


def site_curve_card(figures: dict[str, Any]) -> str:
    """Show how evenly the sites share the utilization."""
    points = points_of(part_of(figures, "site_utilization").get("shares"), 1)
    if not points:
        return ""
    points = points if points[0][0] <= 0 else [(0.0, 0.0), *points]
    title = "Utilization by site"
    x = linear_axis("share of sites, busiest first", 0, 100, most=5, unit=f"{SPACE}%")
    y = linear_axis("share of utilization", 0, 100, most=5, unit=f"{SPACE}%")
    curve = Line([(100 * a, 100 * b) for a, b in thinned(points, MOST_POINTS)], "best")
    svg = plot(title, x, y, lines=[Line([(0, 0), (100, 100)], "bound", dashed=True), curve])
    words = (
        f"The busiest tenth of the sites carries {percent_text(_interpolated(points, 0.1))} of the utilization."
    )
    caption = f"{words} The further the curve bends above the dashed line, the less even the load."
    rows = [[percent_text(a), percent_text(b)] for a, b in points]
    table = table_html(title, ["Busiest sites", "Utilization"], rows)
    return chart_card(title, svg, caption, table, [("best", "this plan"), ("bound", "all sites alike")])


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


def busiest_card(figures: dict[str, Any]) -> str:
    """List the sites with the most utilization."""
    sites = [
        (clipped(row[0]), of)
        for row in rows_of(figures.get("busiest_sites"), 2)
        if (of := number_of(row[1])) is not None
    ]
    if not sites:
        return ""
    sites = sorted(sites, key=lambda site: -site[1])[:MOST_LISTED]
    most = sites[0][1]
    rows = [[name, Markup(f"{count_text(of)}{small_bar(of, most, tone='best')}")] for name, of in sites]
    table = table_html("Sites by utilization", ["Site", "Byte equivalents per document"], rows)
    return table_card("Busiest sites", table, kind="list", caption="Each bar is compared with the busiest site.")

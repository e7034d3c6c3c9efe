"""The card on where the time of a planning run went."""

from typing import Any, Final

from spark_planner.charts import horizontal_bars
from spark_planner.report_cards import chart_card, table_html
from spark_planner.report_figures import number_of, part_of
from spark_planner.report_numbers import clipped, duration_text

_STAGES: Final = ("normalise", "statistics", "candidates", "solve", "improve", "write")


def seconds_card(figures: dict[str, Any]) -> str:
    """Show how long each stage of planning took."""
    part = {
        name: value for name, of in part_of(figures, "seconds").items() if (value := number_of(of)) is not None
    }
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
        title, "time (s)", [(clipped(name)[:14], of, duration_text(of)) for name, of in stages], tone="best"
    )
    longest = max(stages, key=lambda stage: stage[1])
    caption = f"The stages of planning, in order; the longest is {clipped(longest[0])}."
    caption += "" if total is None else f" In total {duration_text(total)}."
    rows = [[clipped(name), f"{of:,.2f}"] for name, of in stages]
    return chart_card(title, svg, caption, table_html(title, ["Stage", "Seconds"], rows))

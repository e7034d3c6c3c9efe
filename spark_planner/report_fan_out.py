"""The cards on how many others a subscription feeds, against the limits: the whole distribution, and its end."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from spark_planner.charts import Bar, Mark, escaped, log_axis, plot, small_bar, tick_step, whole_axis
from spark_planner.report_cards import MOST_LISTED, Markup, chart_card, table_card, table_html
from spark_planner.report_figures import LIMITS, counts_of, number_of, part_of
from spark_planner.report_numbers import SPACE, clipped, count_text, some_text

_MOST_BARS: Final = 80


def fan_out_card(figures: dict[str, Any]) -> str:
    """Show how many subscriptions feed how many others."""
    part = part_of(figures, "fan_out")
    pairs = zip(counts_of(part.get("feeds")), counts_of(part.get("subscriptions")), strict=False)
    counts = sorted((feeds, count) for feeds, count in pairs if count > 0)
    if not counts:
        return ""
    limits = {name: number_of(part_of(part, "limits").get(name)) for name in LIMITS}
    most = counts[-1][0]
    # A limit far beyond all data would leave the data no room.
    near = {name: of for name, of in limits.items() if of is not None and of <= max(4 * most, 60)}
    last = max(most, *near.values(), 0)
    width = 1 if last < _MOST_BARS else int(tick_step(0, last, most=_MOST_BARS, whole=True))
    title = "Fan-out against the limits" if near else "Fan-out"
    svg = plot(
        title,
        whole_axis("feeds (how many others a subscription feeds)", 0, last // width * width + width - 1),
        log_axis("subscriptions (logarithmic)", max(count for _, count in _binned(counts, width))),
        bars=[_fan_out_bar(first, width, count) for first, count in _binned(counts, width)],
        marks=[Mark(of + 0.5, f"{name} {count_text(of)}", name) for name, of in near.items()],
    )
    rows = [[count_text(feeds), count_text(count)] for feeds, count in counts]
    caption = " ".join(_fan_out_words(counts, limits, near, width))
    return chart_card(title, svg, caption, table_html("Subscriptions by feeds", ["Feeds", "Subscriptions"], rows))


def _binned(counts: Iterable[tuple[float, float]], width: int) -> list[tuple[float, float]]:
    """Add up counts over ranges of a width; each range is named by its first number."""
    sums: dict[float, float] = {}
    for feeds, count in counts:
        first = feeds // width * width
        sums[first] = sums.get(first, 0) + count
    return sorted(sums.items())


def _fan_out_bar(first: float, width: int, count: float) -> Bar:
    name = count_text(first) if width == 1 else f"{count_text(first)} to {count_text(first + width - 1)}"
    return Bar(
        first - 0.5 + 0.08 * width, first - 0.5 + 0.92 * width, count, "best", f"{name} feeds: {count_text(count)}"
    )


def _fan_out_words(
    counts: Sequence[tuple[float, float]],
    limits: Mapping[str, float | None],
    near: Mapping[str, float],
    width: int,
) -> Iterable[str]:
    idle = sum(count for feeds, count in counts if feeds == 0)
    yield f"{some_text(idle, 'subscription')} feed{'s' if idle == 1 else ''} nobody."
    if near:
        yield "Bars left of a line are within that limit."
    if limits["plan"] is not None:
        above = sum(count for feeds, count in counts if feeds > limits["plan"])
        yield f"{count_text(above) if above else 'None'} {'are' if above > 1 else 'is'} above the plan limit."
    far = [f"{name} {count_text(of)}" for name, of in limits.items() if of is not None and name not in near]
    if far:
        yield f"Limits too far right to be shown: {', '.join(far)}."
    if width > 1:
        yield f"Each bar stands for {width} numbers of feeds."


def feeders_card(figures: dict[str, Any]) -> str:
    """List the subscriptions that feed the most others."""
    listed = figures.get("largest_feeders")
    every = [of for of in listed if isinstance(of, dict)] if isinstance(listed, list) else []
    counted = [of for of in every if number_of(of.get("feeds")) is not None]
    feeders = sorted(counted, key=lambda of: -of["feeds"])[:MOST_LISTED]
    if not feeders:
        return ""
    most = max(max(of["feeds"], number_of(of.get("limit")) or 0) for of in feeders)
    rows = [[_feeder_name(of), _feeder_load(of, most)] for of in feeders]
    table = table_html("Subscriptions by feeds", ["Subscription", "Feeds"], rows)
    caption = (
        "The tick in a bar is the subscription's plan limit. Improvement may go beyond it, up to its own limit: "
        "those bars have the colour of that limit."
    )
    return table_card("Largest feeders", table, kind="list", caption=caption)


def _feeder_name(feeder: dict[str, Any]) -> str:
    name, pattern, site = (escaped(clipped(feeder.get(key))) for key in ("name", "pattern", "site"))
    at = f" <small>at {site}</small>" if site else ""
    return Markup(f"{name}{at}" + (f"<code>{pattern}</code>" if pattern else ""))


def _feeder_load(feeder: dict[str, Any], most: float) -> str:
    feeds, limit = feeder["feeds"], number_of(feeder.get("limit"))
    words = f"no{SPACE}limit" if limit is None else f"plan{SPACE}{count_text(limit)}"
    tone = "best" if limit is None or feeds <= limit else "improvement"
    return Markup(f"{count_text(feeds)} <small>{words}</small>{small_bar(feeds, most, tone=tone, tick=limit)}")

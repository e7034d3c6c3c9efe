"""The cards that set the choices of a run side by side, from the solver's to the one that is kept."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from spark_planner.charts import Bar, escaped, log_axis, plot, small_bar, whole_axis
from spark_planner.report_cards import Markup, chart_card, table_card, table_html
from spark_planner.report_figures import counts_of, number_of, part_of
from spark_planner.report_numbers import change_text, count_text, duration_text

_CHOICES: Final = {
    "ilp": "Least utilization, as the solver left it",
    "ties": "Ties broken by latency",
    "loga": "After LOGA",
    "best": "After the second pass",
    "bound": "Lower bound",
}


def comparison_card(figures: dict[str, Any]) -> str:
    """Compare the solver's choice, what each stage after it made of it, and the lower bounds."""
    columns = [
        (name, part, say)
        for name, part, say in (
            ("Utilization", "utilization", count_text),
            ("Mean latency", "latency_s", duration_text),
            ("Mean latency as in the paper", "paper_latency_s", duration_text),
        )
        if any(number_of(part_of(figures, part).get(key)) is not None for key in _CHOICES)
    ]
    rows = [
        [name, *(_compared_cell(part_of(figures, part), key, say) for _, part, say in columns)]
        for key, name in _CHOICES.items()
        if any(number_of(part_of(figures, part).get(key)) is not None for _, part, _ in columns)
    ]
    if not rows:
        return ""
    table = table_html(
        "Utilization in byte equivalents per document; latency over all subscriptions",
        ["Choice", *(name for name, _, _ in columns)],
        rows,
    )
    return table_card("Utilization and latency", table, kind="wide", caption=" ".join(_comparison_words(figures)))


def _comparison_words(figures: dict[str, Any]) -> Iterable[str]:
    yield "The solver looks for the least utilization."
    if any(number_of(part_of(figures, part).get("ties")) is not None for part in ("utilization", "latency_s")):
        yield "Among choices that cost no more, one of lower latency is then preferred."
    yield "LOGA and the second pass after it give up some of the utilization for a still lower latency."
    yield "Percentages compare with what the solver left."
    if part_of(figures, "paper_latency_s"):
        yield "In the paper's latency, feeds do not share their sender's uplink."


def _compared_cell(part: dict[str, Any], key: str, say: Callable[[float], str]) -> str:
    value, base = number_of(part.get(key)), number_of(part.get("ilp"))
    if value is None:
        return ""
    most = max(number_of(of) or 0 for of in part.values())
    change = "" if key == "ilp" or not base else f" <small>{escaped(change_text(value, base))}</small>"
    return Markup(f"{escaped(say(value))}{change}{small_bar(value, most, tone=key)}")


def levels_card(figures: dict[str, Any]) -> str:
    """Show how many subscriptions each choice has at each level."""
    part = part_of(figures, "levels")
    series = {key: counts_of(part.get(key)) for key in _CHOICES if any(counts_of(part.get(key)))}
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
            f"{_CHOICES[key]}, level {n}: {count_text(of[n])}",
        )
        for k, (key, of) in enumerate(series.items())
        for n in range(first, deepest[key] + 1)
    ]
    y = log_axis("subscriptions (logarithmic)", max(bar.value for bar in bars))
    title = "Levels before and after improvement" if len(series) > 1 else "Levels"
    svg = plot(title, whole_axis("level (1: fed by the source)", first, last), y, bars=bars)
    rows = [
        [str(n), *(count_text(of[n]) if n < len(of) else "0" for of in series.values())]
        for n in range(first, last + 1)
    ]
    table = table_html("Subscriptions by level", ["Level", *(_CHOICES[key] for key in series)], rows)
    means = " ".join(
        f"{_CHOICES[key]}: {_mean_level(of):.2f} on average, {deepest[key]} at most." for key, of in series.items()
    )
    caption = (
        "A subscription's level is how many hops a document takes to it; further left is sooner. Counts "
        f"have a logarithmic scale, so that the few furthest away are seen too. {means}"
    )
    return chart_card(title, svg, caption, table, [(key, _CHOICES[key]) for key in series])


def _mean_level(counts: Sequence[float]) -> float:
    return sum(n * count for n, count in enumerate(counts)) / sum(counts)

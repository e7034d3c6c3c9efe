"""A run along its time, as a picture: how long each document took, and below it what happened when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from spark_planner.charts import escaped, linear_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH: Final = 1040
_LEFT, _RIGHT, _TOP, _HEIGHT = 60, 16, 26, 200
_LANE: Final = 22
_LETTER: Final = 6.6
MOST_LANES: Final = 24
"""More of what happened is not drawn; the table has all."""
_POINT_S: Final = 0.15
"""So much at least of a second is drawn of something that took no time."""


_STRETCH: Final = 1.2
"""What lasts longer than the rest by more than this is cut off, or it would squeeze everything else."""


def strip(
    title: str, points: Sequence[tuple[float, float]], spans: Sequence[tuple[float, float | None, str, str]]
) -> str:
    """Draw delivery times over when documents were due, with a lane for each span (begin, end, text, tone); one
    without an end lasts."""
    shown = list(spans)[:MOST_LANES]
    begun = max([at for at, _ in points] + [begin for begin, _, _, _ in shown])
    last = max([begun] + [end for _, end, _, _ in shown if end is not None and end <= begun * _STRETCH])
    x = linear_axis("seconds since the first document", 0, last, most=12)
    y = linear_axis("seconds until the last view was served", 0, max(s for _, s in points), rounded=True)
    floor = _TOP + _HEIGHT
    bottom = floor + 8 + _LANE * len(shown)

    def at_x(value: float) -> float:
        return _LEFT + x.share(value) * (WIDTH - _LEFT - _RIGHT)

    def at_y(value: float) -> float:
        return floor - y.share(value) * _HEIGHT

    parts = [f'<text class="axis" x="4" y="13">{escaped(y.label)}</text>']
    for lane, (begin, end, text, tone) in enumerate(shown):
        left = at_x(begin)
        right = max(at_x(last if end is None else min(end, last)), left + at_x(_POINT_S) - at_x(0))
        top = floor + 8 + _LANE * lane
        parts += _span(left, right, top, text, tone)
    for value, text in y.ticks:
        parts.append(f'<path class="grid" d="M{_LEFT} {at_y(value):.1f}H{WIDTH - _RIGHT}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{at_y(value) + 4:.1f}" text-anchor="end">{escaped(text)}</text>')
    for value, text in x.ticks:
        parts.append(f'<text x="{at_x(value):.1f}" y="{bottom + 18}" text-anchor="middle">{escaped(text)}</text>')
    parts.append(f'<path class="base" d="M{_LEFT} {floor}H{WIDTH - _RIGHT}M{_LEFT} {bottom}H{WIDTH - _RIGHT}"/>')
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    parts.append(f'<text class="axis" x="{middle}" y="{bottom + 38}" text-anchor="middle">{x.label}</text>')
    path = "L".join(f"{at_x(at):.1f} {at_y(seconds):.1f}" for at, seconds in points)
    parts.append(f'<path class="stroke best" d="M{path}"/>')
    parts += [
        f'<circle class="fill best" cx="{at_x(at):.1f}" cy="{at_y(seconds):.1f}" r="2.5">'
        f"<title>due at {at:g} s, everywhere {seconds:.2f} s later</title></circle>"
        for at, seconds in points
    ]
    start = f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {WIDTH} {bottom + 46}" role="img"'
    return f'{start} aria-label="{escaped(title)}"><title>{escaped(title)}</title>{"".join(parts)}</svg>'


def _span(left: float, right: float, top: float, text: str, tone: str) -> list[str]:
    """Draw a bar in its lane with its text beside it, or on it if there is no room on either side, and a pale band
    up through the chart."""
    width, needed = right - left, 8 + len(text) * _LETTER
    place, anchor, shade = right + 6, "start", tone
    if right + needed > WIDTH:
        place, anchor, shade = (left - 6, "end", tone) if left >= needed else (left + 6, "start", "")
    return [
        f'<rect class="fill {tone}" style="opacity:.1" x="{left:.1f}" y="{_TOP}" width="{width:.1f}" '
        f'height="{top - _TOP:.1f}"/>',
        f'<rect class="fill {tone}" x="{left:.1f}" y="{top + 4:.1f}" width="{width:.1f}" height="{_LANE - 8}" '
        f'rx="2"><title>{escaped(text)}</title></rect>',
        f'<text class="{f"flag {shade}".strip()}" x="{place:.1f}" y="{top + 15:.1f}" text-anchor="{anchor}">'
        f"{escaped(text)}</text>",
    ]

"""Charts as SVG text: bars and lines on linear or logarithmic axes, with marked places.

Every chart is 480 units wide, so that its text is readable on half a wide page and on a telephone alike. Colours
belong to the page: what is drawn has a *tone*, the name of a CSS class, and nothing here names a colour. All text
is escaped here, whatever it comes from. What lies outside an axis is drawn at its end.
"""

import html
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

WIDTH: Final = 480
_HEIGHT: Final = 270  # of the part without marks
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 14, 26, 46
_ROW: Final = 18  # a line of text, and the smallest distance between two
_NAMES: Final = 112  # the width of the names beside horizontal bars
_DOTS: Final = 30  # a line with more points than this shows them no longer one by one
_FLAGS: Final = 4  # marks that get a row of their own; further ones share these
_LETTER: Final = 8.5  # about as wide as a letter gets, on a narrow page
_LEAST: Final = 0.6  # where a logarithmic axis of counts begins, so that a count of 1 is seen
_FEWEST_PLACES: Final = 6  # an axis of whole numbers is at least so long, or one bar would fill it

# XML 1.0, sec. 2.2: no other character may stand in a document, not even escaped.
_FORBIDDEN: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escaped(text: str) -> str:
    """Return text that is safe in HTML and in SVG, as content and as an attribute.

    >>> escaped("//a[b<'1']" + chr(0))
    '//a[b&lt;&#x27;1&#x27;]\\ufffd'
    """
    return html.escape(_FORBIDDEN.sub("\ufffd", text))


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from ``low`` to ``high``, with its ticks and their texts; the label says the unit."""

    label: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    def share(self, value: float) -> float:
        """How far along the axis a value lies, from 0 to 1."""
        value = min(max(value, self.low), self.high)
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar from ``left`` to ``right`` on the x axis and up to ``value`` on the y axis."""

    left: float
    right: float
    value: float
    tone: str
    hint: str


@dataclass(frozen=True, slots=True)
class Line:
    """Points joined by a line."""

    points: Sequence[tuple[float, float]]
    tone: str
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """A place on the x axis, shown by a vertical line with a text."""

    at: float
    text: str
    tone: str


def tick_step(low: float, high: float, *, most: int, whole: bool = False) -> float:
    """Return the smallest step of 1, 2 or 5 times a power of ten that divides a range into at most so many.

    >>> tick_step(0, 55, most=6), tick_step(0, 3, most=6, whole=True), tick_step(0, 0.9, most=6)
    (10.0, 1.0, 0.2)
    """
    raw = (high - low) / most
    power = math.floor(math.log10(raw))
    step = next(float(f"{m}e{power}") for m in (1, 2, 5, 10) if m * 10.0**power >= raw * (1 - 1e-9))
    return max(step, 1.0) if whole else step


def linear_axis(
    label: str,
    low: float,
    high: float,
    *,
    most: int = 6,
    whole: bool = False,
    rounded: bool = False,
    unit: str = "",
) -> Axis:
    """Return an axis with round ticks; ``rounded`` makes it end at ticks, ``unit`` follows each number."""
    high = max(low, high)
    if high - low <= max(abs(low), abs(high)) * 1e-9 + 1e-12:  # one value: it stands in the middle, or at 0
        low, high = low - abs(low) / 2, high + (abs(high) / 2 if abs(high) > 1e-12 else 1)
    step = tick_step(low, high, most=most, whole=whole)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    if rounded:
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        low, high = first * step, last * step
    digits = max(0, -math.floor(math.log10(step)))
    ticks = tuple((n * step, f"{n * step:,.{digits}f}{unit}") for n in range(first, last + 1))
    return Axis(label, low, high, ticks)


def whole_axis(label: str, first: float, last: float) -> Axis:
    """Return an axis on which each whole number stands in the middle of its bar."""
    return linear_axis(label, first - 0.5, max(last, first + _FEWEST_PLACES - 1) + 0.5, most=10, whole=True)


def log_axis(label: str, highest: float) -> Axis:
    """Return a logarithmic axis for counts, from 1 to the power of ten that takes in the highest.

    >>> [text for _, text in log_axis("subscriptions", 42_000).ticks]
    ['1', '10', '100', '1,000', '10,000', '100,000']
    """
    decades = max(1, math.ceil(math.log10(max(highest, 1)) - 1e-9))
    by = -(-decades // 6)
    ticks = tuple((10.0**n, _count_tick(10.0**n)) for n in range(0, decades + 1, by))
    return Axis(label, _LEAST, 10.0**decades, ticks, log=True)


def _count_tick(value: float) -> str:
    return f"{value:,.0f}" if value < 1e6 else f"{value / 1e6:,.0f}M" if value < 1e12 else f"{value:.0e}"


def plot(
    title: str,
    x: Axis,
    y: Axis,
    *,
    bars: Iterable[Bar] = (),
    lines: Iterable[Line] = (),
    marks: Sequence[Mark] = (),
) -> str:
    """Draw bars, lines and marks between two axes."""
    top = _TOP + _ROW * min(len(marks), _FLAGS)
    area = _Area(x, y, top, top + _HEIGHT - _TOP - _BOTTOM)
    parts = [
        *area.frame(),
        *(area.bar(bar) for bar in bars if bar.value > 0),
        *(part for line in lines for part in area.line(line)),
        *area.flags(sorted(marks, key=lambda mark: mark.at)),
    ]
    return _svg(title, area.bottom + _BOTTOM, parts)


@dataclass(frozen=True, slots=True)
class _Area:
    """Where a chart's data are drawn: two axes, and the heights between which they stand."""

    x: Axis
    y: Axis
    top: float
    bottom: float

    def at_x(self, value: float) -> float:
        return _LEFT + self.x.share(value) * (WIDTH - _LEFT - _RIGHT)

    def at_y(self, value: float) -> float:
        return self.bottom - self.y.share(value) * (self.bottom - self.top)

    def frame(self) -> Iterable[str]:
        """Yield grid lines, the texts of the ticks, and the labels of both axes."""
        for value, text in self.y.ticks:
            at = self.at_y(value)
            yield _stroke("grid", _LEFT, at, WIDTH - _RIGHT, at)
            yield _label(_LEFT - 8, at + 4, text, "end")
        yield _stroke("base", _LEFT, self.bottom, WIDTH - _RIGHT, self.bottom)
        for value, text in self.x.ticks:
            yield _stroke("base", self.at_x(value), self.bottom, self.at_x(value), self.bottom + 4)
            yield _label(self.at_x(value), self.bottom + 17, text, "middle")
        yield _label(4, 13, self.y.label, "start", "axis")
        yield _label((_LEFT + WIDTH - _RIGHT) / 2, self.bottom + 38, self.x.label, "middle", "axis")

    def bar(self, bar: Bar) -> str:
        left, right, top = self.at_x(bar.left), self.at_x(bar.right), self.at_y(bar.value)
        return _rect(left, top, max(right - left, 0.8), max(self.bottom - top, 0.8), bar.tone, bar.hint)

    def line(self, line: Line) -> Iterable[str]:
        places = [(self.at_x(x), self.at_y(y)) for x, y in line.points]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        dashes = " dashed" if line.dashed else ""
        yield f'<path class="stroke {line.tone}{dashes}" d="M{path}"/>'
        if len(places) <= _DOTS and not line.dashed:
            yield from (f'<circle class="fill {line.tone}" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in places)

    def flags(self, marks: Sequence[Mark]) -> Iterable[str]:
        """Yield marks, their texts all on the same side if there is room, each in a row of its own.

        Texts that go right stand the lower the further right they are, those that go left the higher: so no line
        crosses a text of its side. Texts come last, as they have an edge that covers a line of the other side.
        """
        room_right = {mark: self.at_x(mark.at) + _flag_width(mark) <= WIDTH for mark in marks}
        if not all(room_right.values()) and all(self.at_x(mark.at) >= _flag_width(mark) for mark in marks):
            room_right = dict.fromkeys(marks, False)
        right = [mark for mark in marks if room_right[mark]]
        ordered = [*right, *(mark for mark in reversed(marks) if not room_right[mark])]
        rows = min(len(ordered), _FLAGS)
        heights = [self.top - _ROW * (rows - n % _FLAGS) + 8 for n in range(len(ordered))]
        for mark, y in zip(ordered, heights, strict=True):
            yield _stroke(f"mark {mark.tone}", self.at_x(mark.at), y - 10, self.at_x(mark.at), self.bottom)
        for mark, y in zip(ordered, heights, strict=True):
            anchor, by = ("start", 5) if room_right[mark] else ("end", -5)
            yield _label(self.at_x(mark.at) + by, y, mark.text, anchor, f"flag {mark.tone}")


def _flag_width(mark: Mark) -> float:
    return len(mark.text) * _LETTER + 5


def horizontal_bars(title: str, label: str, rows: Sequence[tuple[str, float, str]], *, tone: str) -> str:
    """Draw one bar below the other, each with a name before it and a text after it."""
    highest = max((value for _, value, _ in rows), default=0)
    axis = linear_axis(label, 0, highest, most=4)
    bottom = 8 + 28 * len(rows)
    room = WIDTH - _NAMES - 82  # for the text after the longest bar
    parts = []
    for value, text in axis.ticks:
        at = _NAMES + axis.share(value) * room
        parts += [_stroke("grid", at, 4, at, bottom), _label(at, bottom + 16, text, "middle")]
    for n, (name, value, text) in enumerate(rows):
        y, width = 10 + 28 * n, axis.share(value) * room
        parts.append(_label(_NAMES - 10, y + 14, name, "end", "name"))
        parts.append(_rect(_NAMES, y, max(width, 0.8), 18, tone, f"{name}: {text}"))
        parts.append(_label(_NAMES + width + 7, y + 14, text, "start", "value"))
    parts.append(_stroke("base", _NAMES, 4, _NAMES, bottom))
    parts.append(_label(_NAMES + room / 2, bottom + 36, label, "middle", "axis"))
    return _svg(title, bottom + 44, parts)


def small_bar(value: float, most: float, *, tone: str, tick: float | None = None) -> str:
    """Draw a bar to stand beside a number that says the same, with a tick where a limit is."""
    scale = 100 / most if most > 0 else 0
    width = min(max(value * scale, 0), 100)
    parts = (
        f'<rect class="track" width="100" height="8"/><rect class="fill {tone}" width="{width:.2f}" height="8"/>'
    )
    if tick is not None and 0 <= tick * scale <= 100:
        parts += f'<rect class="tick" x="{min(tick * scale, 98.8):.2f}" width="1.2" height="8"/>'
    start = '<svg xmlns="http://www.w3.org/2000/svg" class="small" viewBox="0 0 100 8" preserveAspectRatio="none"'
    return f'{start} aria-hidden="true">{parts}</svg>'


def _svg(title: str, height: float, parts: Iterable[str]) -> str:
    name = escaped(title)
    start = f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {WIDTH} {height:g}" role="img"'
    return f'{start} aria-label="{name}"><title>{name}</title>{"".join(parts)}</svg>'


def _stroke(tone: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path class="{tone}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'


def _rect(x: float, y: float, width: float, height: float, tone: str, hint: str) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="fill {tone}" {place} rx="1"><title>{escaped(hint)}</title></rect>'


def _label(x: float, y: float, text: str, anchor: str, tone: str = "") -> str:
    of_class = f' class="{tone}"' if tone else ""
    return f'<text{of_class} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escaped(text)}</text>'

"""Who feeds whom, as a picture: the source in the middle, the machines around it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from spark_planner.charts import WIDTH, escaped

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_EDGES: Final = 600
_MARGIN: Final = 42
_NAMED: Final = 24
_DOT: Final = 5


def topology(title: str, feeds: Sequence[tuple[str, str, int]], source: str, hosts: Sequence[str]) -> str:
    """Draw machines and their feeds; a wider line carries more.

    Machines may feed each other both ways, for the order is one of subscriptions. Of very many lines the widest
    are drawn; of very many machines some are named.
    """
    middle, radius = WIDTH / 2, WIDTH / 2 - _MARGIN
    place = {source: (middle, middle)}
    for i, name in enumerate(hosts):
        angle = 2 * math.pi * i / max(len(hosts), 1) - math.pi / 2
        place[name] = middle + radius * math.cos(angle), middle + radius * math.sin(angle)
    most = max((count for _, _, count in feeds), default=1)
    shown = sorted(feeds, key=lambda feed: feed[2], reverse=True)[:_MOST_EDGES]
    parts = [
        _edge(
            place[a], place[b], f"{a} to {b}: {count:,} feeds", count / most, tone="hard" if a == source else "ilp"
        )
        for a, b, count in shown
    ]
    every = -(-len(hosts) // _NAMED)
    for i, name in enumerate([source, *hosts]):
        x, y = place[name]
        tone = "hard" if name == source else "best"
        dot = f'<circle class="fill {tone}" cx="{x:.1f}" cy="{y:.1f}" r="{_DOT}">'
        parts.append(f"{dot}<title>{escaped(name)}</title></circle>")
        if i == 0 or (i - 1) % every == 0:
            parts.append(_name(name, x, y, middle))
    start = f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {WIDTH} {WIDTH}" role="img"'
    return f'{start} aria-label="{escaped(title)}"><title>{escaped(title)}</title>{"".join(parts)}</svg>'


def _name(name: str, x: float, y: float, middle: float) -> str:
    """Write a name outside the ring; the source's above its dot."""
    distance = math.hypot(x - middle, y - middle)
    if distance < 1:
        y -= 2 * _DOT
    else:
        x, y = x + (x - middle) / distance * 22, y + (y - middle) / distance * 16 + 4
    return f'<text class="flag name" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{escaped(name)}</text>'


def _edge(start: tuple[float, float], end: tuple[float, float], hint: str, share: float, *, tone: str) -> str:
    """Draw a line that bends a little to its right, so that both directions are seen."""
    (x1, y1), (x2, y2) = start, end
    bend_x, bend_y = (x1 + x2) / 2 + 0.12 * (y1 - y2), (y1 + y2) / 2 + 0.12 * (x2 - x1)
    path = f"M{x1:.1f} {y1:.1f}Q{bend_x:.1f} {bend_y:.1f} {x2:.1f} {y2:.1f}"
    width, opacity = 0.8 + 2.6 * share, 0.4 + 0.5 * share
    return (
        f'<path class="stroke {tone}" style="stroke-width:{width:.1f};opacity:{opacity:.2f}" d="{path}">'
        f"<title>{escaped(hint)}</title></path>"
    )

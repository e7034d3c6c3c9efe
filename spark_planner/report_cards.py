"""What every card of the report is made of: a frame, a caption, and a table of its numbers."""

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from spark_planner.charts import escaped
from spark_planner.report_numbers import count_text

_Of = TypeVar("_Of")
MOST_POINTS: Final = 400
MOST_LISTED: Final = 12
_MOST_ROWS: Final = 100


class Markup(str):
    """Text that is HTML already; any other text is escaped where it enters the page."""

    __slots__ = ()


def table_card(title: str, table: str, *, kind: str, caption: str) -> str:
    """Return a card with a table that is itself the picture."""
    start = f'<section class="card {kind}"><h2>{escaped(title)}</h2>'
    return f'{start}{table}<p class="caption">{escaped(caption)}</p></section>'


def chart_card(title: str, svg: str, caption: str, table: str, legend: Sequence[tuple[str, str]] = ()) -> str:
    """Return a card with a chart, how to read it, and its numbers."""
    keys = "".join(f'<li class="{tone}"><i></i><span>{escaped(name)}</span></li>' for tone, name in legend)
    keys = f'<ul class="legend">{keys}</ul>' if keys else ""
    return (
        f'<section class="card"><figure><h2>{escaped(title)}</h2>{keys}{svg}'
        f"<figcaption>{escaped(caption)}</figcaption></figure>"
        f"<details><summary>Numbers</summary>{table}</details></section>"
    )


def table_html(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose first column names its rows; of very many rows some are shown, and it says so."""
    every = list(rows)
    shown = thinned(every, _MOST_ROWS)
    if len(shown) < len(every):
        caption += f" ({len(shown)} of {count_text(len(every))} rows; report.json has all)"
    top = "".join(f'<th scope="col">{_cell(of)}</th>' for of in head)
    body = "".join(
        f'<tr><th scope="row">{_cell(row[0])}</th>{"".join(f"<td>{_cell(of)}</td>" for of in row[1:])}</tr>'
        for row in shown
    )
    return (
        f'<div class="scroll" tabindex="0"><table><caption>{escaped(caption)}</caption>'
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(text: str) -> str:
    return text if isinstance(text, Markup) else escaped(text)


def thinned(items: Sequence[_Of], most: int) -> Sequence[_Of]:
    """Return at most so many of the items, evenly spread, with the first and the last."""
    if len(items) <= most:
        return items
    return [items[n * (len(items) - 1) // (most - 1)] for n in range(most)]

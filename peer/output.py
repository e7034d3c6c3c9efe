"""What commands print: JSON lines that stay lines, whatever the data and the terminal."""

from __future__ import annotations

import json
import shutil
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.table import Table

_WIDEST: Final = 10_000

# Not line ends to JSON, but to many readers of lines.
_LINE_ENDS: Final = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def emit(record: Mapping[str, Any]) -> None:
    """Print one JSON object as one line of valid text."""
    line = json.dumps(record, ensure_ascii=False).translate(_LINE_ENDS)
    try:
        line.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        line = json.dumps(record)  # a terminal that lacks the characters, or a file name that is no text
    sys.stdout.write(line + "\n")


def visible(text: str) -> str:
    """Write control characters as escapes, so that a drawing keeps its lines.

    >>> visible("a\\nb")
    'a\\\\nb'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def terminal_width() -> int:
    """Return a width that tables can be drawn in."""
    return max(shutil.get_terminal_size().columns, 60)


def draw(table: Table) -> None:
    """Print a table: as wide as the terminal, and whole where there is none."""
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else _WIDEST)
    with console.capture() as drawn:  # rich would end the process if nobody reads
        console.print(table)
    sys.stdout.write(drawn.get())

"""What a run shows while it runs, on standard error: a line for each step, and on a terminal how far it is."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress


class Screen:
    """``bar`` is there on a terminal only."""

    def __init__(self, bar: Progress | None) -> None:
        self._bar = bar
        self._begun = time.monotonic()
        self._task = None if bar is None else bar.add_task("", total=None, visible=False)

    def told(self, what: str) -> None:
        """Show a step, which stays."""
        line = f"{time.monotonic() - self._begun:7.1f} s  {what}"
        if self._bar is None:
            print(line, file=sys.stderr, flush=True)
        else:
            self._bar.console.print(line, markup=False, highlight=False)

    def going(self, what: str, done: int, total: int) -> None:
        """Show how far it is, until something else is."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=what, completed=done, total=total, visible=True)


@contextmanager
def screen() -> Iterator[Screen]:
    """Show something while the block runs; the bar is gone then."""
    if not sys.stderr.isatty():
        yield Screen(None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield Screen(bar)

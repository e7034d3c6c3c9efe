"""``distributary subscriptions``: what this machine is subscribed to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from peer.home import add_home, ask, home_of
from peer.output import emit, visible

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "List the subscriptions of this machine and who feeds them."
_EPILOG: Final = """\
examples:
  distributary subscriptions
  distributary subscriptions --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    add_home(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON object per subscription")


def run(arguments: argparse.Namespace) -> int:
    """List."""
    found = list(ask(home_of(arguments), "subscriptions"))
    if arguments.json:
        for one in found:
            emit(one)
        return 0
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("pattern", "fed by", "level", "complete up to", "feeds", box=box.SIMPLE)
    table.columns[0].overflow = "fold"
    for one in found:
        fed = ", ".join(one["fed_by"]) if one["is_live"] else "waiting"
        # A name of its own line: it is what other commands want, whole, also in a narrow terminal.
        about = Text.assemble((one["subscription"], "bold"), "\n", visible(one["pattern"]))
        table.add_row(about, Text(fed), str(one["level"]), f"{one['committed']:,}", f"{one['feeds']:,}")
    Console().print(table)
    return 0

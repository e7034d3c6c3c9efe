"""``distributary subscriptions``: what this machine is subscribed to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from peer.home import add_home, ask, home_of
from peer.output import draw, emit, visible

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "List the subscriptions of this machine and who feeds them, those in spaces too."
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
    home = home_of(arguments)
    found = list(ask(home, "subscriptions"))
    in_spaces = list(ask(home, "subscriptions_in_spaces"))
    if arguments.json:
        for one in (*found, *in_spaces):
            emit(one)
        return 0
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table("pattern", "fed by", "level", "complete up to", "feeds", box=box.SIMPLE)
    table.columns[0].overflow = "fold"
    for one in found:
        fed = ", ".join(one["fed_by"]) if one["is_live"] else "waiting"
        # A name of its own line: it is what other commands want, whole, also in a narrow terminal.
        about = Text.assemble((one["subscription"], "bold"), "\n", visible(one["pattern"]))
        table.add_row(about, Text(fed), str(one["level"]), f"{one['committed']:,}", f"{one['feeds']:,}")
    for one in in_spaces:
        about = Text.assemble((one["subscription"], "bold"), "\n", visible(one["filter"]))
        table.add_row(about, Text(f"space {one['space']}"), "", f"{one['complete']:,}", "")
    draw(table)
    return 0

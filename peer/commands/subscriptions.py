"""``distributary subscriptions``: what this machine is subscribed to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from peer.home import add_home, ask, home_of
from peer.output import emit

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
    from rich.console import Console
    from rich.table import Table

    table = Table("subscription", "pattern", "fed by", "level", "complete up to", "feeds")
    for one in found:
        fed = ", ".join(one["fed_by"]) if one["is_live"] else "waiting"
        table.add_row(
            one["subscription"], one["pattern"], fed, str(one["level"]), f"{one['committed']:,}", str(one["feeds"])
        )
    Console().print(table)
    return 0

"""``distributary cursors``: where named readers are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from peer.home import add_home, ask, ask_one, home_of
from peer.output import emit

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "List and remove the cursors of readers (tail, results, messages, HTTP, the Python client)."
_EPILOG: Final = """\
A cursor that is behind keeps results from being dropped, up to a hard limit: remove those that nobody reads with
any more.

examples:
  distributary cursors list
  distributary cursors list s-0123456789abcdef --json
  distributary cursors remove s-0123456789abcdef billing
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the sub-commands."""
    parser.epilog = _EPILOG
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    listing = commands.add_parser("list", help="list cursors and how far behind they are")
    listing.add_argument("subscription", nargs="?", help="of this subscription (all)")
    add_home(listing)
    listing.add_argument("--json", action="store_true", help="print a JSON object per cursor")
    listing.set_defaults(run=_list)
    removing = commands.add_parser("remove", help="forget a cursor")
    removing.add_argument("subscription", help="its subscription")
    removing.add_argument("cursor", metavar="NAME", help="its name")
    add_home(removing)
    removing.add_argument("--json", action="store_true", help="print one JSON object")
    removing.set_defaults(run=_remove)
    for one in (listing, removing):
        one.epilog, one.formatter_class = _EPILOG, parser.formatter_class


def _list(arguments: argparse.Namespace) -> int:
    wanted = {} if arguments.subscription is None else {"subscription": arguments.subscription}
    for one in ask(home_of(arguments), "cursors", **wanted):
        if arguments.json:
            emit(one)
        else:
            print(f"{one['subscription']}  {one['cursor']}  done up to {one['upto']:,}, {one['behind']:,} behind")
    return 0


def _remove(arguments: argparse.Namespace) -> int:
    wanted = {"subscription": arguments.subscription, "cursor": arguments.cursor}
    ask_one(home_of(arguments), "remove_cursor", **wanted)
    if arguments.json:
        emit({"removed": arguments.cursor, "subscription": arguments.subscription})
    else:
        print(f"{arguments.cursor} is forgotten; nothing of {arguments.subscription} is kept for it any more.")
    return 0

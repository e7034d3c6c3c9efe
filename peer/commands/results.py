"""``distributary results``: what a subscription has received."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from peer.home import add_home, ask, home_of
from peer.output import emit

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "Print what a subscription has received, as JSON lines."
_EPILOG: Final = """\
A line per row: {"document": NUMBER, "name": NAME, "row": {COLUMN: VALUE, ...}}. {"gap": [AFTER, UPTO]} where
documents are lost, {"error": REASON} where one could not be processed; last {"complete": NUMBER}: nothing is
missing up to there.

examples:
  distributary results s-0123456789abcdef
  distributary results s-0123456789abcdef --since 120
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    parser.add_argument("subscription", help="its name")
    parser.add_argument("--since", type=int, default=0, metavar="N", help="only documents after number N")
    add_home(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print."""
    for one in ask(home_of(arguments), "entries", subscription=arguments.subscription, since=arguments.since):
        emit(one)
    return 0

"""``distributary results``: what a subscription has received."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from peer.reading_command import add_reading, print_entries

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "Print what a subscription has received, as JSON lines."
_EPILOG: Final = """\
A line per row: {"document": NUMBER, "name": NAME, "row": {COLUMN: VALUE, ...}}. {"gap": [AFTER, UPTO]} where
documents are lost, {"error": REASON} where one could not be processed; last {"complete": NUMBER}: nothing is
missing up to there. With --cursor the next call of that name begins where this one ended.

examples:
  distributary results s-0123456789abcdef
  distributary results s-0123456789abcdef --since 120
  distributary results s-0123456789abcdef --cursor nightly      only what is new since the last time
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    add_reading(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print."""
    print_entries(arguments, follow=False)
    return 0

"""``distributary messages``: what a subscription in a space has received."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from peer.reading_command import add_reading, print_entries

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "Print what a subscription in a space has received, as JSON lines."
_EPILOG: Final = """\
A line per message: {"message": NUMBER, "attributes": {NAME: VALUE, ...}}, each once and in order; {"gap": [AFTER,
UPTO]} where something may be missing; {"complete": NUMBER}: nothing else is missing up to there. Numbers are those
of the source's log, so they have holes. With --cursor a reader that was cut off goes on where it was; what it may
get twice, it knows by the number.

examples:
  distributary messages c-0123456789abcdef
  distributary messages c-0123456789abcdef --since 120
  distributary messages c-0123456789abcdef --follow | jq .attributes
  distributary messages c-0123456789abcdef --follow --cursor billing >> billing.jsonl
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    add_reading(parser)
    parser.add_argument("--follow", action="store_true", help="go on with what arrives, until interrupted")


def run(arguments: argparse.Namespace) -> int:
    """Print."""
    print_entries(arguments, follow=arguments.follow)
    return 0

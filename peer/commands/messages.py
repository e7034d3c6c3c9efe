"""``distributary messages``: what a subscription in a space has received."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from peer.errors import CommandError
from peer.home import add_home, ask, home_of
from peer.output import emit

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "Print what a subscription in a space has received, as JSON lines."
_EPILOG: Final = """\
A line per message: {"message": NUMBER, "attributes": {NAME: VALUE, ...}}, each once and in order; {"gap": [AFTER,
UPTO]} where this machine was away for too long; last {"complete": NUMBER}: nothing is missing up to there.

examples:
  distributary messages c-0123456789abcdef
  distributary messages c-0123456789abcdef --since 120
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    parser.add_argument("subscription", help="as 'subscribe --space' has printed it")
    parser.add_argument("--since", type=int, default=0, metavar="N", help="only what comes after this number")
    add_home(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print."""
    if arguments.since < 0:
        raise CommandError(f"--since {arguments.since}: a number is 0 or more")
    for one in ask(home_of(arguments), "messages", subscription=arguments.subscription, since=arguments.since):
        emit(one)
    return 0

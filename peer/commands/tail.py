"""``distributary tail``: results as they arrive."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from peer.home import add_home, ask, home_of
from peer.output import emit

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "Print results as they arrive, as JSON lines, until interrupted."
_EPILOG: Final = """\
Lines as of 'distributary results'; {"complete": NUMBER} comes whenever everything up to a document has been
printed.

examples:
  distributary tail s-0123456789abcdef
  distributary tail s-0123456789abcdef --since 120 | jq .row
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    parser.add_argument("subscription", help="its name")
    parser.add_argument("--since", type=int, default=0, metavar="N", help="only documents after number N")
    add_home(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print for ever."""
    wanted = {"subscription": arguments.subscription, "since": arguments.since, "follow": True}
    for one in ask(home_of(arguments), "entries", **wanted):
        emit(one)
        sys.stdout.flush()
    return 0

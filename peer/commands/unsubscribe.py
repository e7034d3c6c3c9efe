"""``distributary unsubscribe``: end a subscription."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from peer.home import add_home, ask_one, home_of
from peer.output import emit

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "End a subscription; what it has stays readable."
_EPILOG: Final = """\
examples:
  distributary unsubscribe s-0123456789abcdef
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    parser.add_argument("subscription", help="its name, as 'distributary subscriptions' lists it")
    add_home(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Unsubscribe."""
    told = ask_one(home_of(arguments), "unsubscribe", subscription=arguments.subscription)
    if arguments.json:
        emit(told)
    else:
        print(f"{told['subscription']} ends with document {told['end']}.")
    return 0

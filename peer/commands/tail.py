"""``distributary tail``: results as they arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from peer.reading_command import add_reading, print_entries

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "Print results as they arrive, as JSON lines, until interrupted."
_EPILOG: Final = """\
Lines as of 'distributary results'; {"complete": NUMBER} comes whenever everything up to a document has been
printed. With --cursor a reader that was cut off goes on where it was; what it may get twice, it knows by the
number of the document.

examples:
  distributary tail s-0123456789abcdef
  distributary tail s-0123456789abcdef --since 120 | jq .row
  distributary tail s-0123456789abcdef --cursor billing >> billing.jsonl
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    add_reading(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print for ever."""
    print_entries(arguments, follow=True)
    return 0

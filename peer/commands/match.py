"""``distributary match``: patterns against documents, results as JSON lines."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from peer.arguments import (
    PATTERN_HELP,
    add_namespaces,
    namespaces,
    parse_pattern,
    read_document,
    read_lines,
    read_pattern,
)
from peer.errors import CommandError
from peer.lxml_check import agrees_with_lxml
from peer.output import emit

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from xmlmatch import Pattern

SUMMARY: Final = "Match patterns against XML documents and print the rows as JSON lines."
_EPILOG: Final = """\
One pattern prints a line per row: {"document": FILE, "row": {COLUMN: VALUE, ...}}. Columns are named after the
node and what it returns (name.val); an id is [pre, size, level]. With --patterns a line per matching pattern:
{"document": FILE, "pattern": LINE, "rows": N}.

examples:
  distributary match "//person[address/country='United States']/name{val}" auction.xml
  distributary match --count "//item{id}[quantity >= 2]//keyword{val}" a.xml b.xml
  distributary match --check @pattern.txt auction.xml
  distributary match --ns n=urn:news "//n:item/n:title{val}" - < feed.xml
  distributary match --patterns subscriptions.txt *.xml
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    parser.usage = (
        "distributary match [options] PATTERN FILE...\n       distributary match [options] --patterns FILE DOC..."
    )
    parser.add_argument("inputs", nargs="*", metavar="PATTERN FILE", help=f"{PATTERN_HELP}; then documents, - too")
    parser.add_argument(
        "--patterns", metavar="FILE", help="match every pattern of a file, one per line, # for comments"
    )
    parser.add_argument("--count", action="store_true", help="print how many rows each document has, not the rows")
    parser.add_argument("--check", action="store_true", help="compare with lxml where XPath 1.0 can express it")
    parser.add_argument(
        "--limit",
        type=int,
        default=1_000_000,
        metavar="N",
        help="stop with an error beyond N rows (default 1,000,000)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON lines, which it does anyway")
    add_namespaces(parser)


def run(arguments: argparse.Namespace) -> int:
    """Match and print; 1 if ``--check`` found a difference."""
    if arguments.limit < 0:
        raise CommandError(f"--limit {arguments.limit}: expected a number from 0 up")
    inputs = list(arguments.inputs)
    if arguments.patterns is not None:
        inputs.insert(0, arguments.patterns)
    if len(inputs) < 2:
        raise CommandError("patterns and at least one document are needed; see 'distributary match --help'")
    if inputs.count("-") > 1:
        raise CommandError("standard input can be read once only; use files for the rest, @FILE for a pattern")
    first, *documents = inputs
    if arguments.patterns is not None:
        return _match_many(first, documents, arguments)
    return _match_one(read_pattern(first, arguments.ns), documents, arguments)


def _match_one(pattern: Pattern, documents: list[str], arguments: argparse.Namespace) -> int:
    from xmlmatch import match

    status = 0
    for name in documents:
        data, document = read_document(name)
        found = match(pattern, document)
        with _limited(name):
            if arguments.count:
                emit({"document": name, "rows": found.count(arguments.limit)})
            else:
                for row in found.rows(arguments.limit):
                    emit({"document": name, "row": dict(zip(pattern.columns, row, strict=True))})
        if arguments.check and not agrees_with_lxml(name, data, found):
            status = 1
    return status


def _match_many(patterns: str, documents: list[str], arguments: argparse.Namespace) -> int:
    from xmlmatch import Matcher

    if arguments.check:
        raise CommandError("--check goes with one pattern; leave out --patterns")
    matcher, line_of = Matcher(), {}
    prefixes = namespaces(arguments.ns)
    for line, text in read_lines(patterns):
        line_of[matcher.add(parse_pattern(text, prefixes, f"{patterns}, line {line}: "))] = line
    if not line_of:
        raise CommandError(f"{patterns}: no pattern in it; write one per line")
    for name in documents:
        _, document = read_document(name)
        matches = matcher.match(document)
        for key in matches.keys.tolist():
            line = line_of[key]
            with _limited(f"{name}, pattern of line {line}"):
                rows = matcher.node_sets(matches, key).count(arguments.limit)
            emit({"document": name, "pattern": line, "rows": rows})
    return 0


@contextmanager
def _limited(where: str) -> Iterator[None]:
    """Say where a limit of rows was passed."""
    from xmlmatch import RowLimitError

    try:
        yield
    except RowLimitError as exc:
        raise CommandError(f"{where}: more than {exc.limit:,} rows; allow more with --limit") from None
